#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""top on a symbolized profile of 100 000 rows, against the time of reading it and against go tool pprof -top.

usage: bench_top.py HEAPPROF MAKE_PROFILE WORK_DIRECTORY [ROUNDS]

Rounds are interleaved; prints medians of wall and processor seconds, the ratios of the medians, and the largest memory. Asserts nothing.
"""
import os
import statistics
import subprocess
import sys
import time

ROWS, DEPTH, FUNCTIONS = 100000, 30, 100000


def timed(command):
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit("%s: %d" % (command, child.returncode))
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    heapprof, make_profile, work = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 9
    os.makedirs(work, exist_ok=True)
    profile = work + "/rows.pb.gz"
    subprocess.run([make_profile, "rows", str(ROWS), str(DEPTH), str(FUNCTIONS), profile], check=True)
    commands = {"read": [make_profile, "read", profile], "top": [heapprof, "top", profile],
                "read again": [make_profile, "read", profile],  # the control: what two equal things differ by
                "top -n 0": [heapprof, "top", "-n", "0", profile], "top --lines": [heapprof, "top", "--lines", profile],
                "pprof -top": ["go", "tool", "pprof", "-symbolize=none", "-top", profile]}
    found = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            if number == 0 or name != "pprof -top":  # takes a minute: once
                found[name].append(timed(command))
    print("%d rows of %d frames, %.1f MB gzipped, %d rounds" % (ROWS, DEPTH, os.path.getsize(profile) / 1e6, rounds))
    base = [statistics.median(run[i] for run in found["read"]) for i in (0, 1)]
    for name, runs in found.items():
        wall, processor, memory = (statistics.median(run[i] for run in runs) for i in range(3))
        print("%-12s %6.2f s, %.2f of reading; processor %6.2f s, %.2f of reading; %4.0f MiB" %
              (name, wall, wall / base[0], processor, processor / base[1], memory))


if __name__ == "__main__":
    main()
