#!/bin/sh
# private-archive.sh OBJCOPY NM AR IN.a OUT.a PREFIX STRIP_INIT REDIRECT EXCLUDE
# A copy of a static archive under private names: every global symbol it defines gets PREFIX; of those it imports, the ones in
# REDIRECT ("from=to;from=to") are renamed; members in EXCLUDE ("a.o;b.o") are left out; STRIP_INIT=TRUE drops constructors.
set -eu
objcopy=$1 nm=$2 ar=$3 in=$4 out=$5 prefix=$6 strip_init=$7 redirect=$8 exclude=$9
dir=$out.d
rm -rf "$dir" "$out"
mkdir -p "$dir"
(cd "$dir" && "$ar" x "$in")
for member in $(printf %s "$exclude" | tr ';' ' '); do rm -f "$dir/$member"; done
"$nm" -A --defined-only --extern-only "$dir"/*.o 2>/dev/null | awk -v p="$prefix" 'NF >= 3 {print $NF, p $NF}' | sort -u >"$dir/renames"
printf '%s\n' "$redirect" | tr ';' '\n' | sed -n 's/^\(.*\)=\(.*\)$/\1 \2/p' >>"$dir/renames"
options=--strip-debug
if [ "$strip_init" = TRUE ]; then options="$options --remove-section=.init_array --remove-section=.rela.init_array --remove-section=.ctors --remove-section=.rela.ctors"; fi
for object in "$dir"/*.o; do
  # shellcheck disable=SC2086 # the options are words
  "$objcopy" --redefine-syms="$dir/renames" $options "$object"
done
"$ar" rcs "$out" "$dir"/*.o
rm -rf "$dir"
