# SPDX-License-Identifier: MIT
"""The workloads: own programs and real ones. Each knows its command line and how to run it for a subject."""
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass

from . import measure, real_inputs

THREAD_COUNTS = (1, 2, 4, 8, 16)
DEPTHS = (5, 20, 64, 200)


@dataclass(frozen=True)
class Workload:
    name: str
    kind: str  # micro: timed inside, ns a pair; threads: the same on all CPUs; exec and real: CPU time of the children
    argv: tuple
    iterations: int = 0

    @property
    def reference(self):
        """What a ratio of heapprof is taken against by the targets."""
        return "plain" if self.kind == "real" else "null"

    def suits(self, subject):
        if subject.is_whole_run and self.kind in ("micro", "threads"):
            return False
        if subject.is_crawling:
            return self.name.startswith(("pair 16", "depth"))
        if subject.is_every_call and self.name == "16 threads":
            return subject.group == "heapprof"
        return True

    def rounds_max(self, subject, rounds):
        return min(rounds, 5) if subject.is_every_call and self.kind != "real" else rounds

    def run(self, machine, programs, subject):
        if self.kind in ("micro", "threads"):
            iterations = self.iterations
            if subject.is_every_call:
                iterations = iterations // (200 if subject.is_crawling else 8)
            argv = [os.path.join(programs, self.argv[0]), *self.argv[1:], "--iterations=%d" % iterations]
            cpus = machine.all_cpus if self.kind == "threads" else {machine.one_cpu}
            return machine.run(argv, machine.env_of(subject), cpus)
        assignments = ["%s=%s" % item for item in machine.env_of(subject).items()]
        launcher = [os.path.join(programs, "bench_spawn"), *assignments]
        if self.kind == "exec":
            return machine.run([*launcher, "--count=%d" % self.iterations, "--", *self.argv], {}, {machine.one_cpu})
        if self.name == "redis":
            return run_redis(machine, launcher, self.argv, self.iterations)
        return machine.run([*launcher, "--", *self.argv], {}, {machine.one_cpu})


def run_redis(machine, launcher, argv, requests):
    """CPU time of the server from start to shutdown, while a client on another CPU sends it a fixed number of requests."""
    path = os.path.join(machine.scratch(), "redis.sock")
    server_argv = [argv[0], "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--daemonize", "no"]
    client_argv = [argv[1], "-s", path, "-q", "-n", str(requests), "-c", "20", "-P", "16", "-r", "20000", "-d", "300",
                   "-t", "set,get,lpush,sadd,hset,lrange_100"]
    server = machine.start([*launcher, "--", *server_argv], {}, {machine.one_cpu}, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    try:
        wait_for_socket(path)
        client = machine.start(client_argv, {}, machine.other_cpus, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if client.wait(timeout=120) != 0:
            raise measure.Failed("redis-benchmark failed")
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(path)
            control.sendall(b"SHUTDOWN NOSAVE\r\n")
            control.recv(100)
        out, err = server.communicate(timeout=60)
        if server.returncode != 0:
            raise measure.Failed(err[-300:])
        return measure.parse_line(out)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise measure.Failed(str(error)) from error
    finally:
        if server.poll() is None:
            measure.stop(server)


def wait_for_socket(path):
    for _ in range(1000):
        if os.path.exists(path):
            return
        time.sleep(0.01)
    raise measure.Failed("redis-server did not start")


def micro_workloads(is_quick):
    part = 2 if is_quick else 1
    found = [Workload("pair 16 B", "micro", ("bench_pair", "--size=16"), 4000000 // part),
             Workload("pair 512 B", "micro", ("bench_pair", "--size=512"), 4000000 // part),
             Workload("ring 10^6", "micro", ("bench_ring",), 1500000 // part)]
    found += [Workload("depth %d" % depth, "micro", ("bench_depth", "--depth=%d" % depth), 2000000 // part)
              for depth in DEPTHS]
    found += [Workload("%d thread%s" % (count, "s" if count > 1 else ""), "threads",
                       ("bench_threads", "--threads=%d" % count), 1200000 // count // part) for count in THREAD_COUNTS]
    found.append(Workload("pair, 10^6 live samples", "micro", ("bench_pair", "--live=1000000"), 4000000 // part))
    found.append(Workload("exec + exit", "exec", ("/bin/true",), 100 // part))
    return found


def real_workloads(folder, is_quick):
    """The real programs that are installed."""
    paths = real_inputs.write_inputs(folder, is_quick)
    found = []

    def add(name, program, *arguments):
        path = shutil.which(program, path="/usr/bin:/usr/local/bin:/bin") or (program if os.path.exists(program) else None)
        if path:
            found.append(Workload(name, "real", (path, *arguments)))

    add("sqlite", "sqlite3", ":memory:", ".read " + paths["script.sql"])
    add("python", "python3", paths["script.py"])
    gcc = shutil.which("gcc")
    if gcc:
        cc1 = subprocess.run([gcc, "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
        add("cc1", cc1, "-quiet", "-O2", paths["input.i"], "-o", "/dev/null")
    add("node", "node", paths["script.js"])
    add("jq", "jq", "group_by(.tags[0]) | map({key: .[0].tags[0], n: length, names: map(.name + .text) | sort})",
        paths["input.json"])
    server, client = shutil.which("redis-server"), shutil.which("redis-benchmark")
    if server and client:
        found.append(Workload("redis", "real", (server, client), 10000 if is_quick else 25000))
    return found
