#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""heapprof run and heapprof dump on real processes, with all that can be wrong.

usage: test_run_dump.py HEAPPROF LIBHEAPPROF.SO WORK_DIRECTORY [PART_OF_A_NAME]

Each test_* function is one claim. Those that need root (other users, namespaces) say "skipped" without it.
"""
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from claims import Failure, expect, fresh_folder, run_all
from terminal import Terminal

HEAPPROF, LIBRARY, WORK = sys.argv[1:4]

PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
static void on_term(int s) { (void)s; exit(42); }
extern char **environ;
static void write_title(void) { /* as redis and nginx do */
  char *first = environ[0], *end = first;
  for (char **p = environ; *p != NULL; p++) end = *p + strlen(*p) + 1;
  memset(first, ' ', (size_t)(end - first));
}
static void *idle(void *p) { for (;;) pause(); return p; }
__attribute__((noinline)) static void work(void) { for (int i = 0; i < 100; i++) kept = malloc(1000); }
int main(int argc, char **argv) {
  work();
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "term") == 0) signal(SIGTERM, on_term);
    if (strcmp(argv[i], "chdir") == 0 && chdir("/") != 0) return 1;
    if (strcmp(argv[i], "own") == 0) signal(SIGUSR2, SIG_DFL);
    if (strcmp(argv[i], "handler") == 0) signal(SIGUSR2, on_term);
    if (strcmp(argv[i], "title") == 0) write_title();
    if (strcmp(argv[i], "thread") == 0) { pthread_t t; pthread_create(&t, NULL, idle, NULL); }
    if (strcmp(argv[i], "leave") == 0) { puts("ready"); fflush(stdout); pthread_exit(NULL); }
    if (strcmp(argv[i], "fork") == 0) { pid_t p = fork(); if (p == 0) { work(); exit(0); } waitpid(p, NULL, 0); }
    if (strcmp(argv[i], "ready") == 0) { puts("ready"); fflush(stdout); }
    if (strcmp(argv[i], "wait") == 0) for (;;) { work(); usleep(20000); }
  }
  return 0;
}
"""


def heapprof(*arguments, **options):
    return subprocess.run([HEAPPROF, *arguments], capture_output=True, text=True, timeout=900, **options)


def run(*arguments, options=(), **more):
    return heapprof("run", "--library", LIBRARY, "--sample-rate=1", *options, "--", *arguments, **more)


def fresh(name):
    return fresh_folder(os.path.join(WORK, name))


def start(folder, *arguments, prefix=(), library=LIBRARY, **environment):
    env = dict(os.environ, HEAPPROF_SAMPLE_RATE="1", **environment)
    env["PWD"] = folder
    if library:
        env["LD_PRELOAD"] = library
    process = subprocess.Popen([*prefix, PROG, *arguments, "ready", "wait"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    expect(process.stdout.readline() == "ready\n", "the program did not start")
    return process


def stop(process):
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()
    process.stdout.close()


def one_error(result, part):
    expect(result.returncode == 1, "status", result.returncode, result.stderr)
    expect(result.stderr.count("\n") == 1 and result.stderr.startswith("heapprof: "), repr(result.stderr))
    expect(part in result.stderr, repr(result.stderr), "does not say", part)


# ---- run ----

def test_run_passes_the_exit_status():
    folder = fresh("status")
    expect(run("sh", "-c", "exit 7", cwd=folder).returncode == 7)
    expect(run("true", cwd=folder).returncode == 0)


def test_run_reports_death_by_a_signal_as_128_plus_n():
    expect(run("sh", "-c", "kill -TERM $$", cwd=fresh("signal")).returncode == 128 + 15)


def test_run_of_a_command_that_is_not_there_fails_with_one_line():
    one_error(run("/no/such/command", cwd=fresh("nothing")), "/no/such/command")


def test_run_without_a_command_is_bad_usage():
    expect(heapprof("run").returncode == 2)
    expect(heapprof("run", "--period").returncode == 2)


def test_run_prints_the_profile_and_its_top_on_stderr_only():
    folder = fresh("top")
    result = run(PROG, "ready", cwd=folder)
    expect(result.stdout == "ready\n", repr(result.stdout))
    path = re.search(r"^heapprof: profile (\S+)$", result.stderr, re.M).group(1)
    expect(os.path.dirname(path) == folder and os.path.exists(path), path)
    expect(re.search(r"^ *97\.7KiB .* work$", result.stderr, re.M), result.stderr)


def test_run_lists_the_profiles_of_children_and_shows_the_top_of_the_main_process():
    folder = fresh("children")
    result = run(PROG, "fork", cwd=folder)
    expect(len(re.findall(r"^heapprof: profile ", result.stderr, re.M)) == 2, result.stderr)
    expect("97.7KiB" in result.stderr, result.stderr)


def test_run_of_a_wrapper_that_leaves_no_profile_shows_the_last_of_its_children():
    """As a shell does that ends by _exit: the first it starts is not what anybody wants to see."""
    script = f"import os, subprocess; subprocess.run(['/bin/true']); subprocess.run(['{PROG}', 'ready']); os._exit(0)"
    result = run(sys.executable, "-c", script, cwd=fresh("wrapper"))
    expect(len(re.findall(r"^heapprof: profile ", result.stderr, re.M)) == 2, result.stderr)
    expect(re.search(r"^ *97\.7KiB .* work$", result.stderr, re.M), result.stderr)


def test_run_shows_the_last_moment_and_not_the_peak():
    """The peak's file is written last."""
    folder = fresh("peak")
    result = run(sys.executable, "-c", "large = bytearray(50 << 20); del large", cwd=folder, options=["--peak=1", "-o", "x.pb.gz"])
    shown, last, peak = (re.search(r"^Type: .*$", text, re.M).group(0) for text in
                         (result.stderr, *(heapprof("top", os.path.join(folder, name)).stdout for name in ("x.pb.gz", "x.peak.pb.gz"))))
    expect(shown == last != peak, shown, last, peak)


def test_run_keeps_its_options_from_the_command_and_passes_the_rest():
    result = run("sh", "-c", "echo $HEAPPROF_PERIOD $HEAPPROF_LABELS $1", "sh", "--keep=3", cwd=fresh("options"),
                 options=["--period=7.5", "--labels=size,age", "-q"])
    expect(result.stdout == "7.5 size,age --keep=3\n", result.stdout)
    expect(result.stderr == "", result.stderr)


def test_run_prepends_to_ld_preload():
    env = dict(os.environ, LD_PRELOAD="libm.so.6")
    result = run("sh", "-c", "echo $LD_PRELOAD", cwd=fresh("preload"), env=env, options=["-q"])
    expect(result.stdout == os.path.realpath(LIBRARY) + ":libm.so.6\n", result.stdout)


def test_run_in_a_folder_with_a_percent_sign():
    folder = fresh("100%p")
    result = run(PROG, cwd=folder)
    expect(len(glob.glob(glob.escape(folder) + "/heapprof.*.pb.gz")) == 1, os.listdir(folder), result.stderr)
    expect("profile " + folder in result.stderr, result.stderr)


def test_run_finds_the_profile_of_a_command_that_changes_its_folder():
    folder = fresh("chdir")
    result = run(PROG, "chdir", cwd=folder)
    expect("profile " + folder in result.stderr, result.stderr)


def test_run_passes_signals_on():
    process = subprocess.Popen([HEAPPROF, "run", "--library", LIBRARY, "-q", "--", PROG, "term", "ready", "wait"],
                               cwd=fresh("forward"), stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.terminate()
    expect(process.wait(timeout=900) == 42, process.returncode)
    process.stdout.close()


def test_run_leaves_the_command_the_signals_as_they_were():
    """A parent that ignores SIGCHLD: the command finds it ignored, and its exit status is seen all the same."""
    is_not = "SigIgn:.*[02468ace][0-9a-f]{4}$"  # bit 16; a shell would set it to its own liking
    for ignored, status in ((signal.SIG_IGN, 1), (signal.SIG_DFL, 0)):
        result = run("grep", "-qE", is_not, "/proc/self/status", cwd=fresh("signals"), preexec_fn=lambda: signal.signal(signal.SIGCHLD, ignored))
        expect(result.returncode == status, ignored, "status", result.returncode)


def test_run_stops_and_goes_on_with_the_command():
    process = subprocess.Popen([HEAPPROF, "run", "--library", LIBRARY, "-q", "--", PROG, "term", "ready", "wait"],
                               cwd=fresh("stop"), stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as children:
        child = int(children.read().split()[0])
    os.kill(child, signal.SIGSTOP)
    wait_for_state(process.pid, "T")
    process.send_signal(signal.SIGCONT)
    wait_for_state(child, "S", "R")
    process.terminate()
    expect(process.wait(timeout=900) == 42, process.returncode)
    process.stdout.close()


def test_run_on_a_terminal_delivers_an_interrupt_once():
    script = "n=0; trap 'n=$((n+1))' INT; echo ready; while [ $n = 0 ]; do sleep 0.1; done; sleep 0.5; echo count $n; exit 3"
    terminal = Terminal([HEAPPROF, "run", "--library", LIBRARY, "-q", "--", "sh", "-c", script], fresh("terminal"))
    terminal.read_until(re.compile(b"ready"))
    terminal.type(b"\x03")
    text, status = terminal.finish()
    expect("count 1" in text, text)
    expect(status == 3, status, text)


def wait_for_state(pid, *states):
    for _ in range(15000):  # five minutes
        with open("/proc/%d/stat" % pid) as stat:
            state = stat.read().rsplit(")", 1)[1].split()[0]
        if state in states:
            return
        time.sleep(0.02)
    raise Failure("process %d is in state %s, not in %s" % (pid, state, states))


def wait_for_pending(pid, number):
    """A stopped process keeps the signal that it was sent."""
    for _ in range(15000):
        with open("/proc/%d/status" % pid) as status:
            if int(re.search(r"^ShdPnd:\s*(\w+)", status.read(), re.M).group(1), 16) >> (number - 1) & 1:
                return
        time.sleep(0.02)
    raise Failure("process %d was never sent signal %d" % (pid, number))


def test_run_says_when_no_profile_was_written():
    static = os.path.join(WORK, "static")
    subprocess.run(["gcc", "-static", os.path.join(WORK, "program.c"), "-o", static, "-pthread"], check=True, capture_output=True)
    result = run(static, cwd=fresh("none"))
    expect("no profile was written" in result.stderr, result.stderr)
    expect(result.returncode == 0, result.returncode)


# ---- dump ----

def dumped(process, folder, *options):
    before = set(os.listdir(folder)) if folder else set()
    result = heapprof("dump", "-t", "300", *options, str(process.pid))
    expect(result.returncode == 0, result.stderr)
    path = result.stdout.rstrip("\n")
    expect(os.path.exists(path), path)
    expect(os.path.basename(path) not in before, path, "is not new")
    expect(heapprof("top", path).returncode == 0)
    return path


def test_dump_prints_the_path_of_a_new_profile():
    folder = fresh("dump")
    process = start(folder)
    try:
        first = dumped(process, folder)
        second = dumped(process, folder)
        expect(first != second and os.path.dirname(first) == folder, first, second)
    finally:
        stop(process)


def test_dump_by_a_thread_id_is_about_its_process():
    folder = fresh("thread")
    process = start(folder, "thread")
    try:
        thread = max(int(t) for t in os.listdir("/proc/%d/task" % process.pid))
        result = heapprof("dump", "-t", "300", str(thread))
        expect(result.returncode == 0 and os.path.exists(result.stdout.strip()), result.stderr)
    finally:
        stop(process)


def test_dump_without_n_in_the_template_waits_for_the_replaced_file():
    folder = fresh("replace")
    process = start(folder, HEAPPROF_OUT="only.pb.gz")
    try:
        dumped(process, None)
        expect(dumped(process, None) == folder + "/only.pb.gz")
    finally:
        stop(process)


def test_dump_finds_the_folder_of_a_process_that_has_left_it():
    folder = fresh("left")
    process = start(folder, "chdir")
    try:
        expect(os.path.dirname(dumped(process, folder)) == folder)
    finally:
        stop(process)


def test_dump_prints_every_file_of_a_dump_of_several_kinds():
    folder = fresh("kinds")
    process = start(folder, HEAPPROF_KIND="heap,alloc")
    try:
        result = heapprof("dump", "-t", "300", str(process.pid))
        expect(result.returncode == 0 and result.stdout.count("\n") == 2, result.stdout, result.stderr)
    finally:
        stop(process)


def test_dump_of_a_process_that_writes_one_file_after_another_ends():
    folder = fresh("dump_busy")
    process = start(folder, HEAPPROF_PERIOD="0.03", HEAPPROF_KEEP="0")
    try:
        result = subprocess.run([HEAPPROF, "dump", "-t", "300", str(process.pid)], capture_output=True, text=True, timeout=900)
        paths = result.stdout.split()
        expect(result.returncode == 0 and paths and all(os.path.exists(path) for path in paths), result)
        expect(process.poll() is None)
    finally:
        stop(process)


def test_dump_uses_the_signal_the_process_was_started_with():
    folder = fresh("realtime")
    process = start(folder, HEAPPROF_SIGNAL="RTMIN+3")
    try:
        dumped(process, folder)
    finally:
        stop(process)


def test_dump_of_no_process():
    one_error(heapprof("dump", "4194304"), "there is no process 4194304")


def test_dump_of_a_bad_pid_is_bad_usage():
    for bad in ("0", "-1", "abc", "1x", ""):
        expect(heapprof("dump", "--", bad).returncode == 2, bad)
    expect(heapprof("dump").returncode == 2)


def test_dump_of_a_process_without_the_library_does_not_signal_it():
    process = start(fresh("without"), library=None)
    try:
        one_error(heapprof("dump", "-t", "300", str(process.pid)), "is not profiled")
        expect(process.poll() is None)
    finally:
        stop(process)


def test_dump_of_a_process_whose_signal_is_off():
    process = start(fresh("off"), HEAPPROF_SIGNAL="none")
    try:
        one_error(heapprof("dump", "-t", "300", str(process.pid)), "HEAPPROF_SIGNAL=none")
    finally:
        stop(process)


def test_dump_of_a_process_that_took_the_signal_back_does_not_kill_it():
    process = start(fresh("own"), "own")
    try:
        one_error(heapprof("dump", "-t", "300", str(process.pid)), "no handler")
        expect(process.poll() is None)
    finally:
        stop(process)


def memory_is_ours_to_read(pid):
    try:
        with open("/proc/%d/mem" % pid, "rb"):
            return True
    except OSError:
        return False


def test_dump_of_a_process_with_a_handler_of_its_own_leaves_it_alone():
    """nginx upgrades itself at SIGUSR2, haproxy and php-fpm reload."""
    process = start(fresh("handler"), "handler", "fork")  # it looks when the program forks
    try:
        if not memory_is_ours_to_read(process.pid):
            return "skipped: the memory of another process cannot be read"
        one_error(heapprof("dump", "-t", "300", str(process.pid)), "a handler of its own")
        expect(process.poll() is None)
    finally:
        stop(process)


def test_dump_of_a_process_that_overwrote_its_environment():
    folder, elsewhere = fresh("title"), fresh("title_out")
    process = start(folder, "title", HEAPPROF_OUT=elsewhere + "/its own.%p.%n.pb.gz", HEAPPROF_SIGNAL="RTMIN+3")
    try:
        if not memory_is_ours_to_read(process.pid):
            return "skipped: the memory of another process cannot be read"
        with open("/proc/%d/environ" % process.pid) as environment:
            expect("HEAPPROF" not in environment.read())
        result = heapprof("dump", "-t", "300", str(process.pid))
        expect(result.returncode == 0 and result.stdout == "%s/its own.%d.0.pb.gz\n" % (elsewhere, process.pid), result.stdout, result.stderr)
    finally:
        stop(process)


def test_dump_does_not_trust_what_a_process_says_to_be_the_library():
    """Bytes that look like the library's settings (base/published.h), with a signal, a size and addresses that are none."""
    folder = fresh("liar")
    for values in ((0xffffffff, 99, 1, 0, 1, 2**64 - 1), (64, -5, 0, 0, 0xffff800000000000, 0xdeadbeef), (0, 0, 0, 0, 0, 0)):
        text = b"\x7fheapprof: settings of this process".ljust(40, b"\0") + struct.pack("<IiIIQQ", *values)
        with open(folder + "/libheapprof.so", "wb") as file:
            file.write(bytes(64) + text + bytes(4000))
        liar = ("import mmap, sys, time; f = open('libheapprof.so', 'r+b'); m = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE); "
                "print('ready', flush=True); time.sleep(900)")
        process = subprocess.Popen([sys.executable, "-c", liar], cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            expect(process.stdout.readline() == "ready\n")
            one_error(heapprof("dump", "-t", "1", str(process.pid)), "process %d" % process.pid)
            expect(process.poll() is None)
        finally:
            stop(process)


def test_dump_of_a_zombie():
    process = subprocess.Popen(["true"])
    wait_for_state(process.pid, "Z")
    one_error(heapprof("dump", "-t", "300", str(process.pid)), "has ended")
    process.wait()


def test_dump_of_a_stopped_process_times_out_and_says_so():
    process = start(fresh("stopped"))
    try:
        process.send_signal(signal.SIGSTOP)
        wait_for_state(process.pid, "T")
        one_error(heapprof("dump", "-t", "1", str(process.pid)), "is stopped")
    finally:
        stop(process)


def test_dump_of_a_process_that_cannot_write_says_where_it_should():
    folder = fresh("unwritable")
    process = start(folder, HEAPPROF_OUT="/proc/%p.%n.pb.gz", HEAPPROF_LOG="off")
    try:
        one_error(heapprof("dump", "-t", "1", str(process.pid)), "no profile of process %d at /proc/%%p" % process.pid)
    finally:
        stop(process)


def test_dump_into_a_folder_that_is_not_there_is_said_without_waiting():
    for name, out in (("nofolder", "gone/%p.%n.pb.gz"), ("no%folder", "gone/"), ("nofolder", "%%/a.pb.gz"), ("nofolder", "/no/such/%p.pb.gz")):
        process = start(fresh(name), HEAPPROF_OUT=out, HEAPPROF_LOG="off")
        try:
            # an hour: the harness waits a quarter of one
            one_error(heapprof("dump", "-t", "3600", str(process.pid)), "process %d should write its profile does not exist: " % process.pid)
        finally:
            stop(process)


def test_dump_into_a_folder_named_by_the_template_is_not_refused():
    folder = fresh("named")
    process = start(folder, HEAPPROF_OUT="%p/x.%n.pb.gz", HEAPPROF_LOG="off")
    try:
        one_error(heapprof("dump", "-t", "1", str(process.pid)), "no profile of process")
        os.mkdir(os.path.join(folder, str(process.pid)))
        result = heapprof("dump", "-t", "300", str(process.pid))
        expect(result.returncode == 0 and os.path.exists(result.stdout.strip()), result.stderr)
    finally:
        stop(process)


def test_dump_of_a_process_that_blocks_the_signal():
    folder = fresh("blocked")
    block = "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]); os.execv(sys.argv[1], sys.argv[1:])"
    process = start(folder, prefix=(sys.executable, "-c", block))
    try:
        one_error(heapprof("dump", "-t", "1", str(process.pid)), "blocks signal %d" % signal.SIGUSR2)
    finally:
        stop(process)


def test_dump_of_a_process_that_dies_meanwhile():
    for is_reaped in (True, False):
        process = start(fresh("dies"))
        process.send_signal(signal.SIGSTOP)
        wait_for_state(process.pid, "T")
        dump = subprocess.Popen([HEAPPROF, "dump", "-t", "3600", str(process.pid)], stderr=subprocess.PIPE, text=True)
        wait_for_pending(process.pid, signal.SIGUSR2)
        process.kill()
        if is_reaped:
            process.wait()
        _, errors = dump.communicate(timeout=900)
        process.wait()
        process.stdout.close()
        expect(dump.returncode == 1 and "ended before" in errors, errors)


def test_dump_of_a_process_whose_main_thread_has_left():
    process = start(fresh("left"), "thread", "leave", HEAPPROF_EXIT_DUMP="0")
    try:
        wait_for_state(process.pid, "Z")
        result = heapprof("dump", str(process.pid))
        expect(result.returncode == 0 and os.path.exists(result.stdout.strip()), result.stdout + result.stderr)
    finally:
        stop(process)


def test_dump_of_another_users_process():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return "skipped"
    process = start(fresh("user"))
    try:
        result = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", HEAPPROF, "dump", str(process.pid)],
                                capture_output=True, text=True)
        one_error(result, "belongs to another user")
    finally:
        stop(process)
    return None


def test_dump_into_other_namespaces_prints_the_path_as_seen_from_here():
    probe = subprocess.run(["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    if probe.returncode != 0:
        return "skipped"
    folder = fresh("namespace")
    process = start(folder, prefix=["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                                    "mount -t tmpfs none /mnt && LD_PRELOAD=$HP_INNER_PRELOAD exec \"$@\"", "sh"], library=None,
                    HEAPPROF_OUT="/mnt/%p.%n.pb.gz", HP_INNER_PRELOAD=LIBRARY)
    try:
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as children:
            inner = int(children.read().split()[0])
        result = heapprof("dump", "-t", "300", str(inner))
        expect(result.returncode == 0, result.stderr)
        expect(result.stdout.startswith("/proc/%d/root/mnt/1." % inner), result.stdout)
        expect(heapprof("top", result.stdout.strip()).returncode == 0)
    finally:
        stop(process)
    return None


def main():
    global PROG
    fresh_folder(WORK)
    for name in ("HEAPPROF_OUT", "LD_PRELOAD", "HEAPPROF_SIGNAL"):
        os.environ.pop(name, None)
    PROG = os.path.join(WORK, "program")
    with open(PROG + ".c", "w") as source:
        source.write(PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", PROG + ".c", "-o", PROG, "-pthread"], check=True)
    return run_all(globals(), sys.argv[4] if len(sys.argv) > 4 else "")


PROG = ""

if __name__ == "__main__":
    sys.exit(main())
