# SPDX-License-Identifier: MIT
# fish completion of heapprof(1). Commands and options are asked of the program itself.
function __heapprof_verbs
    heapprof --help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)$' '$1\t$2'
end
function __heapprof_options
    set -l words (commandline -opc)
    test (count $words) -ge 2; and heapprof $words[2] --help 2>/dev/null | string match -r '^ *-.*' | string match -arg -- '(--[a-z][a-z-]*)' | sort -u
end
complete -c heapprof -f -n __fish_use_subcommand -a '(__heapprof_verbs)'
complete -c heapprof -n 'not __fish_use_subcommand' -a '(__heapprof_options)'
