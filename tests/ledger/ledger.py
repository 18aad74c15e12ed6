#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ledger.py LIB TESTING_LIB LEDGER_PROGRAM KNOWN_PROGRAM [CALLS [SEEDS]]

Over glibc and over each preloaded allocator that is installed:
- at rate 1 the profile equals the program's own ledger, to the byte, in all four columns of every call site;
- at 512k the known totals are met within 5 standard deviations in each of SEEDS runs. Their mean is within 2 sigma/sqrt(SEEDS) over
  the seeds 1..SEEDS of the testing library (the same figures in each run of this test: 2 sigma would be a false alarm in one of five
  runs of other seeds), and within 5 with the seeds the library itself draws.
"""
import glob
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from profile import totals_by_leaf  # noqa: E402

LIB, TESTING_LIB, LEDGER, KNOWN = sys.argv[1:5]
CALLS = sys.argv[5] if len(sys.argv) > 5 else '1000000'
SEEDS = int(sys.argv[6]) if len(sys.argv) > 6 else 20
RATE = 512 << 10
EMULATOR = os.environ.get('EMULATOR', '').split()  # runs programs of another processor; -E names a variable of theirs
failures = 0


def allocators():
    yield 'glibc', []
    if EMULATOR:
        return  # the others are this machine's
    for name in ('libjemalloc.so.2', 'libtcmalloc.so.4', 'libtcmalloc_minimal.so.4', 'libmimalloc.so.2'):
        found = glob.glob('/usr/lib/*/' + name)
        if found:
            yield name, found[:1]


def run(library, program, args, preload, rate, directory):
    env = dict(os.environ, HEAPPROF_SAMPLE_RATE=str(rate), HEAPPROF_PERIOD='0', HEAPPROF_OUT=directory + '/p.pb.gz')
    preloaded = 'LD_PRELOAD=' + ' '.join([library] + preload)
    before = EMULATOR + ['-E', preloaded] if EMULATOR else ['env', preloaded]
    result = subprocess.run(before + [program] + args, env=env, capture_output=True, text=True, check=False)
    if result.returncode != 0 or result.stderr:
        raise SystemExit('FAIL: %s ended with %d: %s' % (program, result.returncode, result.stderr[:300]))
    return result.stdout, totals_by_leaf(directory + '/p.pb.gz')


def check_ledger(name, preload, directory):
    global failures
    text, totals = run(LIB, LEDGER, [CALLS, '1'] + (['no-pvalloc'] if 'jemalloc' in name else []), preload, 1, directory)
    wrong = 0
    for line in text.splitlines():
        site, *want = line.split()
        got = totals.get(site, [0, 0, 0, 0])
        if got != [int(x) for x in want]:
            wrong += 1
            print('FAIL %s %s: profile %s, ledger %s' % (name, site, got, want))
    failures += wrong
    print('%s: %d call sites equal to the byte, %d not' % (name, len(text.splitlines()) - wrong, wrong))


def deviation(size, count):
    p = -math.expm1(-size / RATE)
    return size * math.sqrt(count * (1 - p) / p)


def check_known(name, preload, seeds, directory, fixed):
    global failures
    n_b = 8 << 20
    truth = {('site_A', 1): (1024, 1 << 20), ('site_B', 1): (64, n_b), ('site_B', 3): (64, (n_b + 9) // 10),
             ('site_C', 1): (100 << 20, 1), ('site_C', 3): (100 << 20, 1)}
    sums = dict.fromkeys(truth, 0)
    for seed in range(1, seeds + 1):
        _, totals = run(TESTING_LIB if fixed else LIB, KNOWN, [str(seed)] if fixed else [], preload, RATE, directory)
        for (site, column), (size, count) in truth.items():
            got = totals.get(site, [0] * 4)[column]
            sums[site, column] += got
            if abs(got - size * count) > 5 * deviation(size, count) + 1:
                failures += 1
                print('FAIL %s %s column %d: %d, true %d' % (name, site, column, got, size * count))
        if totals.get('site_A', [0] * 4)[3] != 0:
            failures += 1
            print('FAIL %s: site_A holds freed blocks' % name)
    for (site, column), (size, count) in truth.items():
        sigma = deviation(size, count) / math.sqrt(seeds)
        off = sums[site, column] / seeds - size * count
        z = off / sigma if sigma > 1e-3 else off
        print('%s %s column %d: mean off by %.2f sigma/sqrt(%d)%s' % (name, site, column, z, seeds, ', fixed seeds' if fixed else ''))
        if abs(z) > (2 if fixed else 5):
            failures += 1
            print('FAIL %s %s: biased' % (name, site))


with tempfile.TemporaryDirectory() as directory:
    for name, preload in allocators():
        check_ledger(name, preload, directory)
        check_known(name, preload, SEEDS, directory, True)
        check_known(name, preload, SEEDS if name == 'glibc' else 2, directory, False)
print('%d failures' % failures)
sys.exit(1 if failures else 0)
