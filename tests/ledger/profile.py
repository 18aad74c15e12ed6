# SPDX-License-Identifier: MIT
"""Totals by leaf function of a profile the library wrote: just enough of the pprof format, standard library only."""
import gzip


def _varint(b, i):
    value = shift = 0
    while True:
        c = b[i]
        i += 1
        value |= (c & 0x7F) << shift
        if not c & 0x80:
            return value, i
        shift += 7


def _fields(b):
    i = 0
    while i < len(b):
        key, i = _varint(b, i)
        if key & 7 == 0:
            value, i = _varint(b, i)
        elif key & 7 == 2:
            n, i = _varint(b, i)
            value, i = b[i:i + n], i + n
        else:
            raise ValueError('wire type %d' % (key & 7))
        yield key >> 3, value


def _numbers(value):
    if isinstance(value, int):
        return [value]
    out, i = [], 0
    while i < len(value):
        x, i = _varint(value, i)
        out.append(x)
    return out


def totals_by_leaf(path):
    """{leaf function name: [alloc_objects, alloc_space, inuse_objects, inuse_space]}"""
    strings, functions, locations, samples = [], {}, {}, []
    with gzip.open(path) as f:
        raw = f.read()
    for field, value in _fields(raw):
        if field == 2:
            ids, values = [], []
            for k, v in _fields(value):
                if k == 1:
                    ids += _numbers(v)
                elif k == 2:
                    values += _numbers(v)
            samples.append((ids, values))
        elif field == 4:
            d = {}
            for k, v in _fields(value):
                d.setdefault(k, v)
            line = dict(_fields(d[4])) if 4 in d else {}
            locations[d[1]] = line.get(1)
        elif field == 5:
            d = dict(_fields(value))
            functions[d[1]] = d.get(2, 0)
        elif field == 6:
            strings.append(value.decode())
    out = {}
    for ids, values in samples:
        name = strings[functions[locations[ids[0]]]] if locations[ids[0]] else '?'
        row = out.setdefault(name, [0, 0, 0, 0])
        for i, v in enumerate(values):
            row[i] += v
    return out
