# SPDX-License-Identifier: MIT
"""F: the file. See run.py."""

import glob
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import time

from pprof_read import Profile
from run import emulated, equal


def f1_whole_files(t):
    folder = t.folder()
    link, target = folder + "/dump-0.pb.gz", folder + "/target"
    with open(target, "w") as f:
        f.write("not to be touched")
    os.symlink(target, link)
    with open(folder + "/dump-1.pb.gz", "w") as f:
        f.write("an old file" * 1000)
    chooser = random.Random(1)
    for last in [False] * 11 + [True]:
        env = t.environment(folder, {})
        child = subprocess.Popen(emulated([os.path.join(t.binaries, "f1_dumps_for_ever"), folder], env), env=env)
        time.sleep(0.1 + chooser.random() / 4)
        while last and os.path.islink(link):  # on a slow machine all may have been killed before their first one
            equal(child.poll(), None)
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        equal(child.wait(), -9)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name == "dump-0.pb.gz" and os.path.islink(path) or name == "dump-1.pb.gz" and os.path.getsize(path) == 11000:
                continue  # killed before the first one
            if name.endswith(".pb.gz"):
                assert Profile(path).total(0) >= 1024, path
                equal(stat.S_IMODE(os.lstat(path).st_mode), 0o600, path)
    assert not os.path.islink(link), "the link is still there"
    equal(open(target).read(), "not to be touched")


def f2_entry_points(t):
    r = t.run()
    p = t.profile(r, "entries")
    source = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "f2_entry_points.cpp")).read()
    names = re.findall(r"^CALL\((\w+)", source, re.M) + ["call_report"]
    equal(len(names), 20)
    for name in names:
        (row,) = p.rows_of(name)
        stack = p.stack(row)
        leaf = stack.index(name)
        if name == "call_strdup":
            assert leaf == 1 and "strdup" in stack[0], stack
        elif name == "call_report":  # the header's inline function, which is not inlined here, is the program's
            equal(("heapprof_report_alloc" in stack[0], stack[1]), (True, name))  # clang mangles the static function
        else:
            equal(leaf, 0, "%s: %s" % (name, stack))
        equal(row.values[0], 1, name)
        assert "main" in stack, stack
    for row in p.rows:
        assert not any(n.startswith(("hp_", "_Zn", "operator new")) for n in p.stack(row)), p.stack(row)
        for ident in row.stack:
            mapping = p.locations[ident][0]
            file = next((m.file for m in p.mappings if m.id == mapping), "")
            assert "libheapprof" not in file, p.stack(row)


def f3_call_lines(t):
    r = t.run()
    p = t.profile(r, "last")
    (row,) = p.rows_of("never_returns")
    stack = p.stack(row)
    equal(stack[:3], ["never_returns", "last_call", "main"])
    if shutil.which("addr2line"):
        binary = os.path.join(t.binaries, t.name)
        main_mapping = p.mappings[0]
        base = static_base(binary)
        lines = []
        for ident in row.stack[:2]:
            address = p.locations[ident][1]
            offset = address - main_mapping.start + main_mapping.offset + base
            lines.append(subprocess.run(["addr2line", "-e", binary, hex(offset)], capture_output=True, text=True).stdout.strip())
        source = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "f3_call_lines.c")).read().splitlines()
        want = [next(i + 1 for i, l in enumerate(source) if text in l) for text in ("malloc(51)", "{ never_returns(); }")]
        equal([int(l.rsplit(":", 1)[1].split()[0]) for l in lines], want, lines)


def static_base(binary):
    """Virtual address minus file offset of the executable segment."""
    out = subprocess.run(["readelf", "-lW", binary], capture_output=True, text=True).stdout
    for line in out.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and "E" in "".join(words[6:-1]):
            return int(words[2], 16) - int(words[1], 16)
    raise AssertionError("no executable segment")


def f4_mappings(t):
    plugins = [os.path.join(t.binaries, "libplugin_%s.so" % x) for x in "ab"]
    copy = os.path.join(t.top, "f4_copy")
    loaders = glob.glob("/lib64/ld-linux-*.so.*") + glob.glob("/lib/ld-linux-*.so.*")
    for when in ("never", "while it runs", "before it starts", "never, started by the loader"):
        shutil.copy(os.path.join(t.binaries, t.name), copy)
        if when.endswith("loader"):
            by_loader = os.path.join(t.top, "by_loader")
            with open(by_loader, "w") as f:
                f.write('#!/bin/sh\nexec %s %s "$@"\n' % (loaders[0], copy))
            os.chmod(by_loader, 0o700)
            r = t.run(*plugins, program=by_loader)
        elif when == "before it starts":
            fd = os.open(copy, os.O_RDONLY)
            os.unlink(copy)
            r = t.run(*plugins, program="/proc/self/fd/%d" % fd, pass_fds=(fd,))
            os.close(fd)
        else:
            r = t.run(*plugins, *([copy] if when == "while it runs" else []), program=copy)
        equal(os.path.exists(copy), when.startswith("never"))
        p = t.profile(r, "unloaded")
        equal(p.mappings[0].file, copy)
        assert len(p.mappings[0].build_id) >= 16, p.mappings[0].build_id
        assert not any(" (deleted)" in m.file for m in p.mappings)
        for which in "ab":
            (row,) = p.rows_of("plugin_site_" + which)
            equal(row.values, [1, 1000, 1, 1000])
            mapping = p.locations[row.stack[0]][0]
            equal(next(m.file for m in p.mappings if m.id == mapping), plugins["ab".index(which)])
        main = p.mappings[0]
        with open(os.path.join(t.binaries, t.name), "rb") as f:
            size = len(f.read())
        assert main.offset < size and main.limit - main.start < size + 8192


def f4_relative(t):
    p = t.profile(t.run(t.binaries), "elsewhere")
    for which in "ac":
        (row,) = p.rows_of("plugin_site_" + which)
        mapping = p.locations[row.stack[0]][0]
        equal(next(m.file for m in p.mappings if m.id == mapping), os.path.join(os.path.realpath(t.binaries), "libplugin_%s.so" % which))


def f4_reloaded(t):
    for names, build_ids in (("ab", True), ("cd", False)):
        reload_pair(t, names, build_ids)


def rows_of_file(profile, file, build_ids):
    """The rows whose leaf is in this file. (A file without a build id has names only while it is loaded.)"""
    mappings = dict((m.id, m) for m in profile.mappings)
    rows = [r for r in profile.rows if r.stack and mappings.get(profile.locations[r.stack[0]][0]) is not None
            and mappings[profile.locations[r.stack[0]][0]].file == file]
    for row in rows:
        equal(mappings[profile.locations[row.stack[0]][0]].build_id != "", build_ids)
        if build_ids:
            equal(profile.stack(row)[0], "plugin_site_" + file[-4])
    return rows


def reload_pair(t, names, build_ids):
    plugins = [os.path.join(t.binaries, "libplugin_%s.so" % x) for x in names]
    sizes = dict(zip(plugins, (1000, 3000)))
    r = t.run(*plugins, kind="full,delta")
    a, b, reused, stacks_before, stacks, bytes_before, metadata = [int(x) for x in r.out.split()]
    assert reused > (a + b) * 0.9, "never at the same place: this shows nothing"
    assert a > 1000 and b > 1000, (a, b)
    # A few: a tenth of the loadings may be at another place, which has stacks of its own.
    assert stacks - stacks_before < 100, "new stacks: %d -> %d" % (stacks_before, stacks)
    assert metadata - bytes_before < 200000, "metadata: %d -> %d" % (bytes_before, metadata)

    def sums(path):
        p, out = Profile(path), {}
        for file, size in sizes.items():
            rows = rows_of_file(p, file, build_ids)
            for row in rows:  # one sample may be half counted: objects before bytes
                assert ".delta." in path or 0 <= row.values[0] * size - row.values[1] <= size, (path, file, row.values)
            out[file] = [sum(row.values[c] for row in rows) for c in range(len(p.types))]
        return out

    deltas = [sums(path) for path in r.files if ".delta." in path]
    assert len(deltas) > 5, len(deltas)
    for path in r.files:
        sums(path)
    last = sums(os.path.join(r.folder, "last.full.pb.gz"))
    for file, loads in zip(plugins, (a, b)):
        equal(last[file], [loads, loads * sizes[file], 1, sizes[file]], file)
        equal([sum(d[file][c] for d in deltas) for c in range(2)], [loads, loads * sizes[file]], "deltas of " + file)


def f5_runs_unite(t):
    if not shutil.which("go"):
        raise SystemExit(77)
    raws = []
    files = [os.path.join(t.run(program="f5_same_program").folder, "same.pb.gz") for _ in range(2)]
    bases = [Profile(f).mappings[0].start for f in files]
    for inputs in (files[:1], files):
        done = subprocess.run(["go", "tool", "pprof", "-raw", "-symbolize=none"] + inputs, capture_output=True, text=True,
                              env=dict(os.environ, PPROF_TMPDIR=t.top))
        equal(done.returncode, 0, done.stderr)
        section = done.stdout.split("Samples:")[1].split("Locations")[0].splitlines()
        rows = [tuple(int(x) for x in l.split(":")[0].split()) for l in section if re.match(r"\s+\d+\s+\d+", l)]
        raws.append(rows)
    assert bases[0] != bases[1] or "0" == open("/proc/sys/kernel/randomize_va_space").read().strip(), "no ASLR here?"
    equal(len(raws[1]), len(raws[0]), "rows")
    equal(sorted(raws[1]), sorted(tuple(2 * v for v in row) for row in raws[0]))


def f6_static_names(t):
    copy = os.path.join(t.top, "moved")
    shutil.copy(os.path.join(t.binaries, "f5_same_program"), copy)
    r = t.run(program=copy)
    os.rename(copy, copy + ".away")
    path = os.path.join(r.folder, "same.pb.gz")
    equal(Profile(path).totals("static_function"), [300, 300150, 300, 300150])
    if shutil.which("go"):
        done = subprocess.run(["go", "tool", "pprof", "-top", "-symbolize=none", path], capture_output=True, text=True,
                              env=dict(os.environ, PPROF_TMPDIR=t.top))
        equal(done.returncode, 0, done.stderr)
        assert re.search(r"\bstatic_function$", done.stdout, re.M), done.stdout
    p = Profile(os.path.join(t.run(program="f5_same_program", symbols=0).folder, "same.pb.gz"))
    equal(p.rows_of("static_function"), [])


def f7_reconciliation(t):
    for rate in (1, "512k"):
        r = t.run(sample_rate=rate)
        touched = int(r.out)
        p = t.profile(r, "large")
        c, totals = p.comment("heapprof.reconcile"), p.comment("heapprof.totals")
        inuse, error = int(c["inuse_bytes"]), int(c["inuse_se"])
        equal(inuse, p.total(3))
        equal([int(totals[k]) for k in ("alloc_objects", "alloc_bytes", "inuse_objects", "inuse_bytes")], p.totals())
        own = 200000  # kept[], stdio, the C library's start
        assert abs(inuse - touched) <= 5 * error + own, (inuse, touched, error)
        assert (error == 0) == (rate == 1), error
        if rate != 1:
            sigma = (touched * 512 * 1024) ** 0.5  # of small blocks; 64 KiB are nearly that
            assert 0.5 * sigma < error < 1.2 * sigma, (error, sigma)
        profiler, anonymous = int(c["profiler_bytes"]), int(c["rss_anon_bytes"])
        assert anonymous >= touched, (anonymous, touched)
        assert anonymous <= touched * 1.05 + profiler + (4 << 20), (anonymous, touched, profiler)
        equal(c["allocator"], "glibc")
        allocator = int(c["allocator_inuse_bytes"])
        assert touched <= allocator <= touched * 1.02 + (2 << 20), (allocator, touched)
        equal(c["allocator_figures_age_seconds"], "0")
        after = t.profile(r, "reset")  # what the reset took off is in no sum, and its doubt in no error
        reset = after.comment("heapprof.totals")
        equal([int(reset[k]) for k in ("alloc_objects", "alloc_bytes", "inuse_objects", "inuse_bytes")], after.totals())
        assert int(reset["alloc_bytes_se"]) <= int(totals["alloc_bytes_se"]) / 2, (reset, totals)
        freed = t.profile(r, "freed").comment("heapprof.reconcile")
        assert int(freed["allocator_inuse_bytes"]) < touched / 10
        assert int(p.comment("heapprof.sampling")["samples"]) >= (touched / 65536 if rate == 1 else 1)
        equal(p.comment("heapprof.sampling")["rate_bytes"], str({1: 1, "512k": 524288}[rate]))
