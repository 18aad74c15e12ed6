# SPDX-License-Identifier: MIT
"""C: free and realloc. See run.py."""

from run import equal


def c2_free_during_dump(t):
    r = t.run()
    equal(t.profile(r, "during").totals("keep_one"), [1000, 100000, 1000, 100000])
    equal(t.profile(r, "after").totals("keep_one"), [1000, 100000, 0, 0])
    limit = t.profile(r, "limit")
    allocated, _, live, live_bytes = limit.totals("keep_one")
    equal(allocated, 2000)
    assert 45 <= live <= 50 and live_bytes == live * 100, live  # stdio and threads may take a place or two
    assert int(limit.comment("heapprof.lost")["live_table_full"]) >= 950
    equal(t.profile(r, "limit-after").totals("keep_one"), [2000, 200000, 0, 0])


def c3_realloc(t):
    r = t.run()
    p = t.profile(r, "moved")
    equal(p.totals("first_site"), [2, 101, 1, 100])
    equal(p.totals("second_site"), [3, 100190, 1, 100000])


def c4_missed_free(t):
    r = t.run()
    p = t.profile(r, "two")
    equal(p.totals("report_here")[2:], [0, 0])
    equal(p.totals("report_there")[2:], [1, 70])
    equal(p.comment("heapprof.lost")["missed_frees"], "2")
