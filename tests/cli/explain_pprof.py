#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Why go tool pprof, when it symbolizes itself, says something else than heapprof: place by place, each difference put into a class.

usage: explain_pprof.py HEAPPROF PROFILE...        profiles of addresses, their binaries on this machine

go tool pprof does not run addr2line, llvm-symbolizer or nm: those are in the pprof of its own repository, which the one in Go's
distribution replaces by Go's packages objfile and debug/dwarf (cmd/pprof/pprof.go, objTool). What these do otherwise:

  shifted    the first segment with code does not start on a page (lld, Rust's linker, gold): pprof takes its address for that of
             the page, and every place of the file is looked up too far on by the difference: names and lines of other functions
  elsewhere  no debug information for the place in the file itself: pprof opens no separate file (.gnu_debuglink, build-id folder, .dwo)
  unsorted   the line table of the unit does not begin with its lowest address, as with gcc's .text.startup and .text.unlikely,
             templates, inline functions: pprof stops looking there and answers nothing at all
  inlined    pprof reports no inlined calls: one frame, the innermost line under the outermost name
  unnamed    the function's entry has its name by reference (DW_AT_specification, DW_AT_abstract_origin: methods, functions with an
             inlined or cloned twin): pprof looks at the entry alone, and the name is empty
  plain      pprof prefers DW_AT_name to the linker's: "method", where we have alpha::Widget::method(int) const
  folder     Go joins the folder of the compilation even to a name that is absolute already (clang's DWARF 5), and not to one that is
             relative to it (DWARF 4)

Anything else is "unexplained" and makes the exit status 1, and so does a place where GNU addr2line -i has other lines than we have.
The address looked up is the same for all: our addresses are those of the call (the return address less one), and nobody subtracts again.

Counted on the program of tests/cli/symbols in all the shapes test_symbols.py builds, and real programs: see README.md beside this file.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "web"))
import gzip  # noqa: E402

from profile_parser import fields  # noqa: E402

CLASSES = ["same", "folder", "plain", "unnamed", "inlined", "unsorted", "elsewhere", "shifted", "unexplained"]
SHOWN_MAX = 5


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class Place:
    """A location: the file it is in, where in it, its frames (linker's name, source file, line), innermost first, and their source names."""

    def __init__(self, file, offset, frames, names):
        self.file, self.offset, self.frames, self.names = file, offset, frames, names


def places(path):
    """{address: Place} of a profile."""
    strings, functions, mappings, locations = [], {}, {}, []
    with gzip.open(path) as stream:
        body = stream.read()
    for field, value in fields(body):
        if field == 6:
            strings.append(value.decode("utf-8", "replace"))
        elif field == 5:
            entry = dict(fields(value))
            functions[entry[1]] = entry
        elif field == 3:
            entry = dict(fields(value))
            mappings[entry[1]] = entry
        elif field == 4:
            parts = list(fields(value))
            locations.append((dict(p for p in parts if p[0] != 4), [dict(fields(v)) for f, v in parts if f == 4]))
    found = {}
    for location, lines in locations:
        mapping, address = mappings.get(location.get(2, 0), {}), location.get(3, 0)
        frames, names = [], []
        for line in lines:
            function = functions.get(line.get(1, 0), {})
            frames.append((strings[function.get(3, 0)], strings[function.get(4, 0)], line.get(2, 0)))
            names.append(strings[function.get(2, 0)])
        offset = address - mapping.get(2, 0) + mapping.get(4, 0)
        found[address] = Place(strings[mapping.get(5, 0)], offset, frames, names)
    return found


class Binary:
    """What of a file decides how pprof reads it."""

    def __init__(self, path):
        self.path = path
        self.segments = []
        for line in run("readelf", "-lW", path).splitlines():
            match = re.match(r"\s+LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ (.{3}) ", line)
            if match:
                self.segments.append([int(match.group(i), 16) for i in (1, 2, 3)] + ["E" in match.group(4)])
        code = next(s for s in self.segments if s[3])
        self.is_shifted = code[1] % 4096 != 0
        sections = run("readelf", "-SW", path)
        self.has_lines = " .debug_info" in sections and " .debug_line" in sections
        self.has_split = self.has_lines and "dwo_name" in run("readelf", "-wi", "-N", "--dwarf-depth=1", path)
        self.unit_of = None

    def address(self, offset):
        for start, address, size, _ in self.segments:
            if start <= offset < start + size:
                return address + offset - start
        return offset

    def is_unsorted(self, address):
        """Does the unit with this address have a line table whose first entry lies behind it?"""
        if self.unit_of is None:
            self.unit_of = []
            for line in run("readelf", "-N", "--debug-dump=decodedline", self.path).splitlines():
                if line.startswith("File name"):
                    self.unit_of.append([])
                match = re.search(r"\s(0x[0-9a-f]+)(\s|$)", line)
                if match and self.unit_of:
                    self.unit_of[-1].append(int(match.group(1), 16))
        return any(unit and unit[0] > address and min(unit) <= address <= max(unit) for unit in self.unit_of)


def is_part(plain, name):
    return plain.split("<")[0] in name


def is_same_file(ours, theirs):
    ours, theirs = os.path.normpath(ours), os.path.normpath(theirs)
    return ours.startswith("/") and (theirs.endswith(ours) or ours.endswith("/" + theirs.lstrip("./")))


def explain(binary, address, place, theirs):
    ours = place.frames
    if theirs == ours:
        return "same"
    if binary is None or (not theirs and (not binary.has_lines or binary.has_split or not ours[0][1])):
        return "elsewhere"
    if binary.is_shifted:
        return "shifted"
    if not theirs and binary.is_unsorted(address):
        return "unsorted"
    if len(theirs) == 1 and is_same_file(ours[0][1], theirs[0][1]):
        theirs = [(theirs[0][0],) + ours[0][1:2] + theirs[0][2:]]
        if theirs == ours:
            return "folder"
    if len(theirs) == 1 and theirs[0][1:] == ours[0][1:]:
        name = theirs[0][0]
        if len(ours) > 1 and is_part(name, place.names[-1]):
            return "inlined"
        if name == "":
            return "unnamed"
        if is_part(name, place.names[0]):
            return "plain"
    return "unexplained"


def addr2line(binary, addresses):
    """{address: [(file, line)...]}"""
    text = run("addr2line", "-ai", "-e", binary.path, *[hex(a) for a in addresses])
    found, at = {}, None
    for line in text.splitlines():
        if re.match(r"0x[0-9a-f]{16}$", line):
            at = int(line, 16)
            found[at] = []
            continue
        file, _, number = re.sub(r" \(discriminator \d+\)$", "", line).rpartition(":")
        found[at].append((os.path.normpath(file) if file != "??" else "", int(number) if number.isdigit() else 0))
    return found


def compare(heapprof, profile, work):
    pprof = ["go", "tool", "pprof", "-symbolize=local:force:demangle=none", "-proto", "-output=" + work + "/theirs", profile]
    run(heapprof, "symbolize", "--quiet", "--force", profile, "-o", work + "/ours")
    run(*pprof)
    ours, theirs = places(work + "/ours"), places(work + "/theirs")
    binaries, counts, rows, unequal = {}, collections.Counter(), {}, 0
    asked = collections.defaultdict(set)
    for at, place in ours.items():
        if place.file not in binaries:
            binaries[place.file] = Binary(place.file) if os.path.isfile(place.file) else None
        binary = binaries[place.file]
        address = binary.address(place.offset) if binary else 0
        answer = theirs[at].frames if at in theirs else []
        why = explain(binary, address, place, answer)
        counts[why] += 1
        if why == "unexplained" and counts[why] <= SHOWN_MAX:
            print("%s %#x in %s: heapprof %s, pprof %s" % (profile, address, place.file, place.frames, answer))
        for frame in place.frames:
            rows.setdefault(frame, set()).add(why)
        if binary and any(frame[2] for frame in place.frames):
            asked[place.file].add((address, tuple(frame[1:] for frame in place.frames)))
    checked = 0
    for file, wanted in asked.items():
        answers = addr2line(binaries[file], sorted({address for address, _ in wanted}))
        for address, lines in wanted:
            mine = [(os.path.normpath(name), number) for name, number in lines]
            if not answers[address][0][1] or binaries[file].has_split:
                continue  # addr2line reads fewer kinds of separate files than we do
            checked += 1
            if mine != answers[address] and [n for _, n in mine] != [n for _, n in answers[address]]:
                unequal += 1
                print("%s %#x in %s: heapprof %s, addr2line %s" % (profile, address, file, mine, answers[address]))
    row_counts = collections.Counter("same" if why == {"same"} else max(why, key=CLASSES.index)
                                     for why in rows.values())
    return counts, row_counts, checked, unequal


def line_of(counts):
    return ", ".join("%d %s" % (counts[name], name) for name in CLASSES if counts[name]) or "none"


def main():
    heapprof, profiles = sys.argv[1], sys.argv[2:]
    places_sum, rows_sum, checked_sum, unequal_sum = collections.Counter(), collections.Counter(), 0, 0
    for profile in profiles:
        with tempfile.TemporaryDirectory() as work:
            counts, rows, checked, unequal = compare(heapprof, profile, work)
        places_sum += counts
        rows_sum += rows
        checked_sum += checked
        unequal_sum += unequal
    print("%d places: %s" % (sum(places_sum.values()), line_of(places_sum)))
    print("%d rows of top --lines: %s" % (sum(rows_sum.values()), line_of(rows_sum)))
    print("%d places with GNU addr2line: %d have other lines" % (checked_sum, unequal_sum))
    return 1 if places_sum["unexplained"] or unequal_sum else 0


if __name__ == "__main__":
    sys.exit(main())
