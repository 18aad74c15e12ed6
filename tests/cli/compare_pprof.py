#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Row by row: heapprof top --json against go tool pprof -top, on the profiles given.

usage: compare_pprof.py HEAPPROF [--lines] [--local] PROFILE...

--local: pprof too symbolizes, from the binaries on this machine.

For every sample type of every profile, every row of pprof (function, or function and line) must have the same flat and cum in
heapprof, to pprof's printing precision, and the other way round. pprof is told to demangle names in full, but its demangler writes some
C++ and Rust names in another way than libiberty: rows left over under different names must have the same figures one by one, and
are counted apart. What has no name pprof shows as one row a binary, "[name]" ("<unknown>": no file), and we by line as a row an address: there the sum of flat
must be the same. Prints one line per difference and a summary; exit 1 on any difference of figures.
"""
import json
import re
import subprocess
import sys


def pprof_rows(profile, sample_type, lines, local):
    command = ["go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-unit=B",
               "-symbolize=local:demangle=full" if local else "-symbolize=remote:demangle=full", "-sample_index=" + sample_type]
    if lines:
        command.append("-lines")
    command.append(profile)
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = {}
    started = False
    for line in text.splitlines():
        if started:
            fields = line.split(None, 5)
            if len(fields) < 6:
                continue
            name = re.sub(r" \(inline\)$| \(partial-inline\)$", "", fields[5])
            rows[name] = (fields[0], fields[3])
        elif re.match(r"\s+flat\s+flat%", line):
            started = True
    return rows


def value(text):
    """pprof's rounded text as (value, tolerance)."""
    match = re.match(r"^(-?[0-9.]+)([A-Za-z]*)$", text)
    scale = {"": 1, "B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30}[match.group(2)]
    decimals = len(match.group(1).partition(".")[2])
    return float(match.group(1)) * scale, 0.5001 * scale / 10**decimals


def heapprof_rows(heapprof, profile, sample_type, lines):
    command = [heapprof, "top", "--json", "-n", "0", "-t", sample_type, profile] + (["--lines"] if lines else [])
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rows = {}
    for row in report["rows"]:
        name = row["function"]
        if lines:
            # pprof prints the file only if there is one
            name += " %s:%d" % (row["file"], row["line"]) if row["file"] else ""
        rows[name] = (row["flat"], row["cum"])
    return rows, [t["type"] for t in report["sample_types"]]


def fold_nameless(ours, theirs):
    """Takes rows of bare addresses and of "[binary]" out of both; what their flat sums differ by, if by more than the printing."""
    bare = {n: ours.pop(n) for n in list(ours) if re.match(r"0x[0-9a-f]+( \S+\+0x[0-9a-f]+)?$", n)}
    binaries = {n: theirs.pop(n) for n in list(theirs) if n == "<unknown>" or (re.match(r"\[.*\]$", n) and n not in ours)} if bare else {}
    sums = sum(v[0] for v in bare.values()), sum(value(v[0])[0] for v in binaries.values())
    return sums if abs(sums[0] - sums[1]) > sum(value(v[0])[1] for v in binaries.values()) + 1e-9 else None


def same(mine, other):
    return all(abs(value(text)[0] - ours) <= value(text)[1] + 1e-9 for ours, text in zip(mine, other))


def compare(heapprof, profile, lines, local):
    differences = compared = renamed = 0
    _, types = heapprof_rows(heapprof, profile, "", lines)
    for sample_type in types:
        theirs = {n: v for n, v in pprof_rows(profile, sample_type, lines, local).items() if not same((0, 0), v)}
        ours, _ = heapprof_rows(heapprof, profile, sample_type, lines)
        ours = {n: v for n, v in ours.items() if v != (0, 0)}
        compared += len(ours)
        if lines:
            nameless = fold_nameless(ours, theirs)
            if nameless:
                differences += 1
                print("%s %s: places without a name: heapprof %s, pprof %s" % (profile, sample_type, *nameless))
        for name in set(theirs) & set(ours):
            mine, other = ours.pop(name), theirs.pop(name)
            if not same(mine, other):
                differences += 1
                print("%s %s %s: heapprof %s, pprof %s" % (profile, sample_type, name, mine, other))
        mine = sorted(ours.items(), key=lambda item: item[1])
        other = sorted(theirs.items(), key=lambda item: tuple(value(text)[0] for text in item[1]))
        if len(mine) == len(other) and all(same(a[1], b[1]) for a, b in zip(mine, other)):
            renamed += len(mine)
            continue
        differences += max(len(mine), len(other))
        print("%s %s: rows without a counterpart: heapprof %s, pprof %s" % (profile, sample_type, mine[:5], other[:5]))
    return compared, differences, renamed


def main():
    arguments = sys.argv[1:]
    lines = "--lines" in arguments
    if lines:
        arguments.remove("--lines")
    local = "--local" in arguments
    if local:
        arguments.remove("--local")
    heapprof, profiles = arguments[0], arguments[1:]
    total = bad = renamed = 0
    for profile in profiles:
        compared, differences, names = compare(heapprof, profile, lines, local)
        total += compared
        bad += differences
        renamed += names
    print("%d rows of %d profiles compared, %d have other figures, %d the same under another name" %
          (total, len(profiles), bad, renamed))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
