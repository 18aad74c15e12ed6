# SPDX-License-Identifier: MIT
"""G: the life cycle. See run.py."""

import glob
import os
import subprocess

from pprof_read import Profile
from run import emulated, equal


def g1_fork(t):
    r = t.run()
    equal(t.profile(r, "child-first").totals("parent_site"), [1000, 50000, 1000, 50000])
    second = t.profile(r, "child-second")
    equal(second.totals("parent_site"), [1000, 50000, 600, 30000])
    equal(second.totals("child_site"), [7, 420, 7, 420])
    equal(t.profile(r, "parent").totals("parent_site"), [1000, 50000, 1000, 50000])
    equal(len(glob.glob(r.folder + "/out.*.2.pb.gz")), 1)  # the child's third dump, under its own pid
    # The child's delta starts empty, and its time with the fork.
    r = t.run(kind="delta")
    first, second = t.profile(r, "child-first"), t.profile(r, "child-second")
    equal(first.totals("parent_site"), [0, 0])
    equal(second.totals("parent_site"), [0, 0])
    equal(second.totals("child_site"), [7, 420])
    parent = t.profile(r, "parent")
    assert first.duration_nanos < parent.time_nanos + parent.duration_nanos, first.duration_nanos
    assert first.time_nanos - first.duration_nanos >= parent.time_nanos, "the child's first delta begins before the fork"
    t.run("storm")
    r = t.run("between", peak=1)
    for name in ("between", "after"):
        equal(t.profile(r, name).totals("parent_site"), [1000, 50000, 1000, 50000])
        equal(t.profile(r, name).totals("child_site"), [100000, 6000000, 1, 60])
    r = t.run("unwanted", children=0, period=1000, exit_dump=1)
    equal(len(r.files), 1)  # the parent's own


def g2_periodic(t):
    r = t.run(period=100, keep=4)
    names = sorted(int(f.split(".")[-3]) for f in r.files)
    equal(names, [12, 13, 14, 15])


def g3_exit(t):
    for how, status, files in (("exit", 0, 1), ("return", 0, 1), ("threads", 7, 1), ("_exit", 3, 0), ("abort", -6, 0), ("kill", -9, 0)):
        r = t.run(how, status=status, exit_dump=1)
        equal(len(r.files), files, how)
        if files:
            equal(Profile(r.files[0]).totals("last_words"), [1, 4321, 1, 4321])
            equal(Profile(r.files[0]).totals("at_exit")[:2], [1, 77])  # main's exit handlers are in it
    r = t.run("in-fork", status=9, exit_dump=1)
    equal(Profile(r.files[0]).totals("last_words"), [1, 4321, 1, 4321])
    folder = t.folder()
    binary = os.path.join(t.binaries, t.name)
    env = t.environment(folder, {})
    done = subprocess.run(emulated([binary, folder, "kill-in-dump"], env), env=env, capture_output=True)
    equal(done.returncode, -9)
    equal(glob.glob(folder + "/*.pb.gz"), [])


def g4_missing_prerequisites(t):
    folder = t.folder()
    r = t.run(program="nothing", folder=folder, stderr=True, exit_dump=1, out="/proc/nowhere/x.pb.gz")
    equal(r.err.count("\n"), 1, r.err)
    assert "error: failed to write heap profile: /proc/nowhere/x.pb.gz: " in r.err, r.err
    r = t.run(program="nothing", stderr=True, exit_dump=1, sample_rate="many", period="x")
    equal(r.err.count("\n"), 2, r.err)
    assert "HEAPPROF_SAMPLE_RATE=many" in r.err and "HEAPPROF_PERIOD=x" in r.err, r.err
    if os.geteuid() == 0:  # no /proc at all
        hidden = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
        if subprocess.run(hidden + ("true",), capture_output=True).returncode == 0:
            r = t.run(program="nothing", stderr=True, exit_dump=1, wrap=hidden)
            assert r.err.count("\n") <= 1, r.err


def g5_rate_zero(t):
    folder = t.folder()
    r = t.run(sample_rate=0, exit_dump=1, period=0.01, out="", folder=folder, stderr=True)  # the folder is the directory, too
    assert r.err.count("\n") <= 1, r.err
    equal(os.listdir(folder), [])
    r = t.run("on", sample_rate=0, exit_dump=1, out="", stderr=True)
    equal(len(r.files), 2)
    assert t.profile(r, "on").total(3) >= 999


def g6_start_stop(t):
    r = t.run()
    p = t.profile(r, "matrix")
    equal(p.totals("seen"), [2, 128, 1, 64])
    equal(p.totals("unseen"), [0, 0, 0, 0])
    equal([p.period, t.profile(r, "stopped").period], [777, 777])  # after a stop too: what is in it was sampled at a rate
