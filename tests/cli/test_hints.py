#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the command says when a right answer would be read wrongly: a dump after all was freed, several processes in a series,
one process summed with itself, tables of nothing.

usage: test_hints.py HEAPPROF LIBHEAPPROF.SO WORK_DIRECTORY

Each test_* function is one claim, on profiles made here.
"""
import json
import os
import shutil
import subprocess
import sys

from claims import expect, fresh_folder, run_all
from terminal import Terminal

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "web"))
from profile_maker import FOUR, Maker  # noqa: E402

HEAPPROF, LIBRARY, WORK = (os.path.abspath(path) for path in sys.argv[1:4])
START = 1_790_000_000_000_000_000
MINUTE = 60_000_000_000
LEAK = [("main", "/bin/app"), ("leak", "/bin/app")]


def heapprof(*arguments, **options):
    result = subprocess.run([HEAPPROF, *arguments], capture_output=True, text=True, timeout=900, cwd=WORK, **options)
    expect(result.returncode == 0, arguments, result.returncode, result.stderr)
    return result


def profile(name, minute, blocks, start=START, period=1, version="heapprof.version 0.1.0"):
    """A file with `blocks` blocks of 1000 bytes in use, twice as many allocated, of a process started at `start`."""
    now = start + minute * MINUTE
    maker = Maker(period=period, time_nanos=now, duration_nanos=now - start, comments=[version])
    maker.add(LEAK, [2 * blocks, 2000 * blocks, blocks, 1000 * blocks])
    maker.write(os.path.join(WORK, name))
    return name


def series(name, counts, **options):
    return [profile("%s.%02d.pb.gz" % (name, i), i + 1, count, **options) for i, count in enumerate(counts)]


def lines_with(text, part):
    return [line for line in text.splitlines() if part in line]


def test_top_says_how_old_the_allocators_figures_are():
    for age, said in (("0", ""), ("59", " (as of 59.0s before)"), ("3725", " (as of 1h02m before)"), ("99999999999999999999", None)):
        line = ("heapprof.reconcile inuse_bytes=100000 rss_anon_bytes=9000000 allocator=glibc allocator_inuse_bytes=2097152 "
                "allocator_free_bytes=4096 allocator_figures_age_seconds=" + age)
        text = heapprof("top", profile("age.pb.gz", 1, 100, version=line)).stdout
        shown = lines_with(text, "glibc counts 2.00MiB in use, 4.00KiB free")
        expect(len(shown) == 1 and (said is None or shown[0].endswith("free" + said)), age, text)


def on_terminal(columns, *arguments):
    """What a command prints on a terminal so wide."""
    text, status = Terminal([HEAPPROF, *arguments], WORK, columns, silent=True).finish()
    expect(status == 0, arguments, status, text)
    return text


def test_a_terminal_gets_names_that_fit_and_all_else_whole_ones():
    name = "store::Table<std::map<int, %s>, std::allocator<int> >::insert(std::pair<int const, std::string>&&)" % ("std::vector<int>, " * 40)
    files = []
    for i in range(3):
        maker = Maker(period=1, time_nanos=START + i * MINUTE, duration_nanos=(i + 1) * MINUTE)
        maker.add([("main", "/bin/app"), (name, "/bin/app")], [4, 4000, 2, 2000 + i])
        maker.write(os.path.join(WORK, "long.%d.pb.gz" % i))
        files.append("long.%d.pb.gz" % i)
    for arguments in (["top", files[0]], ["top", "-T", files[0]], ["top", "-l", files[0]], ["diff", files[0], files[1]], ["trend", *files]):
        for columns in (80, 120):
            text = on_terminal(columns, *arguments)
            expect(name not in text and "store::Table<" in text and "...>" in text and "::insert(" in text, columns, arguments, text)
            expect(all(len(line) <= (160 if columns == 80 else 120) for line in text.splitlines()), columns, arguments, text)
        for text in (on_terminal(80, *arguments, "--wide"), heapprof(*arguments).stdout):
            expect(name in text, arguments, text)
    expect(json.loads(on_terminal(80, "top", "--json", files[0]))["rows"][0]["function"] == name, "json")


def test_trend_leaves_out_the_dump_after_all_was_freed():
    files = series("freed", [100 + 50 * i for i in range(12)] + [1])
    text = heapprof("trend", *files)
    expect("Suspects: 1 " in text.stdout and "LEAK?" in text.stdout, text.stdout)
    said = lines_with(text.stdout, "Left out:")
    expect(len(said) == 1 and files[-1] in said[0] and "1000B after 635KiB" in said[0], said)
    report = json.loads(heapprof("trend", "--json", *files).stdout)
    expect(report["suspects"] == 1 and len(report["dumps"]) == 12, report)
    expect(report["left_out"]["file"] == files[-1] and report["left_out"]["time_nanos"] == START + 13 * MINUTE, report["left_out"])
    page = heapprof("view", "--trend", "-o", "page.html", *files)
    expect(len(lines_with(page.stderr, "left out of the trend: " + files[-1])) == 1, page.stderr)


def test_trend_keeps_every_dump_of_a_series_that_shrinks():
    files = series("shrinks", [1000, 800, 600, 400, 150])
    text = heapprof("trend", *files).stdout
    expect("Dumps:    5," in text and "Left out" not in text, text)
    report = json.loads(heapprof("trend", "--json", *files).stdout)
    expect(report["left_out"] is None and len(report["dumps"]) == 5, report)


def test_trend_leaves_out_the_files_of_the_peak():
    """A shell's asterisk brings them along; they are the highest moment so far, the same one in file after file."""
    files = series("steady", [100, 300, 120, 280, 110, 290])
    peaks = [profile("steady.%02d.peak.pb.gz" % i, 2, 300) for i in range(6)]
    given = sorted(files + peaks)
    report = json.loads(heapprof("trend", "--json", *given).stdout)
    expect([dump["file"] for dump in report["dumps"]] == files and report["files_of_peaks"] == 6, report)
    for arguments in (["trend"], ["view", "--trend", "-o", "page.html"]):
        said = heapprof(*arguments, *given).stderr
        expect(len(lines_with(said, "6 files of the peak left out")) == 1, said)
    report = json.loads(heapprof("trend", "--json", *peaks, *files[:2]).stdout)
    expect(len(report["dumps"]) == 8 and report["files_of_peaks"] == 0, report)


def test_top_points_to_what_was_allocated_only_where_there_is_any():
    maker = Maker(period=524288, time_nanos=START, duration_nanos=1000, comments=["heapprof.version 0.1.0"])
    maker.write(os.path.join(WORK, "nothing.pb.gz"))
    said = heapprof("top", "nothing.pb.gz").stderr
    expect(said.startswith("heapprof: nothing is in use in this profile. For what grows") and "alloc_space" not in said, said)


def test_trend_says_that_a_series_is_of_several_processes():
    first = series("first", [10, 20, 30])
    second = series("second", [10, 20, 30], start=START + 7)
    for arguments in (["trend"], ["trend", "--json"], ["view", "--trend", "-o", "page.html"]):
        said = lines_with(heapprof(*arguments, *first, *second).stderr, "of 2 processes")
        expect(len(said) == 1 and "from second.00.pb.gz on; 3 files of others left out" in said[0], arguments, said)
        expect(heapprof(*arguments, "--all-processes", *first, *second).stderr == "", arguments)
        said = lines_with(heapprof(*arguments, *first[:2], *second[:2]).stderr, "of 2 processes")
        expect(len(said) == 1 and said[0].endswith("give those of one"), arguments, said)
        expect(heapprof(*arguments, *first).stderr == "", arguments)
    others = series("others", [10, 20, 30], version="made elsewhere") + series("else", [10, 20, 30], start=START + 7, version="x")
    expect(heapprof("trend", *others).stderr == "", "files that do not say whose they are")


def test_top_says_when_no_stack_is_left():
    file = profile("filtered.pb.gz", 1, 100)
    for option, expected in ((["-f", "nobody"], True), (["-i", "main"], True), (["-f", "leak"], False), (["-i", "nobody"], False)):
        expect(("leave no stack" in heapprof("top", *option, file).stderr) == expected, option)


def test_top_says_that_it_summed_one_process_with_itself():
    files = series("one", [10, 20, 30])
    said = heapprof("top", files[2], files[0], files[1]).stderr
    expect(said.count("\n") == 1 and "3 profiles of one process were summed" in said and said.rstrip().endswith(files[2]), said)
    expect(heapprof("top", files[2]).stderr == "", "one file")
    other = profile("other.pb.gz", 1, 10, start=START + 7)
    expect(heapprof("top", files[2], other).stderr == "", "two processes")
    said = heapprof("top", files[1], other, files[2]).stderr
    expect("2 profiles of one process were summed" in said and files[2] in said, said)
    expect(heapprof("top", *series("unknown", [10, 20], version="made elsewhere")).stderr == "", "files that do not say whose they are")
    said = heapprof("merge", "-o", "sum.pb.gz", *files).stderr
    expect("3 profiles of one process were summed" in said, said)
    expect(heapprof("merge", "-o", "sum.pb.gz", other, files[0]).stderr == "", "merge of two processes")
    expect(heapprof("top", "sum.pb.gz", "sum.pb.gz").stderr == "", "sums")


def test_a_sum_says_of_how_many_programs_it_is():
    one, again = profile("one.pb.gz", 1, 100), profile("again.pb.gz", 1, 10, start=START + 7)
    maker = Maker(period=1, time_nanos=START, comments=["heapprof.version 0.1.0"])
    maker.modules["/opt/app/another-program"] = 7  # the build id is made of it
    maker.add([("main", "/opt/app/another-program")], [1, 100, 1, 100])
    maker.write(os.path.join(WORK, "another.pb.gz"))
    for files, said in (((one, again), "sum of 2 profiles"), ((one, "another.pb.gz", again), "sum of 3 profiles of 2 programs")):
        expect(lines_with(heapprof("top", *files).stdout, "sum of") == ["Comment:  " + said], files)


def test_top_of_nothing_says_what_else_there_is():
    def top(*arguments):
        return heapprof("top", *arguments).stderr

    maker = Maker()
    maker.add(LEAK, [7, 7000, 0, 0])
    maker.write(os.path.join(WORK, "none.pb.gz"))
    expect(lines_with(top("none.pb.gz"), "nothing is in use") and "-t alloc_space" in top("none.pb.gz"), top("none.pb.gz"))
    expect(top("none.pb.gz").count("\n") == 1, top("none.pb.gz"))
    expect(top("none.pb.gz", "-t", "alloc_space") == "", "what is there")
    expect(top("none.pb.gz", "--json") == "", "JSON")
    maker = Maker(types=FOUR[2:])
    maker.add(LEAK, [0, 0])
    maker.write(os.path.join(WORK, "heap.pb.gz"))
    expect("nothing is in use" in top("heap.pb.gz") and "alloc_space" not in top("heap.pb.gz"), top("heap.pb.gz"))
    maker = Maker(types=FOUR[:2])
    maker.add(LEAK, [0, 0])
    maker.write(os.path.join(WORK, "alloc.pb.gz"))
    expect("nothing of alloc_space" in top("alloc.pb.gz"), top("alloc.pb.gz"))
    expect(top(profile("some.pb.gz", 1, 1)) == "", "a full table")


def test_run_says_that_it_shows_what_was_allocated():
    program = os.path.join(WORK, "frees")
    with open(program + ".c", "w") as source:
        source.write("#include <stdlib.h>\nstatic void *volatile p;\n"
                     "int main(int argc, char **argv) { p = malloc(100000); if (argc == 1) free(p); (void)argv; return 0; }\n")
    subprocess.run(["gcc", "-O1", program + ".c", "-o", program], check=True)
    frees, keeps = (heapprof("run", "--library", LIBRARY, "--sample-rate=1", "--", program, *more).stderr for more in ([], ["keep"]))
    expect(len(lines_with(frees, "nothing was in use at the end; shown: allocated.")) == 1 and "alloc_space" in frees, frees)
    expect("nothing was in use" not in keeps, keeps)


def test_lines_are_found_for_names_that_the_library_wrote():
    """A profile has names by default, from the program's symbol table, but no lines: those who ask for lines get them looked up."""
    program = os.path.join(WORK, "lines")
    with open(program + ".c", "w") as source:
        source.write("#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\nvoid *kept[999];\n"
                     "int main(void) {\n  for (int i = 0; i < 40; i++) {\n    kept[i] = malloc(1000);\n"
                     "    if (i % 10 == 0) raise(SIGUSR2), usleep(20000);\n  }\n  return 0;\n}\n")
    subprocess.run(["gcc", "-g", "-O0", program + ".c", "-o", program], check=True)
    template = os.path.join(WORK, "lines.%n.pb.gz")
    heapprof("run", "-q", "--library", LIBRARY, "--sample-rate=1", "-o", template, "--", program)
    files = sorted(os.path.join(WORK, name) for name in os.listdir(WORK) if name.startswith("lines.") and name.endswith(".gz"))
    expect(len(files) >= 3, files)
    for arguments in (["top", files[-1]], ["trend", *files], ["diff", files[0], files[-1]]):
        expect("lines.c" not in heapprof(*arguments).stdout, arguments)
        expect("main %s.c:7" % program in heapprof(*arguments, "--lines").stdout, arguments)


def test_trend_of_several_processes_is_of_the_one_with_the_most_files():
    """Two that hold the same for ever, one with more than the other: together they look like growth."""
    small = series("small", [100] * 6)
    large = series("large", [900] * 7, start=START + 8 * MINUTE)
    both = json.loads(heapprof("trend", "--json", "--all-processes", *small, *large).stdout)
    expect(len(both["dumps"]) == 13 and both["rows"][0]["slope_bytes_per_hour"] > 0 and both["files_of_others"] == 0, both)
    one = json.loads(heapprof("trend", "--json", *small, *large).stdout)
    expect([dump["file"] for dump in one["dumps"]] == large and one["rows"][0]["bytes"] == [900000] * 7, one)
    expect(one["processes"] == 2 and one["files_of_others"] == 6 and one["suspects"] == 0, one)
    with open(os.path.join(WORK, small[0]), "rb") as piped:  # what cannot be read again is not left out
        text = heapprof("trend", "-", *small[1:], *large, stdin=piped).stdout
        expect("Dumps:    7," in text, text)
    with open(os.path.join(WORK, large[0]), "rb") as piped:
        result = heapprof("trend", "-", *small, *large[1:], stdin=piped)
        expect("Dumps:    13," in result.stdout and "give those of one" in result.stderr, result)


def test_children_of_fork_are_other_processes():
    """They have their parent's start: that the names have other process ids tells them apart, if it is no time that is in the names."""
    def of(names):
        return [profile(name, 1 + i, 100) for i, name in enumerate(names)]

    server = of(["heapprof.server.100.%d.pb.gz" % i for i in range(4)])
    children = of(["heapprof.server.%d.0.heap.pb.gz" % (101 + i) for i in range(8)])
    one = json.loads(heapprof("trend", "--json", *server, *children).stdout)
    expect(one["processes"] == 9 and [dump["file"] for dump in one["dumps"]] == server, one)
    expect("of one process" not in heapprof("top", server[0], *children).stderr, "children counted with themselves")
    expect("4 profiles of one process" in heapprof("top", *server, *children).stderr, "the server's own")
    times = of(["x.%d.%d.pb.gz" % (START // 10 ** 9 + 60 * i, i) for i in range(4)])
    other = of(["plain%d.pb.gz" % i for i in range(2)] + ["heapprof.server.%d.pb.gz" % i for i in range(2)])
    expect(json.loads(heapprof("trend", "--json", *times, *other).stdout)["processes"] == 1, "no process ids in the names")


def test_trend_says_when_there_are_too_few_samples():
    def hint(counts, **options):
        return lines_with(heapprof("trend", *series("few", counts, **options)).stdout, "too few samples to tell")

    few = [1, 2, 3, 4, 5]
    expect(hint(few, period=524288) == ["1 stack grows but has too few samples to tell: run longer or set HEAPPROF_SAMPLE_RATE=64k"],
           hint(few, period=524288))
    expect(hint(few) == ["1 stack grows but has too few samples to tell: run longer"], hint(few))
    expect(hint([5, 4, 3, 2, 1], period=524288) == [], "shrinks")
    expect(hint([100 + 50 * i for i in range(12)]) == [], "a suspect")


def main():
    fresh_folder(WORK)
    status = run_all(globals())
    shutil.rmtree(WORK, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
