#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""symbolize, top and top --lines on a program of known functions: every name, every line, every byte.

usage: test_symbols.py HEAPPROF LIBHEAPPROF.SO WORK_DIRECTORY [--compare]

The sources in symbols/ say in comments which line of which function allocates how much. The program is built as PIE and not, with
gcc and clang (DWARF 4 and 5), with debug information inside, beside it by .gnu_debuglink, in a .build-id tree, and in a folder
named by --debug-dir, and run at rate 1, so that every figure must be exact. With --compare, pprof must say the same. Where Go is, what
its pprof says otherwise when it symbolizes itself must be explained (explain_pprof.py), and GNU addr2line must have our lines.
"""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ORIGINALS = os.path.join(HERE, "symbols")


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit("%s\n%s%s" % (" ".join(command), result.stdout, result.stderr))
    return result.stdout


def expectations(with_rust):
    """[(function, file, line, bytes)] from the comments."""
    expected = []
    for name in ("alpha.cc", "beta.c", "main.c") + (("rusty.rs",) if with_rust else ()):
        with open(os.path.join(ORIGINALS, name)) as source:
            for number, line in enumerate(source, 1):
                if "//" not in line and "/*" not in line:
                    continue
                for function, size in re.findall(r"@ (\S.*?) (\d+)(?= @|\s|$)", line):
                    if size.isdigit() and function != "NAME":
                        expected.append((function, name, number, int(size)))
    return expected


def build(folder, compiler, flags, rust):
    os.makedirs(folder)
    cc, cxx = compiler
    cflags = ["-g", "-O2"] + flags
    pic = [f for f in cflags if f not in ("-no-pie", "-fno-pie")] + ["-fPIC", "-shared"]
    run(cxx, *pic, os.path.abspath("symbols/alpha.cc"), "-o", folder + "/libalpha.so")
    run(cc, *pic, os.path.abspath("symbols/beta.c"), "-o", folder + "/libbeta.so")
    libraries = ["-lalpha", "-lbeta"]
    defines = []
    if rust:
        run("rustc", "-g", "-O", *(["-C", "symbol-mangling-version=v0"] if rust == "v0" else []), "-C", "panic=abort", os.path.abspath("symbols/rusty.rs"), "-o", folder + "/librusty.so")
        libraries.append("-lrusty")
        defines.append("-DWITH_RUST")
    run(cc, *cflags, *defines, os.path.abspath("symbols/main.c"), "-o", folder + "/prog", "-L" + folder, *libraries,
        "-Wl,-rpath," + folder, "-Wl,--build-id")
    return [name for name in sorted(os.listdir(folder))]


def profile(folder, library):
    out = folder + "/raw.pb.gz"
    environment = dict(os.environ, LD_PRELOAD=library, HEAPPROF_SAMPLE_RATE="1", HEAPPROF_OUT=out, HEAPPROF_SYMBOLS="0")
    environment.pop("DEBUGINFOD_URLS", None)
    run(folder + "/prog", env=environment)
    return out


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path)).group(1)


def separate(folder, names, how, debug_folder):
    """Strips the binaries; the debug information goes where `how` says. Returns the options symbolize needs."""
    for name in names:
        path = os.path.join(folder, name)
        debug = path + ".debug"
        identity = build_id(path)
        run("objcopy", "--only-keep-debug", path, debug)
        if how == "debuglink":
            run("objcopy", "--strip-all", "--add-gnu-debuglink=" + debug, path)
            continue
        run("objcopy", "--strip-all", path)
        target = "%s/.build-id/%s/%s.debug" % (debug_folder, identity[:2], identity[2:])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.move(debug, target)
    return [] if how == "debuglink" else ["--debug-dir", debug_folder]


def check(what, heapprof, symbolized, expected):
    report = json.loads(run(heapprof, "top", "--json", "--lines", "-n", "0", "-t", "alloc_space", symbolized))
    found = {}
    for row in report["rows"]:
        found[(row["function"], os.path.basename(row["file"]), row["line"])] = row["flat"]
        if row["function"].startswith(("alpha", "beta", "main")) and os.path.dirname(row["file"]) != os.path.realpath("symbols"):
            sys.exit("%s: %s is in %s" % (what, row["function"], row["file"]))
    bad = 0
    wanted = {}
    for function, name, line, size in expected:
        wanted[(function, name, line)] = wanted.get((function, name, line), 0) + size
    for (function, name, line), size in sorted(wanted.items()):
        if function.endswith("*"):
            names = [k[0] for k in found if k[1:] == (name, line) and k[0].startswith(function[:-1])]
            function = names[0] if names else function
        got = found.get((function, name, line))
        if got != size:
            bad += 1
            others = [k[0] for k in found if k[1:] == (name, line)]
            print("%s: %s %s:%d: %s bytes instead of %d; found there: %s" % (what, function, name, line, got, size, others))
    return len(wanted), bad


def explain(heapprof, raw):
    result = subprocess.run([sys.executable, os.path.join(HERE, "explain_pprof.py"), heapprof, raw], capture_output=True, text=True)
    if result.returncode != 0:
        print(result.stdout + result.stderr)
    return result.returncode == 0


def variants(work):
    gcc, clang = ("gcc", "g++"), ("clang", "clang++")
    rust = "legacy" if shutil.which("rustc") else None
    yield "gcc PIE", gcc, [], rust, None
    yield "gcc PIE rust v0", gcc, [], "v0" if rust else None, None
    yield "gcc not PIE", gcc, ["-no-pie", "-fno-pie"], rust, None
    yield "gcc DWARF 4", gcc, ["-gdwarf-4"], None, None
    yield "gcc compressed", gcc, ["-gz"], None, None
    yield "gcc split DWARF", gcc, ["-gsplit-dwarf"], None, None
    yield "gcc debuglink", gcc, [], rust, "debuglink"
    yield "gcc build-id folder", gcc, ["-no-pie", "-fno-pie"], rust, "build-id"
    if shutil.which("clang"):
        yield "clang PIE", clang, [], rust, None
        yield "clang DWARF 4 split", clang, ["-gdwarf-4", "-gsplit-dwarf"], None, None
        yield "clang build-id folder", clang, [], rust, "build-id"


def main():
    heapprof, library, work = (os.path.abspath(path) for path in sys.argv[1:4])
    compare = "--compare" in sys.argv
    with_go = shutil.which("go") is not None
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ORIGINALS, os.path.join(work, "symbols"))
    os.chdir(work)  # the folder above the sources: clang shortens their names by it
    total = bad = 0
    for number, (what, compiler, flags, rust, how) in enumerate(variants(work)):
        folder = os.path.join(work, str(number))
        names = build(folder, compiler, flags + ["-Wl,--build-id"], rust)
        names = [n for n in names if n == "prog" or n.endswith(".so")]
        raw = profile(folder, library)
        options = separate(folder, names, how, os.path.join(work, "debug%d" % number)) if how else []
        symbolized = folder + "/symbolized.pb.gz"
        explained = how is not None or not with_go or explain(heapprof, raw)
        run(heapprof, "symbolize", "--quiet", raw, "-o", symbolized, *options)
        count, wrong = check(what, heapprof, symbolized, expectations(rust))
        total += count
        bad += wrong + (not explained)
        if compare:
            subprocess.run([sys.executable, os.path.join(HERE, "compare_pprof.py"), heapprof, symbolized], check=False)
            subprocess.run([sys.executable, os.path.join(HERE, "compare_pprof.py"), heapprof, "--lines", symbolized], check=False)
        print("%s: %d functions and lines, %d wrong" % (what, count, wrong))
    print("%d expected, %d wrong" % (total, bad))
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
