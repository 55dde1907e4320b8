# SPDX-License-Identifier: BSD-2-Clause
# Completion of softhca for bash.  Commands, options and their values are those that the tool itself
# prints, so nothing here grows old.  Nothing here starts a fabric either.

# The lines of "softhca --help" that name a command, without the tool's name.
_softhca_usage()
{
	"$1" --help 2>/dev/null | sed -n 's/^  softhca \([a-z]\)/\1/p'
}

# Fabrics that run.
_softhca_fabrics()
{
	"$1" fabric list 2>/dev/null | sed -n 's/^\([^ ]*\)  *[0-9]* hosts, .*/\1/p'
}

# Hosts of a fabric that runs; options that name it follow.
_softhca_hosts()
{
	"$1" fabric status "${@:2}" 2>/dev/null | sed -n 's/^\([^ :]*\)$/\1/p'
}

# Devices of such a fabric, each with and without its host.
_softhca_devices()
{
	"$1" fabric status "${@:2}" 2>/dev/null | awk '
		/^[^ :]+$/ { host = $1 }
		host && /^  [^ ]+ port [0-9]+:/ { print $1; print host "/" $1 }' | sort -u
}

# What may follow an option: tool, line of the usage, option, options that name the fabric.
_softhca_values()
{
	case $3 in
	--fabric) _softhca_fabrics "$1" ;;
	--host) _softhca_hosts "$1" "${@:4}" ;;
	--model) "$1" run --model '?' 2>&1 | sed -n 's/.*; there are //p' | tr -d , ;;
	*) grep -o -e "$3 [a-z]*|[a-z|]*" <<<"$2" | sed 's/.* //' | tr '|' ' ' ;;
	esac
}

_softhca()
{
	local tool=${COMP_WORDS[0]/#\~/$HOME} cur=${COMP_WORDS[COMP_CWORD]}
	local prev=${COMP_WORDS[COMP_CWORD - 1]} usage line command=${COMP_WORDS[1]} first=2 i
	local -a fabric=() arguments=()

	COMPREPLY=()
	usage=$(_softhca_usage "$tool")
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$(sed 's/ .*//' <<<"$usage" | sort -u) \
			--help --version" -- "$cur")
		return
	fi
	if [[ $command == fabric ]]; then
		if ((COMP_CWORD == 2)); then
			mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^fabric \([a-z]*\).*/\1/p' \
				<<<"$usage") --help" -- "$cur")
			return
		fi
		command="fabric ${COMP_WORDS[2]}" first=3
	fi
	line=$(grep -e "^$command " <<<"$usage") || return
	for ((i = first; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			((i++))
			break
		elif [[ ${COMP_WORDS[i]} != -* ]]; then
			[[ $command == run || $command == trace ]] && break
			arguments+=("${COMP_WORDS[i]}")
		elif grep -q -e "${COMP_WORDS[i]} [A-Za-z]" <<<"$line"; then
			[[ ${COMP_WORDS[i]} == --fabric ]] && fabric=(--fabric "${COMP_WORDS[i + 1]}")
			((++i == COMP_CWORD)) && break
		fi
	done
	if [[ $command == trace && $prev == -e ]]; then
		mapfile -t COMPREPLY < <(compgen -W "wqe doorbell packet mad dpa decision all" -- "$cur")
	elif [[ $prev == --* ]] && ((i == COMP_CWORD)) && grep -q -e "\[*$prev [A-Za-z]" <<<"$line"; then
		mapfile -t COMPREPLY < <(compgen -W \
			"$(_softhca_values "$tool" "$line" "$prev" "${fabric[@]}")" -- "$cur")
	elif [[ ($command == run || $command == trace) && $cur != -* && $prev != -[weB] ]] || ((i < COMP_CWORD)); then
		# The program, whose own completion knows better.
		if declare -F _command_offset >/dev/null; then
			_command_offset "$i"
		elif ((i == COMP_CWORD)); then
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		fi
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(grep -o -e '--[a-z][a-z-]*' <<<"$line") --help" \
			-- "$cur")
	elif [[ $command == "fabric port" ]] && ((${#arguments[@]} == 0)); then
		mapfile -t COMPREPLY < <(compgen -W "$(_softhca_devices "$tool" "${fabric[@]}")" -- "$cur")
	elif [[ $command == "fabric port" ]] && ((${#arguments[@]} == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "down up" -- "$cur")
	elif [[ $command == capture && $prev != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_softhca_devices "$tool" "${fabric[@]}")" -- "$cur")
	elif [[ $command =~ ^fabric\ (un)?tie$ ]] && ((${#arguments[@]} == 0)); then
		mapfile -t COMPREPLY < <(compgen -W "$(_softhca_devices "$tool" "${fabric[@]}")" -- "$cur")
	elif [[ $command == "fabric tie" ]]; then
		compopt -o nospace 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -W "udp udp= peers= gso= tap= port= in= out= pace= loop=" -- "$cur")
	elif [[ $command == "fabric link" ]] && ((${#arguments[@]} == 0)); then
		mapfile -t COMPREPLY < <(compgen -W "down up" -- "$cur")
	elif [[ $command == "fabric node" ]] && ((${#arguments[@]} == 0)); then
		mapfile -t COMPREPLY < <(compgen -W "remove add" -- "$cur")
	elif [[ $command == "fabric show" ]] && ((${#arguments[@]} == 0)); then
		mapfile -t COMPREPLY < <(compgen -W "text dot svg" -- "$cur")
	elif [[ $command == status ]] && ((${#arguments[@]} == 0)); then
		mapfile -t COMPREPLY < <(compgen -W "$("$tool" status "${fabric[@]}" 2>/dev/null |
			sed -n 's/^pid \([0-9]*\) .*/\1/p')" -- "$cur")
	fi
}

complete -o default -F _softhca softhca
