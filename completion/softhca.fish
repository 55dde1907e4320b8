# SPDX-License-Identifier: BSD-2-Clause
# Completion of softhca for fish.  As for bash, commands, options and their values are those that the
# tool itself prints, and nothing here starts a fabric.

# The tool, as it is called on the command line.
function __softhca_tool
    set -l words (commandline -opc)
    set -l tool (string replace -r '^~' $HOME -- $words[1])
    $tool $argv 2>/dev/null
end

# The lines of "softhca --help" that name a command, without the tool's name.
function __softhca_usage
    __softhca_tool --help | string replace -rf '^  softhca ([a-z])' '$1'
end

# The words before the one to complete, without the tool.
function __softhca_words
    set -l words (commandline -opc)
    string join \n -- $words[2..]
end

# Which command they begin with: "run", "fabric up"; nothing if there is none yet.
function __softhca_command
    set -l words (__softhca_words)
    if test "$words[1]" = fabric
        set -q words[2]; and echo "fabric $words[2]"
    else
        echo $words[1]
    end
end

# The line of the usage for the command.
function __softhca_line
    set -l command (__softhca_command)
    test -n "$command"; and __softhca_usage | string match -e -r "^$command(?: |\$)"
end

# The line, an option: does it have a value?
function __softhca_has_value
    string match -q -r -- "$argv[2] [A-Za-z]" $argv[1]
end

# What follows the command and is no option: for run from the program on.  The last line is the option whose value
# comes next, or is empty.
function __softhca_arguments
    set -l words (__softhca_words)
    set -l line (__softhca_line)
    set -l first 2
    test "$words[1]" = fabric; and set first 3
    set -l option
    set -l ended
    set -l found
    for word in $words[$first..]
        if test -n "$ended"
            set -a found $word
        else if test -n "$option"
            set option
        else if test "$word" = --
            set ended yes
        else if string match -q -- '-*' $word
            __softhca_has_value "$line" $word; and set option $word
        else
            set -a found $word
            contains -- "$words[1]" run trace; and set ended yes
        end
    end
    string join \n -- $found "$option"
end

# The options that name the fabric.
function __softhca_fabric
    set -l words (__softhca_words)
    set -l at (contains -i -- --fabric $words); and set -q words[(math $at + 1)]
    and string join \n -- --fabric $words[(math $at + 1)]
end

# Fabrics that run.
function __softhca_fabrics
    __softhca_tool fabric list | string replace -rf '^([^ ]*)  *[0-9]* hosts, .*' '$1'
end

# Hosts of the fabric that is named, if it runs.
function __softhca_hosts
    __softhca_tool fabric status (__softhca_fabric) | string match -r '^[^ :]+$'
end

# Devices of such a fabric, each with and without its host.
function __softhca_devices
    __softhca_tool fabric status (__softhca_fabric) | awk '
        /^[^ :]+$/ { host = $1 }
        host && /^  [^ ]+ port [0-9]+:/ { print $1; print host "/" $1 }' | sort -u
end

# Processes that use the devices.
function __softhca_processes
    __softhca_tool status (__softhca_fabric) | string replace -rf '^pid ([0-9]*) .*' '$1'
end

# What may follow an option.
function __softhca_values
    switch $argv[1]
        case -e
            string join \n wqe doorbell packet mad dpa decision all
        case --fabric
            __softhca_fabrics
        case --host
            __softhca_hosts
        case --model
            set -l words (commandline -opc)
            $words[1] run --model '?' 2>&1 | string replace -rf '.*; there are ' '' | string split ', '
        case '*'
            __softhca_line | string match -r -- "$argv[1] ([a-z]+(?:\|[a-z]+)+)" | tail -n 1 | string split '|'
    end
end

# Everything but programs and files.
function __softhca_complete
    set -l words (__softhca_words)
    if not set -q words[1]
        __softhca_usage | string replace -r ' .*' '' | sort -u
        string join \n -- --help --version
        return
    else if test "$words" = fabric
        __softhca_usage | string replace -rf '^fabric ([a-z]*).*' '$1'
        return
    end
    set -l arguments (__softhca_arguments)
    set -l option $arguments[-1]
    set -e arguments[-1]
    set -l command (__softhca_command)
    if test -n "$option"
        __softhca_values $option
        return
    else if string match -q -- '-*' (commandline -ct)
        contains -- "$command" run trace; and test (count $arguments) -gt 0
        and return
        set -l line (__softhca_line); or return
        string match -ar -- '--[a-z][a-z-]*' $line
        echo -- --help
        return
    end
    switch "$command/"(count $arguments)
        case 'fabric port/0' 'fabric tie/0' 'fabric untie/0' 'capture/*'
            __softhca_devices
        case 'fabric port/1' 'fabric link/0'
            string join \n down up
        case 'fabric tie/*'
            string join \n udp udp= peers= gso= tap= port= in= out= pace= loop=
        case 'fabric node/0'
            string join \n remove add
        case 'fabric show/0'
            string join \n text dot svg
        case status/0
            __softhca_processes
    end
end

# Where a program is to be named, or its own completion knows better.
function __softhca_at_program
    set -l arguments (__softhca_arguments)
    if not contains -- "$(__softhca_command)" run trace; or test -n "$arguments[-1]"
        return 1
    end
    test (count $arguments) -gt 1; or not string match -q -- '-*' (commandline -ct)
end

# The command line from the program on.
function __softhca_of_program
    set -l arguments (__softhca_arguments)
    complete -C (string join ' ' -- (string escape -- $arguments[..-2]) (commandline -ct))
end

# Where a file may be named: behind the options of most commands.
function __softhca_wants_file
    set -l arguments (__softhca_arguments)
    contains -- "$arguments[-1]" --topology; or string match -q capture (__softhca_command)
end

complete -c softhca -f
complete -c softhca -a '(__softhca_complete)'
complete -c softhca -n __softhca_at_program -a '(__softhca_of_program)'
complete -c softhca -n __softhca_wants_file -F
