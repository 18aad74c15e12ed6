#!/bin/bash
# SPDX-License-Identifier: MIT
# sanitizers.sh - a program built with AddressSanitizer or ThreadSanitizer gives its answer under the library: profiled, or left
# alone with one line that says so.
#   LIB=libheapprof.so sanitizers.sh PROGRAM.c
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tried=0
for build in "gcc -fsanitize=address" "gcc -fsanitize=address -static-libasan" "gcc -fsanitize=thread" "gcc -fsanitize=thread -static-libtsan" \
  "gcc -fsanitize=undefined" "gcc -fsanitize=leak" "clang -fsanitize=address" "clang -fsanitize=thread"; do
  $build -O1 -g -D_GNU_SOURCE -fno-builtin -pthread "$1" -o "$work/program" 2>/dev/null || continue
  for arguments in "" threads; do
    "$work/program" $arguments >"$work/out" 2>/dev/null && grep -qx "done" "$work/out" || continue # not on this machine
    tried=$((tried + 1))
    timeout -k 5 60 env LD_PRELOAD="$LIB" HEAPPROF_SAMPLE_RATE=1 HEAPPROF_PERIOD=0 HEAPPROF_OUT="$work/%p.%n.pb.gz" LSAN_OPTIONS=detect_leaks=0 \
      "$work/program" $arguments >"$work/out" 2>"$work/err"
    status=$?
    if [ $status != 0 ] || ! grep -qx "done" "$work/out" || [ "$(grep -vc "is not profiled$" "$work/err")" != 0 ] ||
      [ "$(grep -c "is not profiled$" "$work/err")" -gt 1 ]; then
      echo "$build $arguments: status $status"
      head -5 "$work/err"
      exit 1
    fi
  done
done
[ $tried -gt 0 ] || exit 77
echo "$tried programs"
