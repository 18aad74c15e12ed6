#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""symbolize where binaries are odd: several segments with code, the debug file alone, lines without functions, damaged lines; and code
that is in no binary.

usage: test_symbol_edges.py HEAPPROF LIBHEAPPROF.SO WORK_DIRECTORY
"""
import gzip
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "web"))
from profile_maker import chunk, number, packed  # noqa: E402

TWO_SEGMENTS = """#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) void first(void) { kept = malloc(1001); }
__attribute__((noinline, section("second_code,\\"awx\\",@progbits#"))) void second(void) { kept = malloc(1002); }
"""
CALLS = "void first(void); void second(void); int main(void) { first(); second(); return 0; }\n"
ASSEMBLER = """.text
.file 1 "odd.c"
.globl negative
.type negative,@function
negative:
.loc 1 4294967293
 nop
 nop
.size negative, .-negative
.globl label
label:
.loc 1 7
 nop
 nop
"""
LABELS = """.section .init,"ax"
.globl _init
.type _init,@function
_init:
 nop
 nop
.text
 nop
 nop
.globl covering
.type covering,@function
covering:
 nop
inside:
 nop
 nop
.size covering, .-covering
.globl sizeless
sizeless:
 nop
 nop
"""


class Checks:
    def __init__(self):
        self.done = self.bad = 0

    def equal(self, what, got, wanted):
        self.done += 1
        if got != wanted:
            self.bad += 1
            print("%s: %r instead of %r" % (what, got, wanted))


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit("%s\n%s%s" % (" ".join(command), result.stdout, result.stderr))
    return result.stdout


def write(path, text):
    with open(path, "w") as out:
        out.write(text)


def lines_of(heapprof, profile, *options):
    """{function: (file, line)} of the rows."""
    run(heapprof, "symbolize", "--quiet", "--force", profile, "-o", profile + ".named", *options)
    report = json.loads(run(heapprof, "top", "--json", "--lines", "-n", "0", "-t", "inuse_space", profile + ".named"))
    return {row["function"]: (os.path.basename(row["file"]), row["line"]) for row in report["rows"]}


def several_segments(checks, heapprof, library, work):
    for linker in ("bfd", "gold", "lld"):
        if shutil.which("ld." + linker) is None:
            continue
        folder = os.path.join(work, linker)
        os.makedirs(folder)
        write(folder + "/two.c", TWO_SEGMENTS)
        write(folder + "/main.c", CALLS)
        run("gcc", "-g", "-O1", "-shared", "-fPIC", "-fuse-ld=" + linker, "-Wl,--build-id", "-o", folder + "/libtwo.so", folder + "/two.c")
        run("gcc", "-o", folder + "/program", folder + "/main.c", "-L" + folder, "-ltwo", "-Wl,-rpath," + folder)
        raw = folder + "/raw.pb.gz"
        run(folder + "/program", env=dict(os.environ, LD_PRELOAD=library, HEAPPROF_SAMPLE_RATE="1", HEAPPROF_OUT=raw, HEAPPROF_SYMBOLS="0"))
        wanted = {"first": ("two.c", 3), "second": ("two.c", 4)}
        named = lines_of(heapprof, raw)
        checks.equal(linker + ", the library", {n: named.get(n) for n in wanted}, wanted)
        identity = run("readelf", "-n", folder + "/libtwo.so").partition("Build ID: ")[2].split()[0]
        debug = "%s/debug/.build-id/%s/%s.debug" % (folder, identity[:2], identity[2:])
        os.makedirs(os.path.dirname(debug))
        run("objcopy", "--only-keep-debug", folder + "/libtwo.so", debug)
        os.unlink(folder + "/libtwo.so")
        named = lines_of(heapprof, raw, "--debug-dir", folder + "/debug")
        checks.equal(linker + ", its debug file alone", {n: named.get(n) for n in wanted}, wanted)


def profile_of(path, binary, addresses, build_id=""):
    """A profile of bare addresses in a file that is linked at 0x1000 and mapped at 0x7f0000001000."""
    strings = ["", "inuse_space", "bytes", binary, build_id]
    out = chunk(1, number(1, 1) + number(2, 2)) + chunk(3, number(1, 1) + number(2, 0x7f0000001000) + number(3, 0x7f0000002000)
                                                        + number(4, 0x1000) + number(5, 3) + number(6, 4))
    for i, address in enumerate(addresses, 1):
        out += chunk(2, packed(1, [i]) + packed(2, [8]))
        out += chunk(4, number(1, i) + number(2, 1) + number(3, 0x7f0000000000 + address))
    out += b"".join(chunk(6, text.encode()) for text in strings)
    with open(path, "wb") as stream:
        stream.write(gzip.compress(out))


def odd_lines(checks, heapprof, work):
    """A line below 0 is none (found by fuzzing); a label has no entry in DWARF, but a line."""
    write(work + "/odd.s", ASSEMBLER)
    binary = work + "/libodd.so"
    run("gcc", "-g", "-shared", "-nostdlib", "-o", binary, work + "/odd.s", cwd=work)
    symbols = {fields[2]: int(fields[0], 16) for fields in (line.split() for line in run("nm", binary).splitlines()) if len(fields) == 3}
    profile_of(work + "/odd.pb.gz", binary, [symbols["negative"], symbols["label"]])
    checks.equal("odd lines", lines_of(heapprof, work + "/odd.pb.gz"), {"negative": ("odd.c", 0), "label": ("odd.c", 7)})


def labels(checks, heapprof, work):
    """Without debug information: code is in the function that covers it, not in a label there; a name without a size ends with its section."""
    write(work + "/labels.s", LABELS)
    binary = work + "/liblabels.so"
    run("gcc", "-shared", "-nostdlib", "-o", binary, work + "/labels.s")
    symbols = {fields[2]: int(fields[0], 16) for fields in (line.split() for line in run("nm", binary).splitlines()) if len(fields) == 3}
    places = {"covering": symbols["inside"] + 1, "_init": symbols["_init"] + 1, "sizeless": symbols["sizeless"] + 1}
    for name, address in places.items():
        profile_of(work + "/labels.pb.gz", binary, [address])
        checks.equal(name, list(lines_of(heapprof, work + "/labels.pb.gz")), [name])
    profile_of(work + "/labels.pb.gz", binary, [symbols["_init"] + 3])  # the first code of .text, which has no name
    checks.equal("behind the section", lines_of(heapprof, work + "/labels.pb.gz"), {"0x%x liblabels.so+0x%x" % (0x7f0000000000 + symbols["_init"] + 3, symbols["_init"] + 3): ("", 0)})


def build_ids(checks, heapprof, work):
    """In capital letters a build id is one as well: that of another binary is refused."""
    write(work + "/named.s", LABELS)
    binary = work + "/libnamed.so"
    run("gcc", "-shared", "-nostdlib", "-Wl,--build-id", "-o", binary, work + "/named.s")
    own = run("readelf", "-n", binary).partition("Build ID: ")[2].split()[0]
    address = next(int(line.split()[0], 16) for line in run("nm", binary).splitlines() if line.endswith(" covering"))
    for build_id, name in ((own, "covering"), (own.upper(), "covering"), ("deadbeef", "0x%x libnamed.so+0x%x"), ("DEADBEEF", "0x%x libnamed.so+0x%x")):
        profile_of(work + "/named.pb.gz", binary, [address], build_id)
        wanted = name % (0x7f0000000000 + address, address) if "%" in name else name
        checks.equal("build id " + build_id, list(lines_of(heapprof, work + "/named.pb.gz")), [wanted])


def generated_code(checks, heapprof, work):
    """Code of a JIT has its names in /tmp/perf-PID.map; PID is in the profile's name, wherever there are other numbers."""
    pid, when = os.getpid(), 1_790_000_000
    out = chunk(1, number(1, 1) + number(2, 2)) + chunk(2, packed(1, [1]) + packed(2, [8])) + chunk(4, number(1, 1) + number(3, 0x70001010))
    out += b"".join(chunk(6, text) for text in (b"", b"inuse_space", b"bytes")) + number(9, when * 10**9)
    names = "/tmp/perf-%d.map" % pid
    write(names, "70001000 100 jitted here\n")
    try:
        for name, is_known in (("heapprof.node.%d.3.pb.gz" % pid, True), ("heapprof.python3.11.%d.0.pb.gz" % pid, True),
                               ("heapprof.a.7.8.b.%d.12.heap.pb.gz" % pid, True), ("heapprof.node.%d.3.peak.pb.gz" % pid, True),
                               ("heapprof.node.4.%d.pb.gz" % pid, False), ("node.pb.gz", False), ("node.%d.0" % pid, False),
                               ("heapprof.node.%d.3.pb.gz" % when, False)):
            profile = os.path.join(work, name)
            with gzip.open(profile, "wb") as f:
                f.write(out)
            wanted = {"jitted here": ("", 0)} if is_known else {"0x70001010": ("", 0)}
            checks.equal(name, lines_of(heapprof, profile), wanted)
            checks.equal(name + " with --pid", lines_of(heapprof, profile, "--pid=%d" % pid), {"jitted here": ("", 0)})
    finally:
        os.unlink(names)


def main():
    heapprof, library, work = sys.argv[1:4]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    checks = Checks()
    several_segments(checks, heapprof, library, work)
    odd_lines(checks, heapprof, work)
    labels(checks, heapprof, work)
    build_ids(checks, heapprof, work)
    generated_code(checks, heapprof, work)
    print("%d checks, %d bad" % (checks.done, checks.bad))
    return 1 if checks.bad or not checks.done else 0


if __name__ == "__main__":
    sys.exit(main())
