#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The allocator's own figures in the profile, over each allocator that is installed, of a program that holds 20 MiB.

  figures.py LIBRARY PROGRAM
"""
import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import pprof_read  # noqa: E402

HELD = 1000 * (20 * 1024 * 1024 // 1000)
# Beyond what is held: headers and caches; what mimalloc calls in use is what it has committed.
SPARE = {'glibc': 4 << 20, 'jemalloc': 8 << 20, 'tcmalloc': 8 << 20, 'mimalloc': 64 << 20}
# jemalloc's own tables are 2.9 or, where its first piece comes to lie badly, 5.0 MB beside 4 of caches. Less than what is held all the same.
FREE = dict(SPARE, jemalloc=16 << 20)
ALLOCATORS = [('glibc', None), ('jemalloc', 'libjemalloc.so.2'), ('tcmalloc', 'libtcmalloc.so.4'), ('tcmalloc', 'libtcmalloc_minimal.so.4'),
              ('mimalloc', 'libmimalloc.so.2')]


def check(library, program, name, file, folder):
    preload = ' '.join([library] + ([file] if file else []))
    out = os.path.join(folder, 'p.pb.gz')
    environment = dict(os.environ, LD_PRELOAD=preload, HEAPPROF_OUT=out, HEAPPROF_SAMPLE_RATE='1', HEAPPROF_PERIOD='0', HEAPPROF_EXIT_DUMP='0')
    run = subprocess.run([program], env=environment, capture_output=True, text=True)
    if run.returncode != 0 or run.stderr:
        return f'status {run.returncode}: {run.stderr}'
    line = pprof_read.Profile(out).comment('heapprof.reconcile')
    # Figures of another moment would be of a heap without what is held; their age is that of the dump, on whatever machine.
    if line['allocator'] != name or int(line['allocator_figures_age_seconds']) > 600:
        return line
    inuse, free = int(line['allocator_inuse_bytes']), int(line['allocator_free_bytes'])
    if not HELD <= inuse <= HELD + SPARE[name] or free > FREE[name]:
        return f'{HELD} bytes are held: {line}'
    return None


def main():
    library, program = map(os.path.abspath, sys.argv[1:3])
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, file in ALLOCATORS:
            paths = glob.glob('/usr/lib/*/' + file) if file else [None]
            if not paths:
                print(f'{file}: not installed')
                continue
            fault = check(library, program, name, paths[0], folder)
            print(f'{file or name}: {fault or "right"}')
            wrong += fault is not None
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
