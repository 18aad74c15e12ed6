#!/bin/bash
# SPDX-License-Identifier: MIT
# another_libc.sh - a program linked to musl, whose loader takes the library for one of its own, runs as it does alone: one line says
# that it is not profiled, and a child of it with glibc is profiled.
#   LIB=libheapprof.so another_libc.sh PROGRAM.c
# Without musl-gcc or musl's loader it is skipped (77).
set -u
command -v musl-gcc >/dev/null || { echo "no musl-gcc"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
musl-gcc -O1 "$1" -o "$work/program" || exit 1

# run NAME VARIABLE=VALUE...
run() {
  local name=$1
  shift
  timeout -k 5 120 env "$@" "$work/program" >"$work/$name.out" 2>"$work/$name.err"
  echo "status $?" >>"$work/$name.out"
}
run plain
[ "$(tail -1 "$work/plain.out")" = "status 5" ] || { echo "no loader of musl's"; exit 77; }
run with LD_PRELOAD="$LIB" HEAPPROF_SAMPLE_RATE=1 HEAPPROF_OUT="$work/%e.%n.pb.gz"
status=0
cmp "$work/plain.out" "$work/with.out" || status=1
[ "$(sed -E 's/\[[0-9]+\]//' "$work/with.err")" = "heapprof: warn: program runs with another C library than glibc; it is not profiled" ] || status=1
[ "$(cd "$work" && ls ./*.pb.gz)" = "./ls.0.pb.gz" ] || status=1
[ $status = 0 ] || head -5 "$work"/{plain,with}.{out,err}
exit $status
