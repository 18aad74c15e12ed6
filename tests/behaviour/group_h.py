# SPDX-License-Identifier: MIT
"""H: what the two ancestors' own functions gave, against files of ours, by the project's code and by a reader in Go that knows
nothing of it (ancestors/heapcheck.go, standard library only), and go tool pprof -raw. See run.py."""

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
