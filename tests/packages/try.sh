#!/bin/sh
# SPDX-License-Identifier: MIT
# In a bare system, from the folder of the unpacked tarball: programs under its library give what they give alone, and the names
# of the functions that allocate are in the profiles. Run by .ci/packages.
set -eu
cd "$(dirname "$0")"
library=$(find "$PWD" -name libheapprof.so)
under() { # OUT COMMAND...
  out=$1
  shift
  env LD_PRELOAD="$library" HEAPPROF_SAMPLE_RATE=1 HEAPPROF_OUT="$PWD/$out.pb.gz" HEAPPROF_PERIOD=0 "$@" # not the shell's own true
}
names() { # OUT NAME...: in the profile
  file=$PWD/$1.pb.gz
  shift
  for name in "$@"; do
    gzip -dc "$file" | grep -aq "$name" || { echo "$file: no $name"; exit 1; }
  done
}

getconf GNU_LIBC_VERSION

# A program that has neither libdl nor libpthread.
under true true
names true true

gcc -g -O1 -shared -fPIC plugin.c -o plugin.so -pthread
gcc -g -O1 opener.c -o opener -ldl
under opener ./opener ./plugin.so >opener.out 2>opener.err
grep -x "plugin 0" opener.out
test ! -s opener.err
names opener opener_main plugin_thread

g++ -g -O1 containers.cc -o containers -pthread
./containers >alone.out
under containers ./containers >under.out 2>under.err
cmp alone.out under.out
test ! -s under.err
names containers basic_string containers_thread

# shellcheck disable=SC2016 # perl's
perl_program='my %h; $h{$_} = "x" x ($_ % 300) for 1 .. 20000; print join(",", map { length $h{$_} } sort keys %h)'
perl -e "$perl_program" >alone.out
under perl perl -e "$perl_program" >under.out
cmp alone.out under.out
names perl Perl_

python3 -c 'import json, threading; print(json.dumps(list(range(9999))))' >alone.out
under python python3 -c 'import json, threading; print(json.dumps(list(range(9999))))' >under.out
cmp alone.out under.out
names python Py
