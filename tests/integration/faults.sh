#!/bin/bash
# SPDX-License-Identifier: MIT
# faults.sh - the n-th system call of a kind fails, n = 1 ... N: the program's answer is the one it gives without the library
# under the same fault (a fault may hit the program itself). Calls of the loader, which end with the first munmap (of its cache),
# are left out.
#   LIB=libheapprof.so [DLSYM=libdlsym_fails.so] faults.sh PROGRAM N [CALL...]
# With DLSYM also the n-th look-up of a symbol.
set -u
program=$1 last=$2
shift 2
command -v strace >/dev/null || exit 77
strace -qq -o /dev/null true 2>/dev/null || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# run NAME FAULT LIBRARY ARGUMENT: $work/NAME holds output and status
run() {
  local preload=()
  [ -n "$3" ] && preload=(-E "LD_PRELOAD=$3")
  rm -rf "$work/out"
  mkdir "$work/out"
  { timeout -k 5 300 strace -f -qq -o /dev/null -e trace="${2%%:*}" -e inject="$2" "${preload[@]}" -E HEAPPROF_SAMPLE_RATE=1 -E HEAPPROF_PERIOD=0 \
    -E HEAPPROF_LOG=off -E "HEAPPROF_OUT=$work/out/%e.%p.%n.pb.gz" "$program" $4 >"$work/$1"
    echo "status $?" >>"$work/$1"; } 2>/dev/null
}

# calls_of_loader CALL ARGUMENT
calls_of_loader() {
  strace -qq -o "$work/trace" -E "LD_PRELOAD=$LIB" -E HEAPPROF_SAMPLE_RATE=1 -E "HEAPPROF_OUT=$work/x" "$program" $2 >/dev/null 2>&1
  sed '/^munmap(/q' "$work/trace" | grep -c "^$1("
}

# Every profile that is there under its final name is whole.
check_files() {
  local file
  for file in "$work"/out/*.pb.gz; do
    [ ! -e "$file" ] || gzip -t "$file" 2>/dev/null || { echo "$1: not a whole file"; failed=1; }
  done
}

# dlsym: by a library before ours (dlsym_fails.c), no strace needed.
dlsym_faults() {
  local n arguments fine
  for arguments in "no names" "threads names"; do
    fine=0
    for ((n = 1; n <= last; n++)); do
      rm -rf "$work/out"
      mkdir "$work/out"
      DLSYM_FAILS=$n LD_PRELOAD="$DLSYM $LIB" HEAPPROF_SAMPLE_RATE=1 HEAPPROF_PERIOD=0 HEAPPROF_LOG=off HEAPPROF_OUT="$work/out/%e.%p.%n.pb.gz" \
        timeout -k 5 300 "$program" $arguments >"$work/with" 2>&1
      echo "status $?" >>"$work/with"
      check_files "dlsym $n $arguments"
      if [ "$(cat "$work/with")" = "$(printf 'done\nstatus 0')" ]; then
        fine=$((fine + 1))
      else
        echo "dlsym $n $arguments: $(tr '\n' ' ' <"$work/with")"
        failed=1
      fi
    done
    echo "dlsym ($arguments): $fine of $last faults left no trace in the answer"
  done
}
[ -z "${DLSYM:-}" ] || dlsym_faults

calls=${*:-"mmap munmap madvise mprotect openat read pread64 write fstat close renameat2 unlinkat readlinkat getcwd rt_sigprocmask rt_sigaction rt_sigtimedwait clone3 futex prctl close_range pidfd_open pidfd_getfd nanosleep linkat flock fcntl newfstatat clone"}
declare -A errors=([mmap]=ENOMEM [munmap]=ENOMEM [madvise]=EINVAL [mprotect]=ENOMEM [openat]=EMFILE [read]=EIO [pread64]=EIO
  [write]=ENOSPC [fstat]=EOVERFLOW [close]=EIO [renameat2]=EXDEV [unlinkat]=EROFS [clone3]=EAGAIN [clone]=EAGAIN [flock]=ENOLCK [linkat]=EPERM [newfstatat]=EACCES [futex]=EINTR)
for call in $calls; do
  for arguments in "" threads; do
    fine=0
    first=$(($(calls_of_loader "$call" "$arguments") + 1))
    for ((n = first; n < first + last; n++)); do
      fault="$call:error=${errors[$call]:-EPERM}:when=$n"
      run with "$fault" "$LIB" "$arguments"
      check_files "$fault $arguments"
      if [ "$(cat "$work/with")" = "$(printf 'done\nstatus 0')" ]; then
        fine=$((fine + 1))
        continue
      fi
      run without "$fault" "" "$arguments"
      cmp -s "$work/with" "$work/without" && continue
      [ "$call" = write ] && grep -q "status 3" "$work/with" && continue # the program's own write
      [[ $call == clone* ]] && grep -q "^bad" "$work/with" && continue     # the program's own thread or child
      echo "$fault $arguments: $(tr '\n' ' ' <"$work/with")"
      failed=1
    done
    echo "$call${arguments:+ ($arguments)}: $fine of $last faults left no trace in the answer"
  done
done
exit $failed
