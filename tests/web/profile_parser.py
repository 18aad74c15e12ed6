# SPDX-License-Identifier: MIT
"""profile_parser.py - reads a pprof profile as a scraping agent does; only Python's standard library, none of the project's code."""
import gzip


def fields(data):
    """(field number, value) of a message: numbers for varints, bytes for the rest."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            length = varint()
            yield key >> 3, data[at:at + length]
            at += length
        else:
            raise ValueError(f"wire type {key & 7}")


def numbers(value):
    if isinstance(value, int):
        return [value]
    out, number, shift = [], 0, 0
    for byte in value:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            out.append(number)
            number = shift = 0
    return out


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Profile:
    def __init__(self, body):
        raw = gzip.decompress(body)
        strings, types, self.samples, self.comments = [], [], [], []
        self.mapping_ids, self.location_ids, self.function_ids, self.names = [], [], [], []
        scalars = {}
        for field, value in fields(raw):
            if field == 6:
                strings.append(value.decode("utf-8"))
            elif field == 1:
                types.append(dict(fields(value)))
            elif field == 2:
                sample = {"location": [], "value": []}
                for f, v in fields(value):
                    if f in (1, 2):
                        sample["location" if f == 1 else "value"] += numbers(v)
                sample["value"] = [signed(v) for v in sample["value"]]
                self.samples.append(sample)
            elif field == 3:
                self.mapping_ids.append(dict(fields(value)).get(1, 0))
            elif field == 4:
                self.location_ids.append(dict(fields(value)).get(1, 0))
            elif field == 5:
                function = dict(fields(value))
                self.function_ids.append(function.get(1, 0))
                self.names.append(function.get(2, 0))
            elif field == 13:
                self.comments += numbers(value)
            else:
                scalars[field] = value
        self.types = [(strings[t.get(1, 0)], strings[t.get(2, 0)]) for t in types]
        self.comments = [strings[c] for c in self.comments]
        self.names = [strings[n] for n in self.names]
        self.time_nanos, self.duration_nanos, self.period = scalars.get(9, 0), scalars.get(10, 0), scalars.get(12, 0)
        self.default_type = strings[scalars.get(14, 0)]
        period_type = dict(fields(scalars.get(11, b"")))
        self.period_type = (strings[period_type.get(1, 0)], strings[period_type.get(2, 0)])

    def total(self, kind):
        column = [name for name, _ in self.types].index(kind)
        return sum(s["value"][column] for s in self.samples)
