#!/bin/bash
# SPDX-License-Identifier: MIT
# sanitizers.sh - a program built with any sanitizer of gcc and clang gives its answer under the library, profiled, or left alone with
# one line that says so; and one with a fault of the sanitizer's kind is found out as it is without the library.
#   LIB=libheapprof.so sanitizers.sh GOOD.c FAULTY.c
# Builds that this machine cannot make or run are left out, and said.
set -u
good=$1 faulty=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tried=0 failed=0

# Where the kernel scatters addresses more widely than a runtime knows, as Ubuntu 24.04 does (vm.mmap_rnd_bits=32), ThreadSanitizer of
# gcc 12 and clang 14 ends some runs at their start with "unexpected memory mapping": all runs have the same addresses.
same_addresses=(setarch "$(uname -m)" -R)
"${same_addresses[@]}" true 2>/dev/null || same_addresses=()

# run NAME LIBRARY ARGUMENT...: output in $work/NAME.out and .err, the status at the end of .out
run() {
  local name=$1 library=$2
  shift 2
  timeout -k 5 300 ${same_addresses[@]+"${same_addresses[@]}"} env ${library:+LD_PRELOAD="$library"} HEAPPROF_SAMPLE_RATE=1 HEAPPROF_PERIOD=0 HEAPPROF_OUT="$work/%p.%n.pb.gz" \
    "$work/program" "$@" >"$work/$name.out" 2>"$work/$name.err"
  echo "status $?" >>"$work/$name.out"
}
wrong() {
  echo "$*"
  head -5 "$work"/{plain,with}.{out,err}
  failed=1
}

# LeakSanitizer in a forked child misses any thread that its parent had, hence our helper (docs/limits.md).
fork_note='^==[0-9]+==Running thread [0-9]+ was not suspended. False leaks are possible.$'

# What is the report about? Without addresses, process ids and places.
gist() { grep -oE '(ERROR|WARNING): [A-Za-z]+Sanitizer:( [a-z-]+){1,4}|runtime error: [a-z ]+' "$1" | sort | uniq -c; }
unprofiled() { grep -c 'is not profiled$' "$work/with.err"; }

good_program() { # BUILD ARGUMENT...
  local build=$1
  shift
  run plain "" "$@"
  [ "$(cat "$work/plain.out")" = "$(printf 'done\nstatus 0')" ] || { echo "$build $*: not on this machine"; return; }
  tried=$((tried + 1))
  run with "$LIB" "$@"
  cmp -s "$work/plain.out" "$work/with.out" || wrong "$build $*: differs"
  [ "$(grep -vcE "is not profiled$|$fork_note" "$work/with.err")" = 0 ] && [ "$(unprofiled)" -le 1 ] || wrong "$build $*: on the error output"
}

faulty_program() { # BUILD KIND
  run plain "" "$2"
  [ -n "$(gist "$work/plain.err")" ] || { echo "$1: finds nothing on this machine"; return; }
  tried=$((tried + 1))
  run with "$LIB" "$2"
  cmp -s "$work/plain.out" "$work/with.out" || wrong "$1: the end differs"
  [ "$(gist "$work/plain.err")" = "$(gist "$work/with.err")" ] || wrong "$1: finds something else"
  [ "$(unprofiled)" -le 1 ] || wrong "$1: says it twice"
}

for compiler in gcc clang; do
  for kind in address leak thread undefined memory address,undefined; do
    for how in "" -no-pie -static-libasan -static-libtsan -shared-libsan; do
      case "$compiler $kind $how" in
        *no-pie | "gcc address -static-libasan" | "gcc thread -static-libtsan" | "clang address -shared-libsan" | *" ") ;;
        *) continue ;;
      esac
      build="$compiler -fsanitize=$kind${how:+ $how}"
      runtime=
      [ "$how" != -shared-libsan ] || runtime=-Wl,-rpath,$(dirname "$(clang -print-file-name="libclang_rt.asan-$(uname -m).so")")
      options="-O1 -g -D_GNU_SOURCE -fno-builtin -pthread $runtime"
      # shellcheck disable=SC2086 # words
      $build $options "$good" -ldl -o "$work/program" 2>/dev/null || { echo "$build: cannot be built here"; continue; }
      good_program "$build" no names
      good_program "$build" threads names
      # shellcheck disable=SC2086
      $build $options "$faulty" -o "$work/program" 2>/dev/null && faulty_program "$build" "${kind%,*}"
    done
  done
done
[ $tried -gt 0 ] || exit 77
echo "$tried programs"
exit $failed
