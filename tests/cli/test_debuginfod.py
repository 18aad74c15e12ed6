#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""symbolize with a debuginfod server on loopback: used when DEBUGINFOD_URLS names it, never contacted otherwise.

usage: test_debuginfod.py HEAPPROF LIBHEAPPROF.SO WORK_DIRECTORY        (skipped without debuginfod)
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

HEAPPROF, LIBRARY, WORK = sys.argv[1:4]
SKIPPED = 77

PROGRAM = """
#include <stdlib.h>
static void *volatile kept;
static inline __attribute__((always_inline)) void innermost(int n) { kept = malloc(n); }
static __attribute__((noinline)) void local_function(void) { innermost(12345); }
int main(void) { local_function(); return 0; }
"""


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options)


def prepare():
    """A profile whose binary is gone, and a folder `served` that has the binary and its debug information."""
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK + "/served")
    program = WORK + "/program"
    with open(program + ".c", "w") as source:
        source.write(PROGRAM)
    run("gcc", "-g", "-O2", "-Wl,--build-id", program + ".c", "-o", program)
    environment = dict(os.environ, LD_PRELOAD=LIBRARY, HEAPPROF_SAMPLE_RATE="1", HEAPPROF_OUT=WORK + "/raw.pb.gz",
                       HEAPPROF_SYMBOLS="0")
    run(program, env=environment)
    run("objcopy", "--only-keep-debug", program, WORK + "/served/program.debug")
    run("objcopy", "--strip-all", program)
    shutil.move(program, WORK + "/served/program")
    return WORK + "/raw.pb.gz"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def symbolize(raw, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
    env.update(environment, DEBUGINFOD_CACHE_PATH=WORK + "/cache", HOME=WORK)
    out = WORK + "/out.pb.gz"
    result = run(HEAPPROF, "symbolize", raw, "-o", out, env=env)
    report = json.loads(run(HEAPPROF, "top", "--json", "--lines", "-n", "0", "-t", "alloc_space", out).stdout)
    found = {(row["function"], row["line"]) for row in report["rows"] if row["cum"] >= 12345}
    return {("innermost", 4), ("local_function", 5), ("main", 6)} <= found, result.stderr


def build_id(binary):
    notes = run("readelf", "-n", binary).stdout
    return notes.split("Build ID:")[1].split()[0]


def knows_both_files(url, identity):
    """Asked as a client asks, but without its cache, which would remember that there was nothing yet."""
    try:
        for what in ("executable", "debuginfo"):
            with urllib.request.urlopen("%s/buildid/%s/%s" % (url, identity, what), timeout=60) as answer:
                answer.read()
    except (urllib.error.URLError, OSError):
        return False
    return True


def start_server():
    """The server and its address, when it has scanned its folder. Once more if somebody else took the port that was free."""
    identity = build_id(WORK + "/served/program")
    for _ in range(10):
        port = free_port()
        server = subprocess.Popen(["debuginfod", "-F", "-p", str(port), "-d", WORK + "/index.sqlite", WORK + "/served"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(6000):
            if server.poll() is not None:
                break
            if knows_both_files("http://127.0.0.1:%d" % port, identity):
                return server, "http://127.0.0.1:%d" % port
            time.sleep(0.1)
        server.kill()
        server.wait()
    sys.exit("debuginfod did not start")


def main():
    if not shutil.which("debuginfod"):
        print("no debuginfod")
        return SKIPPED
    raw = prepare()
    failed = 0
    named, errors = symbolize(raw)
    if shutil.which("strace"):
        env = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
        trace = WORK + "/trace"
        run("strace", "-f", "-o", trace, "-e", "trace=socket,connect", HEAPPROF, "symbolize", "-q", raw, "-o", "/dev/null", env=env)
        with open(trace) as calls:
            text = calls.read()
        if "exited with 0" not in text or "AF_INET" in text:
            print("FAILED: a network access although DEBUGINFOD_URLS is not set:\n" + text)
            failed += 1
    if named or "not found: " + WORK + "/program" not in errors or "no such file" not in errors:
        print("FAILED: without a server: %r %r" % (named, errors))
        failed += 1
    server, url = start_server()
    try:
        named, errors = symbolize(raw, DEBUGINFOD_URLS=url)
        if not named:
            print("FAILED: with a server: %r" % errors)
            failed += 1
    finally:
        server.terminate()
        server.wait()
    print("debuginfod: %d failed" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
