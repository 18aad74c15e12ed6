# SPDX-License-Identifier: MIT
"""H: what the two ancestors' own functions gave, against files of ours, by the project's code and by a reader in Go that knows
nothing of it (ancestors/heapcheck.go, standard library only), and go tool pprof -raw; and what is said of memory that cannot
be seen. See run.py."""

import gzip
import os
import re
import shutil
import subprocess
import sys

from pprof_read import Bad, Profile
from run import equal

HERE = os.path.dirname(os.path.abspath(__file__))


def h1_ancestors(t):
    if not shutil.which("go"):
        sys.exit(77)
    tool = os.path.join(t.top, "heapcheck")
    env = dict(os.environ, GOCACHE=os.path.join(t.top, "cache"), GOFLAGS="-mod=mod", GO111MODULE="off", PPROF_TMPDIR=t.top)
    done = subprocess.run(["go", "build", "-o", tool, os.path.join(HERE, "ancestors", "heapcheck.go")], env=env,
                          capture_output=True, text=True)
    equal(done.returncode, 0, done.stderr)

    def check(*arguments, status=0):
        done = subprocess.run((tool,) + arguments, capture_output=True, text=True)
        equal(done.returncode, status, done.stdout)
        return done.stdout.splitlines()

    r = t.run(program="e1_heap_kind", kind="full,heap,alloc,delta")

    def path(name):
        return os.path.join(r.folder, name + ".pb.gz")

    for dump in ("one", "two"):
        equal(check("inuse", path(dump + ".full")), check("rows", path(dump + ".heap")), "in-use profile")
        equal(check("alloc", path(dump + ".full")), check("rows", path(dump + ".alloc")), "allocation profile")
    delta = check("delta", path("one.full"), path("two.full"))
    equal(delta, check("rows", path("two.delta")), "delta allocation profile")
    assert int(delta[-1].split()[1]) > 0 and len(delta) == 2, delta

    # The check: accepts ours, refuses what is not the four in order.
    for name in ("one.full", "one.heap"):
        check("check", path(name))
    equal(check("check", path("one.alloc"), status=1), ["invalid heap profile: got 2 sample types, want 4"])
    raw = gzip.open(path("one.full")).read()
    broken = os.path.join(r.folder, "broken")
    with gzip.open(broken, "wb") as f:
        f.write(raw.replace(b"alloc_objects", b"alloc_objectz"))
    equal(check("check", broken, status=1),
          ['invalid heap profile: got "alloc_objectz" sample type at index 0, want "alloc_objects"'])
    for at in (len(raw) // 3, len(raw) - 1):
        with gzip.open(broken, "wb") as f:
            f.write(raw[:at])
        check("check", broken, status=1)
        try:
            Profile(broken)
        except (Bad, KeyError, UnicodeDecodeError):
            pass
        else:
            raise AssertionError("a cut profile was read")

    # And go tool pprof itself reads each of them, with the same sums.
    for name in ("one.full", "one.heap", "one.alloc", "two.delta"):
        done = subprocess.run(["go", "tool", "pprof", "-raw", "-symbolize=none", path(name)], env=env, capture_output=True, text=True)
        equal(done.returncode, 0, done.stderr)
        rows = [l.split(":")[0].split() for l in done.stdout.split("Samples:")[1].split("Locations")[0].splitlines()
                if re.match(r"\s+\d+\s+\d+", l)]
        p = Profile(path(name))
        equal([sum(int(row[i]) for row in rows) for i in range(len(p.types))], p.totals(), name)
        head = done.stdout.split("Samples:\n")[1].splitlines()[0]
        equal(re.sub(r"\[dflt\]", "", head).split(), ["%s/%s" % pair for pair in p.types], name)


def h2_unseen(t):
    plugin = os.path.join(t.binaries, "libplugin_a.so")
    size = 300 * 1000 * 1000
    # the third dump confirms what figures of two moments say; where nothing else was ever allocated the first one is certain
    for what, key, rate in (("mapped", "resident_bytes", 1), ("mapped", "resident_bytes", "512k"), ("libc", "allocator_bytes", "512k"),
                            ("deepbind", "allocator_bytes", "512k"), ("deepbind", "allocator_bytes", 1)):
        r = t.run(what, plugin, stderr=True, sample_rate=rate, exit_dump=1, period=0)
        equal(r.err.count("\n"), 1, what + ": " + r.err)
        said = re.fullmatch(r"heapprof\[\d+\]: warn: at least (\d+) MiB of h2_unseen's memory came (.*); the profiles do not show it\n", r.err)
        assert said and ("past heapprof" in said.group(2)) == (key == "allocator_bytes"), r.err
        found = t.profile(r, "three").comment("heapprof.unseen")
        equal(list(found), [key], what)
        slack = {1: 12, "512k": 70}[rate] * 1000 * 1000
        assert size - slack <= int(found[key]) <= size, (what, rate, found)
        assert 0 <= int(said.group(1)) * 2**20 <= size, r.err
    for what in ("ordinary", "fragmented", "sparse", "grown", "unsampled", "static", "reported", "threads", "stack", "swinging"):
        for rate in (1, "512k"):
            if rate == 1 and what == "unsampled":
                continue  # what was freed meanwhile
            wrap = ("prlimit", "--stack=unlimited") if what == "stack" else ()
            if wrap and not shutil.which(wrap[0]):
                continue
            r = t.run(what, sample_rate=rate, exit_dump=1, wrap=wrap, program="static_data" if what == "static" else None)
            equal(r.err, "", what)
            for path in r.files:
                equal(Profile(path).comment("heapprof.unseen"), {}, "%s %s" % (what, rate))


def h3_own_allocator(t):
    r = t.run(program="own_allocator", stderr=True, status=7, exit_dump=1, period=0.01)
    equal(r.out, "100\n")
    assert re.fullmatch(r"heapprof\[\d+\]: warn: own_allocator has an allocator of its own that cannot be intercepted; "
                        r"it is not profiled\n", r.err), r.err
    equal(os.listdir(r.folder), [])


def h4_clock_set(t):
    day = 86400 * 10**9
    r = t.run(kind="full,delta", peak=1)
    before, forward, back, later, reset = (t.profile(r, n + ".full") for n in ("before", "forward", "back", "later", "reset"))
    assert 19999 * day < forward.time_nanos - before.time_nanos < 20001 * day, "the clock was not set"
    assert -2 * day < back.time_nanos - before.time_nanos < 0, "the clock was not set"
    equal(later.time_nanos - later.duration_nanos, back.time_nanos - back.duration_nanos, "the start, by which trend knows a process")
    spans = [p.duration_nanos for p in (before, forward, back)]
    assert 0 < spans[0] and spans[0] + 3e7 <= spans[1] and spans[1] + 3e7 <= spans[2] < day, spans
    deltas = [t.profile(r, n + ".delta").duration_nanos for n in ("before", "forward", "back", "later", "reset")]
    assert all(0 < d < day for d in deltas) and min(deltas[1:4]) >= 3e7, deltas
    assert 0 <= reset.duration_nanos < day, reset.duration_nanos
    peak = t.profile(r, "back.peak")
    equal(peak.totals("site")[2:], [2, 1003000])
    assert 0 < peak.duration_nanos < day, peak.duration_nanos
