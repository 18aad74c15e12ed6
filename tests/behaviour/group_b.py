# SPDX-License-Identifier: MIT
"""B: sampling. See run.py. (B3: tests/unit/test_sampler.c; the distribution of gaps: tests/statistical.)"""

from run import equal


def b2_first_change(t):
    t.run(sample_rate=1 << 40)


def b6_small_stacks(t):
    p = t.profile(t.run(), "small")
    equal(p.totals("handler"), [1, 123, 1, 123])
    equal(p.totals("on_small_stack"), [4000, 20 * 100 * 1010, 0, 0])


def b7_nothing_lost(t):
    r = t.run()
    p = t.profile(r, "live-full")
    equal(p.totals("limited_site"), [100, 1000, 10, 100])
    equal(p.comment("heapprof.lost"), {"live_table_full": "90"})
    p = t.profile(r, "pseudo")
    equal(p.totals("[stack table full]"), [1, 20, 1, 20])
    equal(p.totals("[no stack]"), [1, 30, 1, 30])
    equal(p.comment("heapprof.lost"), {"live_table_full": "90", "stack_table_full": "1", "unwind_failed": "1"})
    p = t.profile(r, "freed")
    equal(p.totals("[stack table full]"), [1, 20, 0, 0])
    equal(p.totals("[no stack]"), [1, 30, 0, 0])
    equal(p.totals("limited_site"), [100, 1000, 0, 0])


def b8_truncated(t):
    for depth in (16, 128, 1024):
        p = t.profile(t.run(max_depth=depth), "deep")
        (row,) = p.rows_of("deep")
        stack = p.stack(row)
        equal(stack, ["deep"] * depth + ["[truncated]"])
        equal(row.values, [1, 11, 1, 11])
        equal([r.values for r in p.rows if r.values[1] == 22], [[1, 22, 1, 22]])
