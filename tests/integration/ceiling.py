# SPDX-License-Identifier: MIT
"""HEAPPROF_MAX_MEMORY holds for a program with far more live samples than fit: what the profiler keeps resident stays below it,
what is lost is counted and said, the alloc columns stay exact, and memory comes back when the live set shrinks.

    ceiling.py LIBRARY PROGRAM [COUNT=1000000] [MEGABYTES=8]
"""

import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import pprof_read

# Resident beside the ceiling: the library's own code and static data, the page tables' rounding, the thread's stacks.
BESIDE_KIB = 2048
# What an empty live table keeps: each of its 64 shards its first 512 records' places, and a filter that fitted them.
KEPT_KIB = 2048
WARM = 1000  # of the program's blocks


def run(program, count, environment):
    out = subprocess.run([program, str(count)], env=dict(os.environ, **environment), capture_output=True, text=True, timeout=900)
    assert out.returncode == 0 and out.stderr == "", (out.returncode, out.stderr)
    steps = {}
    for line in out.stdout.splitlines():
        step, *numbers = line.split()
        steps[step] = dict(zip(("rss", "hwm", "own", "live", "lost"), map(int, numbers)))
    return steps


def expect(condition, *text):
    if not condition:
        print("failed:", *text)
        sys.exit(1)


def main():
    library, program = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1000000
    ceiling = (int(sys.argv[4]) if len(sys.argv) > 4 else 8) << 20
    with tempfile.TemporaryDirectory() as folder:
        plain = run(program, count, {})
        with_it = run(program, count, {
            "LD_PRELOAD": library, "HEAPPROF_SAMPLE_RATE": "1", "HEAPPROF_PERIOD": "0", "HEAPPROF_MAX_MEMORY": str(ceiling),
            "HEAPPROF_OUT": folder + "/%n.pb.gz"})
        profiles = [pprof_read.Profile(path) for path in sorted(glob.glob(folder + "/*.pb.gz"))]
    more = {step: with_it[step]["rss"] - plain[step]["rss"] for step in plain}
    more["peak"] = with_it["empty-dumped"]["hwm"] - plain["empty-dumped"]["hwm"]
    for step in plain:
        print("%-12s resident %8d KiB, of the profiler %6d, it says %6d; live samples %d, lost %d" % (
            step, with_it[step]["rss"], more[step], with_it[step]["own"] >> 10, with_it[step]["live"], with_it[step]["lost"]))
    print("peak of the profiler: %d KiB" % more["peak"])

    for step in plain:
        expect(with_it[step]["own"] <= ceiling, step, "the profiler says it has", with_it[step]["own"])
    for step in more:
        expect(more[step] <= (ceiling >> 10) + BESIDE_KIB, step, more[step], "KiB")
    full = with_it["full"]
    expect(full["lost"] > 0 and full["live"] > 0, "the ceiling was never reached:", full)
    expect(full["live"] + full["lost"] == with_it["warm"]["live"] + count, "live and lost samples do not add up:", full)
    expect(with_it["empty-dumped"]["live"] <= with_it["warm"]["live"], "live samples are left", with_it["empty-dumped"])
    for what in ({step: with_it[step]["own"] >> 10 for step in more if step != "peak"}, more):
        took, left = (what[step] - what["warm"] for step in ("full", "empty-dumped"))
        expect(took > 2 * KEPT_KIB * (ceiling >> 20) // 64, "took only", took, "KiB")
        expect(left <= KEPT_KIB, "memory does not come back: took", took, "left", left, "KiB")

    every = count + WARM
    expect(len(profiles) == 6, len(profiles), "profiles")
    whole, empty = profiles[1].totals("allocate_all"), profiles[3].totals("allocate_all")
    expect(whole[:2] == [every, 24 * every], "alloc columns", whole)
    expect(whole[2] == full["live"] - with_it["warm"]["live"], "in use", whole, full)
    expect(empty[:2] == [every, 24 * every] and empty[2:] == [0, 0], "after freeing", empty)
    expect(any("heapprof.lost" in c and str(full["lost"]) in c for c in profiles[1].comments), profiles[1].comments)


main()
