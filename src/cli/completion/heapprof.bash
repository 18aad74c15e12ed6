# SPDX-License-Identifier: MIT
# bash completion of heapprof(1). Commands and options are asked of the program itself, so they are those it has.

_heapprof() {
  local program=$1 current=$2 verb=${COMP_WORDS[1]} words
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$current")
    return
  fi
  if [[ $current == -* ]]; then
    words=$("$program" "$verb" --help 2>/dev/null | grep '^ *-' | grep -oE -- '--[a-z][a-z-]*=?' | sort -u)
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
    return
  fi
  case $verb in
    run) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
    dump | serve) # processes that have the library
      words=$(grep -ls libheapprof /proc/[0-9]*/maps 2>/dev/null | cut -d/ -f3)
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
      ;;
    *) compopt -o default ;;
  esac
}
complete -F _heapprof heapprof
