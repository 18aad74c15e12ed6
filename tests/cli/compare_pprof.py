#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Row by row: heapprof top --json against go tool pprof -top, on the profiles given.

usage: compare_pprof.py HEAPPROF [--lines] [--binary FILE] PROFILE...

For every sample type of every profile, every row of pprof (function, or function and line) must have the same flat and cum in
heapprof, to pprof's printing precision, and the other way round. Names are compared after pprof's own shortening of C++ and Rust
names is switched off. Prints one line per difference and a summary; exit 1 on any difference.
"""
import json
import re
import subprocess
import sys


def pprof_rows(profile, sample_type, lines, binary):
    command = ["go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-unit=B",
               "-symbolize=demangle=full" if binary else "-symbolize=none", "-sample_index=" + sample_type]
    if lines:
        command.append("-lines")
    command += ([binary] if binary else []) + [profile]
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


def compare(heapprof, profile, lines, binary):
    differences = compared = 0
    _, types = heapprof_rows(heapprof, profile, "", lines)
    for sample_type in types:
        theirs = pprof_rows(profile, sample_type, lines, binary)
        ours, _ = heapprof_rows(heapprof, profile, sample_type, lines)
        for name in sorted(set(theirs) | set(ours)):
            compared += 1
            mine = ours.get(name, (0, 0))
            other = theirs.get(name, ("0", "0"))
            for ours_value, text in zip(mine, other):
                expected, tolerance = value(text)
                if abs(ours_value - expected) > tolerance + 1e-9:
                    differences += 1
                    print("%s %s %s: heapprof %s, pprof %s" % (profile, sample_type, name, mine, other))
                    break
    return compared, differences


def main():
    arguments = sys.argv[1:]
    lines = "--lines" in arguments
    if lines:
        arguments.remove("--lines")
    binary = None
    if "--binary" in arguments:
        at = arguments.index("--binary")
        binary = arguments[at + 1]
        del arguments[at:at + 2]
    heapprof, profiles = arguments[0], arguments[1:]
    total = bad = 0
    for profile in profiles:
        compared, differences = compare(heapprof, profile, lines, binary)
        total += compared
        bad += differences
    print("%d rows of %d profiles compared, %d differ" % (total, len(profiles), bad))
    return 1 if bad or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
