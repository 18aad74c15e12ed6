#!/bin/sh
# SPDX-License-Identifier: MIT
# stress_run.sh - run stress_all under the library with a dump each second; fails unless it ends with status 0, nothing is on
# its error output, and every profile left is valid.
#   LIB=libheapprof.so PLUGIN=plugin.so [NEXT=another allocator] [CHECK="command that checks profiles"]
#   stress_run.sh PROGRAM SECONDS [WORKERS]
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
timeout -k 10 $(($2 + 1500)) env LD_PRELOAD="$LIB${NEXT:+ $NEXT}" HEAPPROF_SAMPLE_RATE="${RATE:-1}" HEAPPROF_PERIOD=1 \
  HEAPPROF_OUT="$work/%e.%p.pb.gz" HEAPPROF_SIGNAL=SIGUSR2 STRESS_PROFILES="$work" STRESS_PLUGIN="$PLUGIN" "$@" \
  2>"$work/stderr"
status=$?
if [ $status != 0 ] || [ -s "$work/stderr" ]; then
  echo "status $status"
  head -20 "$work/stderr"
  ls "$work" | head
  exit 1
fi
[ -s "$work/$(basename "$1").$(ls "$work" | sed -n 's/.*\.\([0-9]*\)\.pb\.gz/\1/p' | head -1).pb.gz" ] || { echo "no profile"; exit 1; }
for profile in "$work"/*.pb.gz; do
  gzip -t "$profile" || exit 1
  [ -z "${CHECK:-}" ] || $CHECK "$profile" || exit 1
done
[ -z "$(find "$work" -name '.heapprof.*')" ] || { echo "a temporary file is left"; exit 1; }
exit 0
