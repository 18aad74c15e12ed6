#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""symbolize against go tool pprof: 10 000 stacks of 40 frames over 50 libraries with debug information.

usage: bench_symbolize.py HEAPPROF MAKE_PROFILE WORK_DIRECTORY [ROUNDS]

Prints seconds and processor seconds of both, interleaved, and the ratios of the medians; also with the page cache dropped if that is allowed.
Asserts nothing: figures are for a person.
"""
import os
import resource
import statistics
import subprocess
import sys
import time

LIBRARIES = 50
FUNCTIONS = 60


def source(library):
    lines = ["#include <string>", "#include <vector>", "namespace lib%d {" % library]
    for i in range(FUNCTIONS):
        lines += ["static inline int small_%d(const std::vector<int> &c) { int t = %d; for (int x : c) t += x; return t; }" % (i, i),
                  "static inline int middle_%d(std::vector<int> &c, int n) { c.push_back(n); return small_%d(c) * 2; }" % (i, i),
                  "__attribute__((noinline)) int function_%d(int n, const std::string &s) {" % i,
                  "  std::vector<int> c(s.begin(), s.end()); int t = middle_%d(c, n);" % i,
                  "  for (int k = 0; k < n; k++) t += middle_%d(c, k) + (int)s.find('x');" % i,
                  "  return t; }"]
    lines.append("}")
    return "\n".join(lines)


def build(work):
    os.makedirs(work, exist_ok=True)
    paths = []
    for library in range(LIBRARIES):
        path = "%s/libbench%d.so" % (work, library)
        paths.append(path)
        if os.path.exists(path):
            continue
        with open(work + "/source.cc", "w") as out:
            out.write(source(library))
        subprocess.run(["g++", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", work + "/source.cc", "-o", path], check=True)
    return paths


def timed(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def drop_caches():
    try:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as out:
            out.write("3")
        return True
    except OSError:
        return False


def main():
    heapprof, make_profile, work = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    raw = work + "/raw.pb.gz"
    subprocess.run([make_profile, "addresses", "10000", "40", raw] + build(work), check=True)
    ours = [heapprof, "symbolize", "-q", raw, "-o", work + "/ours.pb.gz"]
    theirs = ["go", "tool", "pprof", "-symbolize=local", "-proto", "-output=" + work + "/theirs.pb.gz", raw]
    for state in ("warm", "cold"):
        runs = []
        for number in range(rounds):
            if state == "cold" and not drop_caches():
                print("cold: not allowed to drop the page cache")
                break
            mine = timed(ours)
            if state == "cold":
                drop_caches()
            other = timed(theirs)
            runs.append(mine + other)
            print("%s %d: heapprof %.2f s (%.2f s of processor), pprof %.2f s (%.2f s): %.1f times, %.1f in processor time" %
                  (state, number, *mine, *other, other[0] / mine[0], other[1] / mine[1]), flush=True)
        if runs:
            medians = [statistics.median(run[i] for run in runs) for i in range(4)]
            print("%s, medians of %d: heapprof %.2f s (%.2f s), pprof %.2f s (%.2f s): %.1f times, %.1f in processor time" %
                  (state, len(runs), *medians, medians[2] / medians[0], medians[3] / medians[1]))


if __name__ == "__main__":
    main()
