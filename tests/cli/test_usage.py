#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the command says to bad usage, bad settings and unusual places: one line why, and its status.

usage: test_usage.py HEAPPROF LIBHEAPPROF.SO WORK_DIRECTORY

Each test_* function is one claim.
"""
import json
import os
import re
import shutil
import subprocess
import sys

from claims import expect, fresh_folder, run_all

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "web"))
from profile_maker import Maker, chunk, number, packed  # noqa: E402

HEAPPROF, LIBRARY, WORK = (os.path.abspath(path) for path in sys.argv[1:4])
STACK = [("main", "/bin/app"), ("leak", "/bin/app")]


def heapprof(*arguments, command=HEAPPROF, **variables):
    return subprocess.run([command, *arguments], capture_output=True, text=True, timeout=900, cwd=WORK, env=dict(os.environ, **variables))


def refuses(status, words, *arguments, **options):
    result = heapprof(*arguments, **options)
    expect(result.returncode == status, arguments, "ended with", result.returncode, result.stderr)
    expect(len(result.stderr.splitlines()) == 1 and words in result.stderr and not result.stdout, arguments, "said", result.stderr)


def profile(name, blocks, period=1):
    now = 1_790_000_000_000_000_000
    maker = Maker(period=period, time_nanos=now, duration_nanos=1000, comments=["heapprof.version 0.1.0"])
    maker.add(STACK, [2 * blocks, 2000 * blocks, blocks, 1000 * blocks])
    maker.write(os.path.join(WORK, name))
    return name


def test_version_is_one_line():
    result = heapprof("--version")
    expect(result.returncode == 0 and re.fullmatch(r"heapprof \d+\.\d+\.\d+\n", result.stdout), result)


def test_bad_usage_ends_with_2_and_one_line():
    for words, arguments in (("standard input can be one of the two only", ("diff", "-", "-")),
                             ("-t x is no number of seconds", ("dump", "-t", "x", "1")),
                             ("-t x is no number of seconds", ("serve", "-t", "x", "1")),
                             ("--trend needs at least 3 profiles", ("view", "--trend", "one.pb.gz"))):
        refuses(2, words, *arguments)


def test_the_limit_of_what_is_read():
    name = profile("limit.pb.gz", 5)
    for bad in ("x", "0", "1t", "-1", "99999999999999999999"):
        refuses(2, "HEAPPROF_READ_LIMIT=%s is no size" % bad, "top", name, HEAPPROF_READ_LIMIT=bad)
    refuses(1, "limit.pb.gz: takes more than 10.0KiB of memory (HEAPPROF_READ_LIMIT raises the limit)", "top", name, HEAPPROF_READ_LIMIT="10k")
    refuses(1, "limit.pb.gz: more than 16B of profile (HEAPPROF_READ_LIMIT raises the limit)", "top", name, HEAPPROF_READ_LIMIT="16")
    for enough in ("1m", "1M", "1000k", "1g"):
        expect(heapprof("top", name, HEAPPROF_READ_LIMIT=enough).returncode == 0, enough)


def test_a_difference_in_json_has_both_names_and_totals():
    result = heapprof("diff", "--json", profile("old.pb.gz", 5), profile("new.pb.gz", 8))
    expect(result.returncode == 0, result)
    report = json.loads(result.stdout)
    found = [report[key] for key in ("old", "new", "old_total", "new_total")]
    expect(found == ["old.pb.gz", "new.pb.gz", 5000, 8000], found)


def test_profiles_without_common_types_are_both_named():
    """diff takes the new side first: "the first profile" was the second one of the call."""
    maker = Maker(types=[("cpu", "nanoseconds")])
    maker.add(STACK, [7])
    maker.write(os.path.join(WORK, "cpu.pb.gz"))
    refuses(1, "heap.pb.gz: no sample type cpu in nanoseconds, which cpu.pb.gz has", "diff", profile("heap.pb.gz", 5), "cpu.pb.gz")
    refuses(1, "cpu.pb.gz: no sample type alloc_objects in count, which heap.pb.gz has", "merge", "heap.pb.gz", "cpu.pb.gz", "-o", "out.pb.gz")


def test_figures_of_one_process_are_not_the_sums():
    """Two runs of one program at rate 1 may have the same; the sum has neither's."""
    figures = ["heapprof.sampling rate_bytes=1 samples=5 live_samples=3 stacks=1", "heapprof.totals inuse_bytes=10",
               "heapprof.reconcile inuse_bytes=10 rss_anon_bytes=50", "heapprof.unseen resident_bytes=7"]
    maker = Maker(period=1, comments=["heapprof.version 0.1.0", *figures, "heapprof.lost reentrant=1", "by hand"])
    maker.add(STACK, [1, 10, 1, 10])
    maker.write(os.path.join(WORK, "figures.pb.gz"))
    expect("5 samples" in heapprof("top", "figures.pb.gz").stdout)
    comments = json.loads(heapprof("top", "--json", "figures.pb.gz", "figures.pb.gz").stdout)["comments"]
    expect(comments == ["heapprof.version 0.1.0", "heapprof.lost reentrant=1", "by hand", "sum of 2 profiles"], comments)


def test_a_difference_by_line_has_the_errors_of_both_sides():
    """Code without a name is known by its place in the file, wherever each side was loaded."""
    def bare(name, start, blocks):
        strings = ["", "inuse_objects", "count", "inuse_space", "bytes", "space", "/no/such/lib.so", "aabb"]
        out = b"".join(chunk(1, number(1, i) + number(2, i + 1)) for i in (1, 3)) + chunk(2, packed(1, [1]) + packed(2, [blocks, 50000 * blocks]))
        out += chunk(3, number(1, 1) + number(2, start) + number(3, start + 4096) + number(5, 6) + number(6, 7))
        out += chunk(4, number(1, 1) + number(2, 1) + number(3, start + 16)) + b"".join(chunk(6, text.encode()) for text in strings)
        with open(os.path.join(WORK, name), "wb") as file:
            file.write(out + chunk(11, number(1, 5) + number(2, 4)) + number(12, 524288))
        return name

    old, new = bare("old.pb", 0x7f0000000000, 1000), bare("new.pb", 0x7f1000000000, 1010)
    report = json.loads(heapprof("diff", "--json", "--lines", old, new).stdout)
    row = report["rows"][0]
    expect(row["function"] == "0x7f1000000010 lib.so+0x10" and row["flat"] == 500000, row)
    expect(row["flat_error"] == row["cum_error"] == report["shown_total_error"] > 0, report)


def test_a_difference_as_a_profile_tells_no_errors():
    """Two runs with 79 and 66 MiB on a stack: the difference alone would say 13 +- 0.9, and the truth is +- 3."""
    old, new = profile("old.pb.gz", 5000, period=524288), profile("new.pb.gz", 8000, period=524288)
    expect(json.loads(heapprof("diff", "--json", old, new).stdout)["rows"][0]["flat_error"] > 0)
    expect(heapprof("diff", old, new, "-o", "difference.pb.gz").returncode == 0)
    report = json.loads(heapprof("top", "--json", "difference.pb.gz").stdout)
    row = report["rows"][0]
    expect([row["flat"], row["flat_error"], row["cum_error"], report["shown_total_error"]] == [3000000, None, None, None], report)
    expect("+-" not in heapprof("top", "difference.pb.gz").stdout.split("Type:")[1])
    exact = heapprof("diff", profile("old.pb.gz", 5), profile("new.pb.gz", 8), "-o", "difference.pb.gz")
    row = json.loads(heapprof("top", "--json", "difference.pb.gz").stdout)["rows"][0]
    expect(exact.returncode == 0 and row["flat_error"] == 0, row)


def test_a_library_whose_path_the_loader_would_cut_is_refused():
    for name in ("a b", "a:b"):
        folder = fresh_folder(os.path.join(WORK, name))
        shutil.copy(LIBRARY, folder)
        refuses(1, "cannot be preloaded: the loader takes spaces and colons", "run", "--library=%s/libheapprof.so" % folder, "--", "true")


def test_the_library_is_found_beside_the_command_or_said_to_be_missing():
    folder = fresh_folder(os.path.join(WORK, "alone"))
    alone = shutil.copy(HEAPPROF, folder)
    refuses(1, "libheapprof.so is neither beside the command (%s, ../lib) nor in " % folder, "run", "--", "true", command=alone)
    shutil.copy(LIBRARY, folder)
    expect(heapprof("run", "--", "true", command=alone).returncode == 0)
    refuses(1, "nowhere.so: No such file or directory", "run", "--library=nowhere.so", "--", "true")


if __name__ == "__main__":
    fresh_folder(WORK)
    sys.exit(run_all(globals(), sys.argv[4] if len(sys.argv) > 4 else ""))
