#!/bin/sh
# SPDX-License-Identifier: MIT
# under_heapprof.sh - run a program under the library and hold it to what a harmless library promises: it ends in time, with
# the status it should have, with nothing on its error output, and with at least so many profiles.
#   LIB=libheapprof.so [STATUS=0] [PROFILES=0] [STDERR=] [SECONDS_MAX=600] under_heapprof.sh PROGRAM [ARGUMENT...]
# EMULATOR    words that run the program of another processor (qemu-aarch64 -L ...): they get the library for it by -E
# NAMES       template of the profiles' names
# STATUS      the exit status wanted
# PROFILES    how many profiles must be there at least
# STDERR      extended regular expression of the only line that may, and must, be on the error output; empty: none
# SECONDS_MAX what hangs is ended after; nothing here takes a twentieth of it on an idle machine
# HEAPPROF_*  are passed on; sampling is exact (rate 1) unless said otherwise.
set -u
work=$(mktemp -d) || exit 1
chmod 1777 "$work"
trap 'rm -rf "$work"' EXIT
export HEAPPROF_OUT="${HEAPPROF_OUT:-$work/${NAMES:-%e.%p.%n.pb.gz}}" HEAPPROF_SAMPLE_RATE="${HEAPPROF_SAMPLE_RATE:-1}"
export HEAPPROF_PERIOD="${HEAPPROF_PERIOD:-0}" HEAPPROF_WORK="$work"
# shellcheck disable=SC2086 # the emulator is words
if [ -n "${EMULATOR:-}" ]; then
  set -- $EMULATOR -E LD_PRELOAD="$LIB" ${LD_AUDIT:+-E LD_AUDIT="$LD_AUDIT"} "$@"
  unset LD_AUDIT
else
  set -- env LD_PRELOAD="$LIB" "$@"
fi
timeout -k 5 "${SECONDS_MAX:-600}" "$@" 2>"$work/stderr"
status=$?
[ $status = 77 ] && [ "${STATUS:-0}" = 0 ] && exit 77 # the program says it cannot be tried here
fail() {
  echo "$*"
  head -5 "$work/stderr"
  exit 1
}
[ $status = "${STATUS:-0}" ] || fail "status $status instead of ${STATUS:-0}"
if [ -z "${STDERR:-}" ]; then
  [ ! -s "$work/stderr" ] || fail "something on the error output"
else
  [ "$(grep -c . "$work/stderr")" = 1 ] && grep -qE "$STDERR" "$work/stderr" || fail "the error output is not one line like $STDERR"
fi
found=$(find "$work" -name '*.pb.gz' | wc -l)
[ "$found" -ge "${PROFILES:-0}" ] || fail "$found profiles instead of ${PROFILES:-0}"
find "$work" -name '*.pb.gz' -exec gzip -t {} + || fail "a profile is no gzip file"
[ -z "$(find "$work" -name '.heapprof.*')" ] || fail "a temporary file is left"
exit 0
