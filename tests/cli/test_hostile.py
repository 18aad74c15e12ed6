#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a fresh user may do, and a hostile one: help that fits a terminal, files that are none, profiles of others, names that bite.

usage: test_hostile.py HEAPPROF LIBHEAPPROF.SO WORK_DIRECTORY

Each test_* function is one claim. A command that fails says so in one line, "heapprof: ...", and its status is 1; none dies by a signal,
hangs, or writes a control character.
"""
import fcntl
import glob
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys

from claims import expect, fresh_folder, run_all

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "web"))
from profile_maker import Maker, chunk, number, packed  # noqa: E402

HEAPPROF, LIBRARY, WORK = (os.path.abspath(path) for path in sys.argv[1:4])
SEEDS = os.path.join(HERE, "..", "fuzz", "seeds")
VERBS = ["run", "dump", "top", "diff", "merge", "symbolize", "view", "trend", "serve"]


def heapprof(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([HEAPPROF, *arguments], capture_output=True, timeout=900, cwd=WORK, **options)


def path(name):
    return os.path.join(WORK, name)


def write(name, data):
    with open(path(name), "wb") as out:
        out.write(data)
    return path(name)


def one_line(result, *what):
    text = result.stderr.decode("utf-8", "backslashreplace")
    expect(result.returncode == 1, *what, "status", result.returncode, text)
    expect(text.startswith("heapprof: ") and text.count("\n") == 1, *what, repr(text))
    expect(all(c == "\n" or c.isprintable() for c in text), *what, repr(text))
    return text


def readers(file):
    """Every command that reads a profile, on this one."""
    yield "top", file
    yield "top", "--json", "--tree", "--lines", file
    yield "diff", file, file
    yield "merge", file, file, "-o", path("out")
    yield "symbolize", "-q", file, "-o", path("out")
    yield "view", file
    yield "trend", file, file, file


def test_help_fits_a_terminal():
    for arguments in [[]] + [[verb] for verb in VERBS]:
        result = heapprof(*arguments, "--help")
        lines = result.stdout.decode().splitlines()
        expect(result.returncode == 0 and result.stderr == b"", arguments, result.stderr)
        expect(5 < len(lines) <= 23, arguments, len(lines), "lines")  # and the prompt
        expect(max(map(len, lines)) <= 80, arguments, max(lines, key=len))


def test_completion_offers_the_options_that_there_are():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/cli/completion/heapprof.bash")
    for verb in VERBS:
        shell = ("source %s; COMP_WORDS=(heapprof %s --); COMP_CWORD=2; compopt() { :; }; _heapprof %s -- %s; echo \"${COMPREPLY[@]}\""
                 % (script, verb, HEAPPROF, verb))
        words = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=900).stdout.split()
        known = heapprof(verb, "--help").stdout.decode()
        expect(len(words) > 0 and all(word in known for word in words), verb, words)
        for word in words:
            result = subprocess.run([HEAPPROF, verb, word + "1" if word.endswith("=") else word, "--help"], capture_output=True, text=True, timeout=900)
            expect(result.returncode == 0 or "option" not in result.stderr, verb, word, result.stderr)


def test_bad_usage_is_one_line_and_2():
    for arguments in [[], ["nothing"]] + [[verb, "--no-such-option"] for verb in VERBS] + [[verb] for verb in VERBS if verb != "run"]:
        result = heapprof(*arguments)
        text = result.stderr.decode()
        expect(result.returncode == 2 and text.count("\n") == 1 and "--help)" in text and result.stdout == b"", arguments, repr(text))


def malformed():
    """(name, bytes): the seeds that are no profiles, and what becomes of good ones."""
    rng = random.Random(11)
    for file in sorted(glob.glob(SEEDS + "/*/*")):
        with open(file, "rb") as stream:
            yield file, stream.read()
    with open(SEEDS + "/profile_reader/full.pb", "rb") as stream:
        full = stream.read()
    zipped = gzip.compress(full)
    for n in list(range(0, len(full), 37)):
        yield "cut at %d" % n, full[:n]
    for n in range(0, len(zipped), 41):
        yield "zipped and cut at %d" % n, zipped[:n]
    for n in range(60):
        damaged = bytearray(full)
        damaged[rng.randrange(len(full))] ^= 1 << rng.randrange(8)
        yield "bit %d" % n, bytes(damaged)
    yield "garbage", rng.randbytes(5000)
    yield "text", b"hello\n"
    yield "zipped nothing", gzip.compress(b"")
    yield "gzip head", b"\x1f\x8b"


def test_every_malformed_file_is_one_line_and_1():
    bad = 0
    for name, data in malformed():
        file = write("malformed", data)
        result = heapprof("top", file)
        expect(result.returncode in (0, 1), name, result.returncode, result.stderr)
        if result.returncode == 1:
            one_line(result, name)
            bad += 1
    expect(bad > 60, "only", bad, "of them are malformed")
    for data in (b"", b"hello\n", b"\x1f\x8b\x08\x00garbage", gzip.compress(b"\x12\x03\x0a\x01\x09")):
        file = write("malformed", data)
        for arguments in readers(file):
            one_line(heapprof(*arguments), arguments, data)


def test_what_is_no_file():
    os.mkdir(path("folder"))
    for file in ("folder", "missing", "", "/dev/null", "/proc/self/mem", "-"):
        one_line(heapprof("top", file), file)
    os.symlink("loop", path("loop"))
    one_line(heapprof("top", "loop"))


def writers(out):
    yield "merge", good(), "-o", out
    yield "symbolize", "-q", good(), "-o", out
    yield "diff", good(), good(), "-o", out
    yield "view", good(), "-o", out


def test_where_nothing_can_be_written():
    for out in ("missing/out", "/proc/version", "/"):
        for arguments in writers(out):
            one_line(heapprof(*arguments), arguments)


def test_devices_and_pipes_are_written_and_never_replaced():
    """view once put its page in the place of /dev/null, for root. Here on pipes, so that nothing of the machine is at stake."""
    os.mkfifo(path("pipe"))
    before = os.stat(path("pipe")).st_ino
    for arguments in writers(path("pipe")):
        reader = os.open(path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reader, 1031, 1 << 20)  # F_SETPIPE_SZ: the whole of a page
        result = heapprof(*arguments)
        data = os.read(reader, 1 << 16)
        os.close(reader)
        expect(result.returncode == 0 and len(data) > 100, arguments, result.returncode, result.stderr, len(data))
        expect(os.stat(path("pipe")).st_ino == before, arguments, "the pipe was replaced")
    os.symlink("/proc/self/fd/1", path("stdout"))  # as /dev/stdout is
    for out in (path("stdout"), "/proc/self/fd/1", "-"):
        for arguments in writers(out):
            with open(path("redirected"), "wb") as redirected:
                result = subprocess.run([HEAPPROF, *arguments], stdout=redirected, stderr=subprocess.PIPE, timeout=900)
            expect(result.returncode == 0 and os.path.getsize(path("redirected")) > 100, arguments, result.stderr)
            expect(os.path.islink(path("stdout")), arguments, "the link to standard output was replaced")
    os.symlink("/proc/self/fd/2", path("stderr"))  # as /dev/stderr is
    for arguments in writers(path("stderr")):
        with open(path("redirected"), "wb") as redirected:
            result = subprocess.run([HEAPPROF, *arguments], stdout=subprocess.PIPE, stderr=redirected, timeout=900)
        expect(result.returncode == 0 and os.path.getsize(path("redirected")) > 100, arguments, result.returncode)
        expect(os.path.islink(path("stderr")), arguments, "the link to the error output was replaced")


def test_a_link_is_replaced_and_not_followed():
    for arguments in writers(path("link")):
        write("target", b"kept")
        if os.path.lexists(path("link")):
            os.unlink(path("link"))
        os.symlink("target", path("link"))
        result = heapprof(*arguments)
        expect(result.returncode == 0 and not os.path.islink(path("link")), arguments, result.stderr)
        expect(open(path("target"), "rb").read() == b"kept", arguments)
    expect(not glob.glob(path("link.*")), glob.glob(path("link.*")))


def test_who_is_interrupted_while_writing_leaves_nothing():
    """What is killed at its file's largest size allowed, as by Ctrl-C at that moment."""
    folder = fresh_folder(path("interrupted"))
    for arguments in writers(os.path.join(folder, "out")):
        result = heapprof(*arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1)))
        expect(result.returncode == -signal.SIGXFSZ, arguments, result.returncode, result.stderr)
    if not has_unnamed_files(folder):
        return "skipped: no O_TMPFILE here"
    expect(os.listdir(folder) == [], os.listdir(folder))


def has_unnamed_files(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
        return True
    except OSError:
        return False


def good():
    maker = Maker(period=1)
    maker.add([("main", "/bin/a", "a.c", 1), ("leaf", "/bin/a", "a.c", 2)], [3, 300, 2, 200])
    maker.write(path("good.pb.gz"))
    return path("good.pb.gz")


def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        for arguments in (("top",), ("top", "--json"), ("view",), ("diff", good())):
            result = subprocess.run([HEAPPROF, *arguments, good()], stdout=full, stderr=subprocess.PIPE, timeout=900)
            one_line(result, arguments)


def test_a_reader_that_goes_away_is_no_complaint_of_many_lines():
    result = subprocess.run("'%s' top -n 0 '%s' | head -1; exit ${PIPESTATUS[0]}" % (HEAPPROF, good()), shell=True, executable="/bin/bash",
                            capture_output=True, timeout=900)
    expect(result.stderr.count(b"\n") <= 1, result.stderr)


def test_names_cannot_drive_the_terminal_nor_the_files():
    names = ["\x1b[2J", "a\nb", "\x07", "%s%n%s%n", "-rf", "'; rm -rf /;'", "\u202ereversed", "x" * 20000, "</script>", "_Z" + "1" * 5000]
    maker = Maker(period=1, comments=["heapprof.lost \x1b[31m=1", "%n%n"])
    for i, name in enumerate(names):
        maker.add([("main", "/bin/a", "a.c", 1), (name, name, name, i)], [1, 10 * i + 1, 1, 10 * i + 1])
    maker.write(path("names.pb.gz"))
    for arguments in readers(path("names.pb.gz")):
        result = heapprof(*arguments)
        expect(result.returncode == 0, arguments, result.returncode, result.stderr)
        for text in (result.stdout, result.stderr):
            expect(all(byte >= 0x20 or byte == 0x0A for byte in text), arguments, "control characters")
    report = json.loads(heapprof("top", "--json", "-n", "0", "-t", "inuse_space", path("names.pb.gz")).stdout)
    expect({row["function"] for row in report["rows"]} > set(names[:7]), "names in JSON are not as they were")


def test_figures_at_the_ends_of_the_range():
    for value in (2**63 - 1, -2**63, -1, 0):
        maker = Maker(period=2**62, duration_nanos=2**62, time_nanos=-2**62)
        for leaf in "abc":
            maker.add([("main", "/bin/a"), (leaf, "/bin/a")], [value] * 4)
        maker.write(path("ends.pb.gz"))
        for arguments in readers(path("ends.pb.gz")):
            result = heapprof(*arguments)
            expect(result.returncode in (0, 1), arguments, result.returncode, result.stderr)
            if result.returncode == 1:
                one_line(result, arguments)


def test_a_small_share_is_told_from_none():
    """1 of 123457 was "0%" beside the "0.00%" of a function without any."""
    maker = Maker(period=1)
    maker.add([("main", "/bin/a"), ("large", "/bin/a")], [1, 123456, 1, 123456])
    maker.add([("main", "/bin/a"), ("small", "/bin/a")], [1, 1, 1, 1])
    maker.write(path("share.pb.gz"))
    lines = heapprof("top", path("share.pb.gz")).stdout.decode().splitlines()
    shares = {line.split()[-1]: line.split()[1] for line in lines[-3:]}
    expect(shares == {"large": "100%", "small": "<0.01%", "main": "0.00%"}, lines)


def test_a_sample_that_is_all_frames():
    maker = Maker(period=1)
    maker.add([("f%d" % (i % 7), "/bin/a") for i in range(100000)], [1, 10, 1, 10])
    maker.write(path("deep.pb.gz"))
    for arguments in readers(path("deep.pb.gz")):
        result = heapprof(*arguments)
        expect(result.returncode == 0, arguments, result.returncode, result.stderr)


def test_a_hundred_thousand_rows():
    maker = Maker(period=1)
    for i in range(100000):
        maker.add([("main", "/bin/a"), ("group %d" % (i % 300), "/bin/a"), ("function %d" % i, "/bin/a")], [1, i + 1, 1, i + 1])
    maker.write(path("rows.pb.gz"))
    rows = json.loads(heapprof("top", "--json", "-n", "0", "-t", "inuse_space", path("rows.pb.gz")).stdout)["rows"]
    expect(len(rows) == 100301, len(rows))
    expect(sum(row["flat"] for row in rows) == 100000 * 100001 // 2, "flat does not add up")
    expect(rows[0]["function"] == "function 99999" and rows[0]["flat"] == 100000, rows[0])


def is_sanitized():
    """A sanitizer takes memory of its own."""
    return b"san.so" in subprocess.run(["ldd", HEAPPROF], capture_output=True).stdout


def bombs():
    """(name, file): what grows when it is unpacked. protobuf-c makes a hundred bytes of a sample without anything, of two in the file."""
    names = b"".join(chunk(6, text) for text in (b"", b"inuse_space", b"bytes", b"/bin/a"))
    head = names + chunk(1, number(1, 1) + number(2, 2)) + chunk(4, number(1, 1))
    frames = chunk(2, number(1, 1) * (2 << 20) + packed(2, [1]))
    text = chunk(6, random.Random(5).randbytes(300000).replace(b"\0", b"x"))  # so large that a second thread reads, too
    for part, way in ((b"", "alone"), (text, "ahead")):
        yield "frames, " + way, gzip.compress(head + part + 10 * frames, 1)
        yield "samples behind a long text, " + way, gzip.compress(head + part + chunk(6, b"x" * (15 << 20)) + b"\x12\0" * (12 << 20), 1)


def peak_of(file, **environment):
    """What the command said of the file, and the most memory it held, in MiB."""
    child = subprocess.Popen([HEAPPROF, "top", file], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             env=dict(os.environ, **environment))
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.stderr.close()
    return os.waitstatus_to_exitcode(status), said, usage.ru_maxrss // 1024


def test_a_bomb_is_unpacked_piece_by_piece():
    if is_sanitized():
        return "skipped: a sanitizer takes more"
    for name, data in bombs():
        status, said, peak = peak_of(write("bomb", data))
        expect(status in (0, 1) and said.count(b"\n") <= 1, name, status, said)
        expect(peak < 350, name, peak, "MiB")
        status, said, peak = peak_of(path("bomb"), HEAPPROF_READ_LIMIT="32m")
        expect(status == 1 and b"HEAPPROF_READ_LIMIT raises the limit" in said, name, status, said)
        expect(peak < 200, name, peak, "MiB with a limit of 32")


def test_a_limit_of_address_space_is_for_the_profile():
    """A thread's stack and its part of malloc would take more than a hundred MiB of it."""
    maker = Maker(period=1)
    for i in range(30000):
        maker.add([("main", "/bin/a"), ("function %d" % (i * 7919 % 30011), "/bin/a")], [1, i * 7919 % 65521, 1, i * 7919 % 65521])
    maker.write(path("rows.pb.gz"))
    expect(os.path.getsize(path("rows.pb.gz")) > 256 << 10, os.path.getsize(path("rows.pb.gz")))
    if is_sanitized():
        return "skipped: a sanitizer takes more"

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        resource.setrlimit(resource.RLIMIT_AS, (80 << 20,) * 2)

    result = heapprof("top", path("rows.pb.gz"), preexec_fn=limit)
    expect(result.returncode == 0 and result.stderr == b"", result.stderr)


def test_expressions_that_are_none():
    bounded = {"((a{1,255}){1,255}){1,255}": "written out", "(" * 30000 + ")" * 30000: "longer than", r"(a*)*\1x": "back references"}
    for verb in (["top"], ["diff", good()], ["trend", good(), good()], ["view", "-o", path("never.html")]):
        for expression, why in bounded.items():
            for option in ("--focus=", "--ignore="):
                result = heapprof(*verb, option + expression, good())
                expect(result.returncode == 1 and why.encode() in result.stderr, verb, option, expression[:30], result.stderr)
                one_line(result, expression[:30])
    for expression in ("(", "[", "a{99999}", "*", "\\", "(a*)*" * 200, "x" * 100000):
        for option in ("-f", "-i"):
            result = heapprof("top", option, expression, good())
            expect(result.returncode in (0, 1), expression[:30], result.returncode, result.stderr)
            if result.returncode == 1:
                one_line(result, expression[:30])


def test_binaries_that_lie():
    for name, data in (("empty", b""), ("magic", b"\x7fELF"), ("garbage", b"\x7fELF" + random.Random(3).randbytes(4000)), ("fifo", None)):
        binary = path("binary." + name)
        if data is None:
            os.mkfifo(binary)
        else:
            write("binary." + name, data)
        strings = ["", "inuse_space", "bytes", binary]
        out = chunk(1, number(1, 1) + number(2, 2)) + chunk(2, packed(1, [1]) + packed(2, [8]))
        out += chunk(3, number(1, 1) + number(2, 0x1000) + number(3, 0x9000) + number(5, 3))
        out += chunk(4, number(1, 1) + number(2, 1) + number(3, 0x1100))
        out += b"".join(chunk(6, text.encode()) for text in strings)
        file = write("lie.pb", out)
        result = heapprof("symbolize", file, "-o", path("out"))
        expect(result.returncode == 0 and result.stderr.count(b"\n") == 1, name, result.returncode, result.stderr)


GO = """package main
import ("os"; "runtime"; "runtime/pprof")
var keep [][]byte
//go:noinline
func grow(n int) { for i := 0; i < n; i++ { keep = append(keep, make([]byte, 10240)) } }
func main() {
  runtime.MemProfileRate = 1
  grow(500)
  runtime.GC()
  f, _ := os.Create(os.Args[1])
  pprof.WriteHeapProfile(f)
  f.Close()
}
"""


def test_profiles_of_others():
    """Go's own; jemalloc's and gperftools' text as pprof converts it, where these are installed. Their text is refused with the way out."""
    done = []
    if shutil.which("go"):
        os.mkdir(path("go"))
        write("go/main.go", GO.encode())
        environment = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOCACHE=path("go/cache"))
        subprocess.run(["go", "run", path("go/main.go"), path("go.pb.gz")], check=True, env=environment, timeout=900)
        rows = json.loads(heapprof("top", "--json", "-t", "inuse_space", path("go.pb.gz")).stdout)["rows"]
        expect(rows[0]["function"] == "main.grow" and rows[0]["flat"] >= 500 * 10240, rows[0])
        done.append("go")
        tcmalloc = glob.glob("/usr/lib/*/libtcmalloc.so.4")
        if tcmalloc:
            environment = dict(os.environ, LD_PRELOAD=tcmalloc[0], HEAPPROFILE=path("tc"))
            subprocess.run([sys.executable, "-c", "a = [str(i) for i in range(9999)]"], check=True, env=environment, capture_output=True, timeout=900)
            text = glob.glob(path("tc.*.heap"))[0]
            expect("text form" in one_line(heapprof("top", text)), "gperftools' text")
            subprocess.run(["go", "tool", "pprof", "-proto", "-output=" + path("tc.pb.gz"), sys.executable, text], check=True, capture_output=True)
            for arguments in readers(path("tc.pb.gz")):
                expect(heapprof(*arguments).returncode in (0, 1), arguments)
            expect(heapprof("top", path("tc.pb.gz")).returncode == 0)
            done.append("gperftools")
    one_line(heapprof("top", write("je.heap", b"heap_v2/524288\n  t*: 1: 2 [0: 0]\n")))
    print("  with %s" % (", ".join(done) or "neither Go nor gperftools here"))


def main():
    fresh_folder(WORK)
    status = run_all(globals())
    shutil.rmtree(WORK, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
