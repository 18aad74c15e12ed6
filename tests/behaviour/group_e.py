# SPDX-License-Identifier: MIT
"""E: kinds. See run.py."""

import collections
import itertools
import os

from pprof_read import Bad, Profile
from run import equal


def key(p, row):
    """A stack by what it is, not by where it lay in this file."""
    by_id = dict((m.id, m) for m in p.mappings)
    out = []
    for ident in row.stack:
        mapping, address, _ = p.locations[ident]
        m = by_id.get(mapping)
        out.append((m.file, address - m.start + m.offset) if m else tuple(p.names(ident)))
    return tuple(out)


def by_stack(p):
    sums = collections.Counter()
    for row in p.rows:
        for i in range(2):
            sums[key(p, row), i] += row.values[i]
    return sums


def e1_heap_kind(t):
    r = t.run(kind="full,heap,alloc,delta")
    full, heap = t.profile(r, "one.full"), t.profile(r, "one.heap")
    equal(full.totals("gone_site"), [10, 160, 0, 0])
    equal(full.totals("kept_site"), [5, 80, 5, 80])
    equal(heap.totals("kept_site"), [0, 0, 5, 80])
    equal(heap.types, full.types)
    equal(heap.rows_of("gone_site"), [])
    assert "gone_site" not in heap.strings, "the name of a dropped row is still there"
    used = set(ident for row in heap.rows for ident in row.stack)
    equal(set(heap.locations), used, "locations")
    equal(set(f for ident in used for f in heap.locations[ident][2]), set(heap.functions), "functions")
    equal(os.path.basename(heap.mappings[0].file), "e1_heap_kind")
    equal([row.values[2:] for row in heap.rows if any(row.values[2:])], [row.values[2:] for row in heap.rows])
    equal(heap.total(3), full.total(3))


def e2_alloc_kind(t):
    r = t.run(kind="full,heap,alloc,delta", program="e1_heap_kind")
    alloc, full = t.profile(r, "one.alloc"), t.profile(r, "one.full")
    equal(len(alloc.types), 2)
    equal(alloc.totals("gone_site"), [10, 160])
    equal(alloc.totals("kept_site"), [5, 80])
    equal(by_stack(alloc), by_stack(full))
    equal(t.profile(r, "two.alloc").totals("gone_site"), [11, 176])


def e3_deltas_telescope(t):
    r = t.run(kind="delta", program="e1_heap_kind")
    one, two, three = (t.profile(r, n) for n in ("one", "two", "three"))
    equal(one.totals("gone_site"), [10, 160])
    equal([row.values for row in two.rows], [[1, 16]])  # {10,160} -> {11,176}; what is as it was is not there
    equal(three.rows, [])
    assert two.duration_nanos > 0, "a delta says what time it covers"
    equal(two.time_nanos - two.duration_nanos, one.time_nanos)
    equal(three.time_nanos - three.duration_nanos, two.time_nanos)

    plugin = os.path.join(t.binaries, "libplugin_a.so")
    r = t.run(plugin, kind="full,delta", stderr=True)
    sums, last = collections.Counter(), None
    time = None
    for i in range(13):
        delta, full = t.profile(r, "load-%02d.delta" % i), t.profile(r, "load-%02d.full" % i)
        sums.update(by_stack(delta))
        if time is not None:
            equal(delta.time_nanos - delta.duration_nanos, time, "the beginning")
        time, last = delta.time_nanos, full
        now = by_stack(full)
        wrong = [(k, sums[k], now[k]) for k in set(sums) | set(now) if sums[k] != now[k]]
        assert not wrong, (i, wrong[:3])
    assert last.total(0) > 10000
    assert any("plugin_site_a" in last.stack(row) for row in last.rows), "names of a library that is gone"
    assert not t.profile(r, "reset.delta").rows, "a reset is no allocation"
    equal(t.profile(r, "reset.delta").time_nanos - t.profile(r, "reset.delta").duration_nanos, time)
    assert t.profile(r, "reset.full").total(0) < last.total(0)


def e4_delta_memory(t):
    t.run(kind="delta")


def e5_peak(t):
    r = t.run(peak=1, growth="1m")
    peak, now = t.profile(r, "fallen.peak"), t.profile(r, "fallen")
    equal(peak.totals("rising_site")[2:], [1000, 10000000])
    equal(peak.totals("later_site")[2:], [0, 0])
    equal(now.totals("rising_site")[2:], [10, 100000])
    equal(now.totals("later_site")[2:], [40, 400000])
    assert peak.time_nanos <= now.time_nanos
    said = peak.comment("heapprof.totals")  # nothing in it is of now
    equal([int(said[k]) for k in ("alloc_objects", "alloc_bytes", "inuse_objects", "inuse_bytes")], peak.totals())
    assert "inuse_bytes_se" not in said and not any("heapprof.reconcile" in line for line in peak.comments), peak.comments
    assert "inuse_bytes_se" in now.comment("heapprof.totals") and now.comment("heapprof.reconcile")
    peak = t.profile(r, "reset.peak")
    equal(peak.totals("rising_site")[2:], [1000, 10000000])
    peak = t.profile(r, "higher.peak")
    equal(peak.totals("rising_site")[2:], [1000, 10000000])
    equal(peak.totals("later_site")[2:], [1, 10000])
    peak = t.profile(r, "child.peak")  # never held what its parent did
    equal(peak.totals("rising_site")[2:], [10, 100000])
    equal(peak.totals("later_site")[2:], [110, 1100000])
    peak = t.profile(r, "parent.peak")
    equal(peak.totals("rising_site")[2:], [1000, 10000000])
    equal(len([f for f in r.files if "/out." in f and ".peak." not in f]), 10)  # the growth dumps, one of them the child's
    t.run("mark", growth="1m")
    for _ in range(5):
        r = t.run("threads", peak=1)
        peak = t.profile(r, "threads.peak")
        equal(peak.totals("rising_site")[2:], [1000, 10000000])
        equal(t.profile(r, "threads").totals("rising_site")[2:], [0, 0])


def e6_labels(t):
    for rate in ((), ("sampled",)):
        plain = t.profile(t.run(*rate), "labels").totals("labelled_site")
        for n in (1, 2, 3):
            for labels in itertools.combinations(("size", "age", "thread"), n):
                for kind in ("full", "heap"):
                    p = t.profile(t.run(*rate, labels=",".join(labels), kind=kind), "labels")
                    got = p.totals("labelled_site")
                    if not rate:
                        equal(got, plain if kind == "full" else [0, 0] + plain[2:], labels)
                    rows = p.rows_of("labelled_site")
                    for row in rows:
                        for label in row.labels.values():
                            assert not isinstance(label, tuple) or label[1] == "bytes", row.labels
                    if kind == "heap" and not rate:
                        assert all(set(row.labels) == set({"size": "bytes"}.get(l, l) for l in labels) for row in rows), labels
                    if labels == ("size",) and not rate:
                        equal(set(row.labels["bytes"][0] for row in rows), {11, 13} if kind == "heap" else {10, 11, 12, 13})
                        if kind == "full":
                            assert all(row.values[1] == row.labels["bytes"][0] * row.values[0] for row in rows)
                    if labels == ("thread",) and not rate:
                        names = collections.Counter()
                        for row in rows:
                            names[row.labels["thread"]] += row.values[2]
                        equal(dict(names), {"worker-0": 100, "worker-1": 100, "worker-2": 100})
                    if labels == ("age",) and kind == "heap" and not rate:
                        ages = dict((row.labels["age"], row.values[2]) for row in rows)
                        equal(ages, {"<1s": 100, "10s-1m": 100, "1m-10m": 100})
