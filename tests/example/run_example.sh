#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run_example.sh LIBRARY COMMAND PROGRAM FUNCTION SHARE [LINE...]
# PROGRAM prints LINE... under the library, and without it the same calls all answer -ENOSYS; the profile it wrote names
# FUNCTION with at least SHARE percent of what is in use. COMMAND "": the profile is only looked for.
set -euo pipefail
library=$1 command=$2 program=$3 function=$4 share=$5
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset "${!HEAPPROF_@}" LD_PRELOAD
fail() {
  echo "$*"
  exit 1
}

printf '%s\n' "$@" >expected
LD_PRELOAD=$library HEAPPROF_EXIT_DUMP=0 "$program" "$work/with.pb.gz" >with.txt 2>with.err
diff expected with.txt || fail "under the library $program prints something else"
[ ! -s with.err ] || fail "on stderr: $(cat with.err)"

"$program" "$work/without.pb.gz" >without.txt 2>&1
grep -q '^active 0$' without.txt || fail "active without the library: $(cat without.txt)"
if grep -vE '^(active 0|[a-z_]+ -38|[a-z]+: not profiled)$' without.txt; then fail "without the library $program prints the above"; fi
[ ! -e without.pb.gz ] || fail "a profile without the library"

[ -s with.pb.gz ] || fail "no profile"
[ "$(find . -name '*.pb.gz' | wc -l)" = 1 ] || fail "more than one profile: $(ls)"
if [ -n "$command" ]; then
  "$command" top -n 0 --type inuse_objects with.pb.gz >top.txt
  awk -v f="$function" -v share="$share" '$6 ~ "^" f { seen = 1; if ($5 + 0 >= share) good = 1 } END { exit !(seen && good) }' top.txt ||
    fail "not $share % in $function: $(cat top.txt)"
fi
