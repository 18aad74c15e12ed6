#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""top on a symbolized profile of 100 000 rows, against the time of reading it and against go tool pprof -top.

Reading is measured twice: "libraries" is zlib and protobuf-c alone, one after the other in one thread, nothing kept; "read" is the
command's own reader, which uses two processors and is part of top.

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
    commands = {"libraries": [make_profile, "unpack", profile], "read": [make_profile, "read", profile], "top": [heapprof, "top", profile],
                "read again": [make_profile, "read", profile],  # the control: what two equal things differ by
                "top -n 0": [heapprof, "top", "-n", "0", profile], "top --lines": [heapprof, "top", "--lines", profile],
                "pprof -top": ["go", "tool", "pprof", "-symbolize=none", "-top", profile]}
    found = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            if number == 0 or name != "pprof -top":  # takes a minute: once
                found[name].append(timed(command))
    print("%d rows of %d frames, %.1f MB gzipped, %d rounds" % (ROWS, DEPTH, os.path.getsize(profile) / 1e6, rounds))
    def medians(name):
        return [statistics.median(run[i] for run in found[name]) for i in range(3)]

    libraries, read = medians("libraries"), medians("read")
    for name in found:
        wall, processor, memory = medians(name)
        print("%-12s %6.3f s, %5.2f of the libraries', %5.2f of reading; processor %6.3f s, %5.2f and %5.2f; %4.0f MiB" %
              (name, wall, wall / libraries[0], wall / read[0], processor, processor / libraries[1], processor / read[1], memory))


if __name__ == "__main__":
    main()
