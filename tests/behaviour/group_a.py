# SPDX-License-Identifier: MIT
"""A: structures. See run.py. (A3 and A4: tests/unit.)"""

from run import equal


def a1_two_sites(t):
    r = t.run()
    rows = t.profile(r, "two").rows_of("allocate_both")
    equal(sorted(row.values for row in rows), [[500, 12000, 500, 12000]] * 2)


def a5_freed_sites(t):
    expect_bounded(t.profile(t.run(max_memory="4m"), "bounded"))
    # Labels take room in a dump, and each kind takes it anew: the tables leave enough.
    r = t.run(max_memory="4m", labels="size,age,thread", kind="full,heap,alloc,delta", peak=1)
    expect_bounded(t.profile(r, "bounded.full"))
    for kind in ("heap", "alloc", "delta", "peak"):
        t.profile(r, "bounded." + kind)


def expect_bounded(p):
    equal(p.totals("freed_site"), [10, 400, 0, 0])
    walked = [sum(x) for x in zip(p.totals("step"), p.totals("[stack table full]"))]
    n = walked[0]
    assert n in (1 << 17, 1 << 20), n
    equal(walked, [n, 16 * n, 0, 0])
    assert p.total(0, "[stack table full]") > 0
    equal(p.comment("heapprof.lost")["stack_table_full"], str(p.total(0, "[stack table full]")))
