#compdef softhca
# SPDX-License-Identifier: BSD-2-Clause
# Completion of softhca for zsh, where it is called _softhca.  As for bash, commands, options and their
# values are those that the tool itself prints, and nothing here starts a fabric.

# The lines of "softhca --help" that name a command, without the tool's name.
_softhca_usage() {
	$tool --help 2>/dev/null | sed -n 's/^  softhca \([a-z]\)/\1/p'
}

# Fabrics that run.
_softhca_fabrics() {
	$tool fabric list 2>/dev/null | sed -n 's/^\([^ ]*\)  *[0-9]* hosts, .*/\1/p'
}

# Hosts of the fabric that is named, if it runs.
_softhca_hosts() {
	$tool fabric status $fabric 2>/dev/null | sed -n 's/^\([^ :]*\)$/\1/p'
}

# Devices of such a fabric, each with and without its host.
_softhca_devices() {
	$tool fabric status $fabric 2>/dev/null | awk '
		/^[^ :]+$/ { host = $1 }
		host && /^  [^ ]+ port [0-9]+:/ { print $1; print host "/" $1 }' | sort -u
}

# Processes that use the devices.
_softhca_processes() {
	$tool status $fabric 2>/dev/null | sed -n 's/^pid \([0-9]*\) .*/\1/p'
}

# What may follow the option.
_softhca_values() {
	case $1 in
	--fabric) _softhca_fabrics ;;
	--host) _softhca_hosts ;;
	--model) $tool run --model '?' 2>&1 | sed -n 's/.*; there are //p' | tr -d , ;;
	*) grep -o -e "$1 [a-z]*|[a-z|]*" <<<$line | sed 's/.* //' | tr '|' ' ' ;;
	esac
}

# The line of the usage says that the option has a value.
_softhca_has_value() {
	grep -q -e "\[*$1 [A-Za-z]" <<<$line
}

_softhca_words() {
	compadd "$@[2,-1]" -- ${=1}
}

_softhca() {
	local tool=${~words[1]} command=$words[2] usage line cur=$words[CURRENT] prev=$words[CURRENT-1]
	local -a fabric arguments
	integer first=3 i

	usage=$(_softhca_usage)
	if ((CURRENT == 2)); then
		_softhca_words "$(sed 's/ .*//' <<<$usage | sort -u) --help --version"
		return
	fi
	if [[ $command == fabric ]]; then
		if ((CURRENT == 3)); then
			_softhca_words "$(sed -n 's/^fabric \([a-z]*\).*/\1/p' <<<$usage) --help"
			return
		fi
		command="fabric $words[3]" first=4
	fi
	line=$(grep -e "^$command " <<<$usage) || return
	for ((i = first; i < CURRENT; i++)); do
		if [[ $words[i] == -- ]]; then
			((i++))
			break
		elif [[ $words[i] != -* ]]; then
			[[ $command == (run|trace) ]] && break
			arguments+=($words[i])
		elif _softhca_has_value $words[i]; then
			[[ $words[i] == --fabric ]] && fabric=(--fabric $words[i+1])
			((++i == CURRENT)) && break
		fi
	done
	if [[ $command == trace && $prev == -e ]]; then
		_softhca_words "wqe doorbell packet mad dpa decision all"
	elif [[ $prev == -* ]] && ((i == CURRENT)) && _softhca_has_value $prev; then
		_softhca_words "$(_softhca_values $prev)" || [[ $prev == --(fabric|host|model) ]] || _files
	elif [[ $command == (run|trace) && $cur != -* ]] || ((i < CURRENT)); then
		# The program, whose own completion knows better.
		shift $((i - 1)) words
		((CURRENT -= i - 1))
		_normal
	elif [[ $cur == -* ]]; then
		_softhca_words "$(grep -o -e '--[a-z][a-z-]*' <<<$line) --help"
	else
		case $command/$#arguments in
		"fabric port/0" | "fabric tie/0" | "fabric untie/0" | capture/*) _softhca_words "$(_softhca_devices)" ;;
		"fabric port/1" | "fabric link/0") _softhca_words "down up" ;;
		"fabric tie/"*) _softhca_words "udp udp= peers= gso= tap= port= in= out= pace= loop=" -S '' ;;
		"fabric node/0") _softhca_words "remove add" ;;
		"fabric show/0") _softhca_words "text dot svg" ;;
		status/0) _softhca_words "$(_softhca_processes)" ;;
		*) _files ;;
		esac
	fi
}

_softhca "$@"
