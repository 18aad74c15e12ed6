# SPDX-License-Identifier: MIT
"""D: the dump. See run.py."""

import glob
import os
import re
import shutil

from pprof_read import Profile
from run import equal


def d1_misuse(t):
    r = t.run(stderr=True)
    equal(r.err.count("\n"), 1, r.err)
    assert "failed to write heap profile: " in r.err and "No such file or directory" in r.err, r.err


def d2_point_in_time(t):
    r = t.run()
    frozen, after = t.profile(r, "frozen"), t.profile(r, "next")
    equal(frozen.totals("old_site"), [77, 770, 77, 770])
    equal(frozen.totals("new_site"), [0, 0, 0, 0])
    equal(frozen.totals("churn"), [0, 0, 0, 0])
    equal(after.totals("old_site"), [77, 770, 0, 0])
    equal(after.totals("new_site"), [123, 1230, 123, 1230])
    allocated, _, live, _ = after.totals("churn")
    assert allocated >= 8 * 100000 and live == 0, (allocated, live)


def d3_complete(t):
    r = t.run()
    files = glob.glob(r.folder + "/round-*.pb.gz")
    assert len(files) >= 100, len(files)
    for path in files:
        n = int(os.path.basename(path).split("-")[1].split(".")[0]) + 1
        equal(Profile(path).totals("counted_site"), [100 * n, 4000 * n, 96, 3840], path)


def d4_inuse_below_alloc(t):
    r = t.run()
    assert len(r.files) >= 150, len(r.files)
    assert len(Profile(r.files[-1]).rows) > 10


def d5_coalesce(t):
    r = t.run()
    last = max(r.files, key=lambda f: int(f.split(".")[-3]))
    assert any(row.values == [1, 12345, 1, 12345] for row in Profile(last).rows), "the last request was lost"
    equal(len(t.run("alone").files), 2)
    equal(len(t.run("no-helper").files), 2)


def d6_failed_dump(t):
    r = t.run(stderr=True)
    lines = r.err.splitlines()
    assert all("error: failed to write heap profile: " in line for line in lines), r.err
    for text in ("No space left on device", "Permission denied", "Read-only file system", "File too large",
                 "No such file or directory"):
        assert any(line.endswith(text) for line in lines), (text, r.err)
    equal(Profile(r.files[0]).comment("heapprof.lost")["dump_failed"], str(len(lines)))
    equal(len(r.files), 1)
    # A directory that may not be written to, without any hook; root may, so as somebody else.
    if os.geteuid() == 0:
        folder = t.folder()
        os.chmod(t.top, 0o711)
        os.chmod(folder, 0o555)
        # The build may lie where nobody else gets (/root).
        program = shutil.copy(os.path.join(t.binaries, "nothing"), t.top)
        t.library = shutil.copy(t.library, t.top)
        r = t.run(program=program, folder=folder, stderr=True, exit_dump=1, cwd="/",
                  wrap=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"))
        equal(r.err.count("\n"), 1, r.err)
        assert "Permission denied" in r.err, r.err
        equal(os.listdir(folder), [])


def d8_empty_profile(t):
    r = t.run(sample_rate=1 << 40)
    p = t.profile(r, "empty")
    equal(p.rows, [])
    equal(os.path.basename(p.mappings[0].file), "d8_empty_profile")
    equal(p.period, 1 << 40)
    equal(len(p.types), 4)
    for kind in ("heap", "alloc", "delta"):
        equal(t.profile(t.run(sample_rate=1 << 40, kind=kind), "empty").rows, [])


def d9_three_dumps(t):
    r = t.run()
    sites = ("site_one", "site_two", "site_three")
    for name, live in (("first", (1, 0, 0)), ("second", (0, 1, 0)), ("third", (0, 1, 1))):
        p = t.profile(r, name)
        equal(tuple(p.total(2, s) for s in sites), live, name)
    p = t.profile(r, "third")
    equal([p.totals(s)[:2] for s in sites], [[1, 100], [1, 200], [1, 300]])


def d12_stats(t):
    equal(t.run(stderr=True).err.count("\n"), 1)  # of the dump that fails
    r = t.run(stderr=True, log="info")
    p = t.profile(r, "one")
    lost = p.comment("heapprof.lost")
    said = re.findall(r"^heapprof\[\d+\]: info: lost so far:((?: \w+=\d+)+)$", r.err, re.M)
    equal([dict(w.split("=") for w in line.split()) for line in said], [lost] + 2 * [dict(lost, dump_failed="1")])
    equal(lost, {"live_table_full": "1", "stack_table_full": "1", "unwind_failed": "1", "truncated": "1", "reentrant": "1",
                 "missed_frees": "1"})
    equal(t.profile(r, "two").comment("heapprof.lost")["dump_failed"], "1")
    equal(p.totals("five"), [5, 1000, 4, 800])
    equal(p.totals("[no stack]"), [1, 7, 1, 7])
    equal(p.totals("[stack table full]"), [1, 11, 1, 11])
    # D11: at rate 1 the raw samples are the allocations
    equal(int(p.comment("heapprof.sampling")["samples"]), p.total(0))
    equal(int(p.comment("heapprof.sampling")["live_samples"]), p.total(2))
