# SPDX-License-Identifier: MIT
"""Reads a pprof profile with nothing but the standard library: an opinion on the files independent of the code that wrote them.

    Profile(path)        parses and checks; raises Bad with what is wrong
    .types               [(name, unit)]        .rows   [Row(values, stack of location ids, labels)]
    .names(location id)  function names, innermost first; without a name: 0xADDRESS
    .total(column, function=None)              sum, over rows with this function in the stack
    .comments, .period, .time_nanos, .duration_nanos, .default_type, .mappings
"""

import gzip
import sys
import zlib

FOUR = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
TWO = FOUR[:2]


class Bad(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Bad("varint cut or too long")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7


def signed(value):
    return value - 2**64 if value >= 2**63 else value


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise Bad("field %d is cut" % (key >> 3))
            value = data[at:at + size]
            at += size
        else:
            raise Bad("wire type %d" % wire)
        yield key >> 3, wire, value


def numbers(wire, value):
    if wire == 0:
        return [value]
    out, at = [], 0
    while at < len(value):
        n, at = varint(value, at)
        out.append(n)
    return out


class Row:
    def __init__(self, values, stack, labels):
        self.values, self.stack, self.labels = values, stack, labels


class Mapping:
    pass


class Profile:
    def __init__(self, path, check=True):
        with open(path, "rb") as f:
            data = f.read()
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as e:
            raise Bad("not gzip: %s" % e)
        self.path = path
        self.known_names = {}
        self.strings, raw_types, raw_rows, raw_comments = [], [], [], []
        self.locations, self.functions, self.mappings = {}, {}, []
        self.period = self.time_nanos = self.duration_nanos = 0
        default = 0
        period_type = (0, 0)
        for number, wire, value in fields(data):
            if number == 1:
                raw_types.append(self.pair(value))
            elif number == 2:
                raw_rows.append(value)
            elif number == 3:
                self.mappings.append(self.mapping(value))
            elif number == 4:
                self.location(value)
            elif number == 5:
                function = dict((n, v) for n, _, v in fields(value))
                if function.get(1, 0) in self.functions or function.get(1, 0) == 0:
                    raise Bad("function id %d twice or 0" % function.get(1, 0))
                self.functions[function[1]] = function
            elif number == 6:
                self.strings.append(value.decode("utf-8"))
            elif number == 9:
                self.time_nanos = signed(value)
            elif number == 10:
                self.duration_nanos = signed(value)
            elif number == 11:
                period_type = self.pair(value)
            elif number == 12:
                self.period = signed(value)
            elif number == 13:
                raw_comments += numbers(wire, value)
            elif number == 14:
                default = value
        if not self.strings or self.strings[0] != "":
            raise Bad("string 0 is not empty")
        self.types = [(self.string(t), self.string(u)) for t, u in raw_types]
        self.default_type = self.string(default)
        self.period_type = tuple(self.string(x) for x in period_type)
        self.comments = [self.string(c) for c in raw_comments]
        for m in self.mappings:
            m.file, m.build_id = self.string(m.file), self.string(m.build_id)
        self.rows = [self.row(value) for value in raw_rows]
        if check:
            self.check()

    @staticmethod
    def pair(value):
        got = dict((n, v) for n, _, v in fields(value))
        return got.get(1, 0), got.get(2, 0)

    @staticmethod
    def mapping(value):
        got = dict((n, v) for n, _, v in fields(value))
        m = Mapping()
        m.id, m.start, m.limit, m.offset = (got.get(i, 0) for i in (1, 2, 3, 4))
        m.file, m.build_id, m.has_functions = (got.get(i, 0) for i in (5, 6, 7))
        return m

    def location(self, value):
        ident = mapping = address = 0
        lines = []
        for number, _, v in fields(value):
            if number == 1:
                ident = v
            elif number == 2:
                mapping = v
            elif number == 3:
                address = v
            elif number == 4:
                lines.append(dict((n, x) for n, _, x in fields(v)).get(1, 0))
        if ident == 0 or ident in self.locations:
            raise Bad("location id %d twice or 0" % ident)
        self.locations[ident] = (mapping, address, lines)

    def row(self, value):
        stack, values, labels = [], [], {}
        for number, wire, v in fields(value):
            if number == 1:
                stack += numbers(wire, v)
            elif number == 2:
                values += [signed(n) for n in numbers(wire, v)]
            elif number == 3:
                label = dict((n, x) for n, _, x in fields(v))
                key = self.string(label.get(1, 0))
                if 2 in label:
                    labels[key] = self.string(label[2])
                else:
                    labels[key] = (signed(label.get(3, 0)), self.string(label.get(4, 0)))
        return Row(values, stack, labels)

    def string(self, index):
        if not isinstance(index, int) or index >= len(self.strings):
            raise Bad("string %r of %d" % (index, len(self.strings)))
        return self.strings[index]

    def check(self):
        if self.types not in (FOUR, TWO):
            raise Bad("sample types %s" % self.types)
        if self.default_type != ("inuse_space" if self.types == FOUR else "alloc_space"):
            raise Bad("default type %s" % self.default_type)
        if self.period_type != ("space", "bytes"):
            raise Bad("period type %s/%s" % self.period_type)
        if not self.mappings:
            raise Bad("no mapping")
        ids = [m.id for m in self.mappings]
        if len(set(ids)) != len(ids) or 0 in ids or any(m.start >= m.limit for m in self.mappings):
            raise Bad("mapping ids %s" % ids)
        by_id = dict((m.id, m) for m in self.mappings)
        for ident, (mapping, address, lines) in self.locations.items():
            if mapping and mapping not in by_id:
                raise Bad("location %d: no mapping %d" % (ident, mapping))
            if mapping and address and not by_id[mapping].start <= address < by_id[mapping].limit:
                raise Bad("location %d: %#x is outside its mapping" % (ident, address))
            if not address and not lines:
                raise Bad("location %d says nothing" % ident)
            if any(f not in self.functions for f in lines):
                raise Bad("location %d: no such function" % ident)
        heap = self.types == FOUR and all(r.values[:2] == [0, 0] for r in self.rows)
        for row in self.rows:
            v = row.values
            if len(v) != len(self.types):
                raise Bad("row of %d values" % len(v))
            if min(v) < 0 or not any(v):
                raise Bad("row %s" % v)
            if len(v) == 4 and not heap and (v[2] > v[0] or v[3] > v[1]):
                raise Bad("more in use than allocated: %s" % v)
            if any(v[i] == 0 and v[i + 1] != 0 for i in range(0, len(v), 2)):
                raise Bad("bytes without objects: %s" % v)
            if not row.stack or any(l not in self.locations for l in row.stack):
                raise Bad("row without a stack, or with an unknown location")
            for key, label in row.labels.items():
                if isinstance(label, tuple) and not label[1]:
                    raise Bad("label %s has no unit" % key)

    def names(self, ident):
        if ident not in self.known_names:
            self.known_names[ident] = self.look_up_names(ident)
        return self.known_names[ident]

    def look_up_names(self, ident):
        mapping, address, lines = self.locations[ident]
        names = [self.string(self.functions[f].get(2, 0)) for f in lines]
        return [n for n in names if n] or ["%#x" % address]

    def stack(self, row):
        return [name for ident in row.stack for name in self.names(ident)]

    def rows_of(self, function):
        wanted = set(ident for ident in self.locations if function in self.names(ident))
        return [r for r in self.rows if not wanted.isdisjoint(r.stack)]

    def total(self, column, function=None):
        return sum(r.values[column] for r in (self.rows if function is None else self.rows_of(function)))

    def totals(self, function=None):
        return [self.total(c, function) for c in range(len(self.types))]

    def comment(self, topic):
        """The line `topic key=value ...` as a dict; {} if there is none."""
        for line in self.comments:
            words = line.split(" ")
            if words[0] == topic:
                return dict(w.split("=", 1) for w in words[1:] if "=" in w)
        return {}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        p = Profile(name)
        print(name, "rows", len(p.rows), "totals", p.totals(), "period", p.period, "duration", p.duration_nanos)
        for r in sorted(p.rows, key=lambda r: -r.values[-1])[:20]:
            print("  ", r.values, " < ".join(p.stack(r)[:8]), r.labels or "")
        for c in p.comments:
            print("  #", c)
