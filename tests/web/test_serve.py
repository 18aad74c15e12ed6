# SPDX-License-Identifier: MIT
"""test_serve.py - `heapprof serve` asked as go tool pprof, Parca and Grafana Alloy (Pyroscope) ask, and as nobody should.
Arguments: the heapprof binary and libheapprof.so."""
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from profile_parser import Profile

HEAPPROF, LIBRARY = "heapprof", "libheapprof.so"

# A real program: grows by 5 kB each step, with ten times that in churn.
PROGRAM = """
import time
keep = []
while True:
    keep.append(bytearray(5000))
    junk = [bytearray(5000) for _ in range(10)]
    del junk
    time.sleep(0.002)
"""
FOUR = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]


class Server:
    """heapprof serve on a free port, around a command or a process id."""

    def __init__(self, *target, options=(), env=None, ignored=()):
        self.folder = tempfile.TemporaryDirectory()
        variables = {**os.environ, "TMPDIR": self.folder.name, "HEAPPROF_SAMPLE_RATE": "4k", **(env or {})}
        self.process = subprocess.Popen([HEAPPROF, "serve", "--listen", "127.0.0.1:0", "--library", LIBRARY, *options, *target],
                                        stderr=subprocess.PIPE, text=True, env=variables,
                                        preexec_fn=lambda: [signal.signal(number, signal.SIG_IGN) for number in ignored])
        line = self.process.stderr.readline()
        match = re.fullmatch(r"heapprof: process (\d+) at http://127\.0\.0\.1:(\d+)/debug/pprof/\n", line)
        if not match:
            raise AssertionError("serve said: " + line + self.process.stderr.read())
        self.pid, self.port = int(match[1]), int(match[2])

    def get(self, path, method="GET", headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, data

    def profile(self, path, **options):
        for _ in range(3000):  # the first bytes of the program's life may come before its handler
            status, headers, body = self.get(path, **options)
            if status != 503:
                break
            time.sleep(0.1)
        if status != 200:
            raise AssertionError(f"{path}: {status} {body[:200]}")
        return headers, Profile(body)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(timeout=600)
        self.process.stderr.close()
        self.folder.cleanup()
        return status


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--", sys.executable, "-c", PROGRAM)
        cls.server.profile("/debug/pprof/heap")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def check_agent_rules(self, profile):
        """What Parca and Pyroscope ask of a profile."""
        self.assertEqual(FOUR, profile.types)
        self.assertTrue(all("-" not in name for name, _ in profile.types))
        for ids in (profile.mapping_ids, profile.location_ids, profile.function_ids):
            self.assertEqual(list(range(1, len(ids) + 1)), ids)
        known = set(profile.location_ids)
        for sample in profile.samples:
            self.assertEqual(4, len(sample["value"]))
            self.assertTrue(sample["location"] and known.issuperset(sample["location"]))
        self.assertGreater(profile.time_nanos, 0)
        self.assertEqual(("space", "bytes"), profile.period_type)
        self.assertEqual(4096, profile.period)
        self.assertTrue(any(profile.names))

    def test_heap_as_alloy_scrapes_it(self):
        headers, profile = self.server.profile("/debug/pprof/heap", headers={"Accept-Encoding": "gzip", "User-Agent": "Alloy/v1"})
        self.assertEqual("application/octet-stream", headers["content-type"])
        self.assertEqual('attachment; filename="heap"', headers["content-disposition"])
        self.assertNotIn("content-encoding", headers)  # the body is gzip by itself, as Go's
        self.assertEqual("nosniff", headers["x-content-type-options"])
        self.check_agent_rules(profile)
        self.assertEqual("inuse_space", profile.default_type)
        self.assertGreater(profile.total("inuse_space"), 0)

    def test_allocs_as_parca_scrapes_it(self):
        headers, profile = self.server.profile("/debug/pprof/allocs?debug=0", headers={"Accept-Encoding": "gzip", "User-Agent": "Parca/0.22"})
        self.assertEqual('attachment; filename="allocs"', headers["content-disposition"])
        self.check_agent_rules(profile)
        self.assertEqual("alloc_space", profile.default_type)
        self.assertGreater(profile.total("alloc_space"), profile.total("inuse_space"))

    def test_seconds_gives_the_change(self):
        headers, delta = self.server.profile("/debug/pprof/allocs?seconds=1")
        _, whole = self.server.profile("/debug/pprof/allocs?gc=1")
        self.assertEqual('attachment; filename="allocs-delta"', headers["content-disposition"])
        self.check_agent_rules(delta)
        self.assertGreaterEqual(delta.duration_nanos, 10 ** 9)
        self.assertGreater(delta.total("alloc_space"), 0)
        self.assertLess(delta.total("alloc_space"), whole.total("alloc_space"))
        for seconds in (1, 3, 10, 30, 100):  # the program grows for ever, if it gets a processor, more than its churn comes and goes
            _, heap = self.server.profile(f"/debug/pprof/heap?seconds={seconds}")
            if heap.total("inuse_space") > 0:
                break
        self.assertGreater(heap.total("inuse_space"), 0)

    def test_debug_is_text(self):
        status, headers, body = self.server.get("/debug/pprof/heap?debug=1")
        self.assertEqual(200, status)
        self.assertEqual("text/plain; charset=utf-8", headers["content-type"])
        self.assertRegex(body.decode(), r"\Aheap profile: \d+: \d+ \[\d+: \d+\] @ heapprofile\n\d+: \d+ \[\d+: \d+\] @( 0x[0-9a-f]+)+\n#\t0x")
        self.assertIn("\nMAPPED_LIBRARIES:\n", body.decode())

    def test_metrics_are_prometheus_text(self):
        status, headers, body = self.server.get("/metrics")
        self.assertEqual(200, status)
        self.assertTrue(headers["content-type"].startswith("text/plain; version=0.0.4"))
        values, typed = {}, []
        for line in body.decode().splitlines():
            if line.startswith("# TYPE "):
                typed.append(line.split()[2])
            if line.startswith("#"):
                continue
            match = re.fullmatch(r'(heapprof_[a-z0-9_]+)(\{cause="[a-z0-9_]+"\})? (-?[0-9.e+-]+)', line)
            self.assertTrue(match, line)
            self.assertNotIn(match[1] + (match[2] or ""), values)
            values[match[1] + (match[2] or "")] = float(match[3])
            self.assertEqual(match[1], typed[-1])
        self.assertEqual(len(typed), len(set(typed)))
        self.assertGreater(values["heapprof_inuse_bytes"], 0)
        self.assertGreater(values["heapprof_alloc_bytes_total"], values["heapprof_inuse_bytes"])
        self.assertGreater(values["heapprof_sampling_samples"], 0)
        self.assertGreater(values["heapprof_reconcile_rss_anon_bytes"], 0)

    def test_bad_parameters_are_refused(self):
        for query in ("seconds=0", "seconds=-1", "seconds=x", "seconds=9999999999999999999", "seconds=301", "seconds=1&debug=1"):
            status, _, body = self.server.get("/debug/pprof/heap?" + query)
            self.assertEqual((400, 1), (status, body.count(b"\n")), query)

    def test_other_paths_and_methods(self):
        self.assertEqual(404, self.server.get("/debug/pprof/profile")[0])
        self.assertEqual(404, self.server.get("/../../etc/passwd")[0])
        self.assertEqual(405, self.server.get("/debug/pprof/heap", method="DELETE")[0])
        self.assertEqual(413, self.server.get("/debug/pprof/heap", method="POST", body=b"x")[0])
        self.assertEqual((302, "/debug/pprof/"), (lambda a: (a[0], a[1]["location"]))(self.server.get("/")))
        status, headers, body = self.server.get("/debug/pprof/")
        self.assertEqual((200, "text/html; charset=utf-8"), (status, headers["content-type"]))
        self.assertIn(b"heap?debug=1", body)
        status, headers, body = self.server.get("/debug/pprof/heap", method="HEAD")
        self.assertEqual((200, b""), (status, body))
        self.assertGreater(int(headers["content-length"]), 0)
        self.assertEqual((200, b"num_symbols: 0\n"), self.server.get("/debug/pprof/symbol", method="POST", body=b"0x1+0x2")[::2])
        self.assertEqual(413, self.server.get("/debug/pprof/symbol", method="POST", headers={"Content-Length": str(1 << 30)})[0])

    def test_a_foreign_host_header_is_refused(self):
        for host, status in (("evil.example", 403), ("evil.example:6060", 403), ("127.0.0.1.evil.example", 403), ("[::2]:1", 403),
                             ("localhost:6060", 200), ("127.0.0.1", 200), ("[::1]:6060", 200)):
            self.assertEqual(status, self.server.get("/debug/pprof/", headers={"Host": host})[0], host)

    def send_raw(self, data):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=300) as s:
            try:
                s.sendall(data)
                return s.recv(100)
            except ConnectionError:
                return b""

    def test_oversized_and_malformed_requests_do_no_harm(self):
        self.assertRegex(self.send_raw(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"), rb"\A(HTTP/1\.1 4\d\d |\Z)")
        self.assertRegex(self.send_raw(b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 100000 + b"\r\n\r\n"), rb"\A(HTTP/1\.1 4\d\d |\Z)")
        many = b"".join(b"H%d: v\r\n" % i for i in range(20000))
        self.assertRegex(self.send_raw(b"GET / HTTP/1.1\r\n" + many + b"\r\n"), rb"\A(HTTP/1\.1 4\d\d |\Z)")
        for junk in (b"\0" * 1000, b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 500, os.urandom(5000)):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=300) as s:
                s.sendall(junk)
        self.assertEqual(200, self.server.get("/debug/pprof/")[0])

    def test_only_so_many_deltas_at_once(self):
        clients = []  # all have asked before anybody waits for an answer
        for _ in range(7):
            clients.append(socket.create_connection(("127.0.0.1", self.server.port), timeout=600))
            clients[-1].sendall(b"GET /debug/pprof/heap?seconds=5 HTTP/1.0\r\n\r\n")
        answers = [b"".join(iter(lambda client=client: client.recv(1 << 16), b"")) for client in clients]
        for client in clients:
            client.close()
        self.assertEqual([b"200"] * 4 + [b"503"] * 3, sorted(answer.split(None, 2)[1] for answer in answers))

    def test_idle_connections_do_not_shut_others_out_for_long(self):
        idle = []
        try:
            for _ in range(60):
                idle.append(socket.create_connection(("127.0.0.1", self.server.port), timeout=300))
                idle[-1].sendall(b"GET / HT")
            deadline = time.monotonic() + 600
            while True:
                try:
                    if self.server.get("/debug/pprof/")[0] == 200:
                        break
                except (ConnectionError, http.client.HTTPException, TimeoutError):
                    pass
                self.assertLess(time.monotonic(), deadline, "shut out")
                time.sleep(0.2)
        finally:
            for s in idle:
                s.close()

    def test_dumps_are_removed_once_read(self):
        for _ in range(3):
            self.server.profile("/debug/pprof/heap")
        self.assertEqual([], [name for _, _, names in os.walk(self.server.folder.name) for name in names])

    @unittest.skipUnless(shutil.which("go"), "go is not installed")
    def test_go_tool_pprof_reads_it(self):
        for path in ("heap", "allocs?seconds=1", "heap?debug=1"):
            with tempfile.TemporaryDirectory() as folder:
                result = subprocess.run(["go", "tool", "pprof", "-top", f"http://127.0.0.1:{self.server.port}/debug/pprof/{path}"],
                                        capture_output=True, text=True, env={**os.environ, "PPROF_TMPDIR": folder, "HOME": folder})
            self.assertEqual(0, result.returncode, result.stderr)
            self.assertRegex(result.stdout, r"Showing nodes accounting for \S+, .*of \S+ total")


class LifeTest(unittest.TestCase):
    def serve(self, *target, **settings):
        """A server that ends with the test, however that ends: what is left of it would hold the test's output open."""
        server = Server(*target, **settings)
        self.addCleanup(server.close)
        return server

    def test_the_status_of_the_command_is_passed_on(self):
        for code, program in ((7, "import time, sys; time.sleep(0.5); sys.exit(7)"), (128 + 9, "import os, time; time.sleep(0.5); os.kill(os.getpid(), 9)")):
            server = self.serve("--", sys.executable, "-c", program)
            self.assertEqual(code, server.process.wait(timeout=600))
            self.assertEqual([], os.listdir(server.folder.name))
            server.close()

    def test_of_several_kinds_the_one_that_says_most_is_served(self):
        """Whatever order the folder lists them in; a delta would fall from one request to the next."""
        for kinds in ("delta,alloc", "alloc,delta", "heap,full", "full,heap"):
            server = self.serve("--", sys.executable, "-c", PROGRAM, env={"HEAPPROF_KIND": kinds})
            before = rises = 0
            while rises < 4:  # the first may be of before the first sample; the program allocates on and on
                profile = server.profile("/debug/pprof/allocs")[1]
                allocated = sum(sample["value"][1] for sample in profile.samples)
                self.assertGreaterEqual(allocated, before, kinds)
                self.assertEqual("full" in kinds, ("inuse_space", "bytes") in profile.types)
                rises += allocated > before
                before = allocated
            server.close()

    def test_a_stop_reaches_the_command(self):
        for number, program in ((signal.SIGTERM, PROGRAM), (signal.SIGINT, "import signal; signal.signal(2, signal.SIG_DFL)\n" + PROGRAM)):
            server = self.serve(sys.executable, "-c", program)
            server.profile("/debug/pprof/heap")
            server.process.send_signal(number)
            self.assertEqual(128 + number, server.process.wait(timeout=600))
            self.assertRaises(ProcessLookupError, os.kill, server.pid, 0)
            server.close()

    def test_signals_that_the_parent_ignores_stay_as_they_are(self):
        """The command finds SIGPIPE and SIGCHLD ignored, and its status is passed on."""
        one_is_not = "SigIgn:.*[02468ace]([0-9a-f]{3}|[0-9a-f]{4})$"  # bits 12 and 16; a shell would set SIGCHLD to its own liking
        for ignored, status in (((signal.SIGPIPE, signal.SIGCHLD), 1), ((), 0)):
            server = self.serve("--", "grep", "-qE", one_is_not, "/proc/self/status", ignored=ignored)
            self.assertEqual(status, server.process.wait(timeout=600))
            server.close()

    def test_a_running_process_is_served_and_outlives_the_server(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "LD_PRELOAD": LIBRARY, "HEAPPROF_OUT": folder + "/", "HEAPPROF_SAMPLE_RATE": "4k", "HEAPPROF_PERIOD": "0"}
            process = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment)
            try:
                while "libheapprof" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
                    time.sleep(0.05)
                server = self.serve(str(process.pid), options=["--keep"])
                server.profile("/debug/pprof/heap")
                self.assertEqual(1, len(os.listdir(folder)))
                self.assertEqual(0, server.close())
                self.assertIsNone(process.poll())
                server = self.serve(str(process.pid))
                process.kill()
                self.assertEqual(0, server.process.wait(timeout=600))
                server.close()
            finally:
                process.kill()
                process.wait()

    def test_a_process_whose_main_thread_has_left_is_served(self):
        leave = "import ctypes, platform, threading\nthreading.Thread(target=work).start()\n" \
                "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)\n"
        work = "import time\ndef work():\n    kept = []\n    while True:\n        kept.append(bytearray(1000))\n        time.sleep(0.001)\n"
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "LD_PRELOAD": LIBRARY, "HEAPPROF_OUT": folder + "/", "HEAPPROF_SAMPLE_RATE": "4k", "HEAPPROF_PERIOD": "0"}
            process = subprocess.Popen([sys.executable, "-c", work + leave], env=environment)
            try:
                while "State:\tZ" not in pathlib.Path(f"/proc/{process.pid}/status").read_text():
                    time.sleep(0.05)
                server = self.serve(str(process.pid))
                try:
                    for _ in range(3):
                        server.profile("/debug/pprof/heap")
                        time.sleep(0.5)  # each second the server looks whether the process is there
                    self.assertIsNone(server.process.poll())
                    process.kill()
                    self.assertEqual(0, server.process.wait(timeout=600))
                finally:
                    server.close()
            finally:
                process.kill()
                process.wait()

    def test_dumps_of_others_stay(self):
        """Periodic files come within the moment in which those of the request do."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "LD_PRELOAD": LIBRARY, "HEAPPROF_OUT": folder + "/", "HEAPPROF_SAMPLE_RATE": "4k",
                           "HEAPPROF_PERIOD": "0.03", "HEAPPROF_KEEP": "0", "HEAPPROF_EXIT_DUMP": "0"}
            process = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment)
            try:
                while not os.listdir(folder):
                    time.sleep(0.05)
                server = self.serve(str(process.pid))
                for _ in range(3):
                    server.profile("/debug/pprof/heap")
                server.close()
                while len([name for name in os.listdir(folder) if name.startswith("heapprof.")]) <= 10:
                    time.sleep(0.05)
            finally:
                process.kill()
                process.wait()
            numbers = sorted(int(name.split(".")[-3]) for name in os.listdir(folder) if name.startswith("heapprof."))
            self.assertGreater(len(numbers), 10)
            self.assertEqual(list(range(len(numbers))), numbers)

    def test_what_cannot_be_served_is_said(self):
        sleeper = subprocess.Popen(["sleep", "6000"])
        try:
            for status, arguments in ((1, [str(sleeper.pid)]), (1, ["999999999"]), (1, ["--library", LIBRARY, "--", "/no/such/program"]), (2, []),
                                      (2, ["--nonsense", "1"]), (2, ["-m", "0", "1"]), (1, ["--library", "/no/such.so", "--", "true"]),
                                      (1, ["--library", LIBRARY, "--listen", "300.1.1.1:80000", "--", "true"])):
                result = subprocess.run([HEAPPROF, "serve", *arguments], capture_output=True, text=True, timeout=600)
                self.assertEqual((status, 1, ""), (result.returncode, result.stderr.count("\n"), result.stdout), (arguments, result.stderr))
        finally:
            sleeper.kill()
            sleeper.wait()


if __name__ == "__main__":
    HEAPPROF, LIBRARY = sys.argv[1], sys.argv[2]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
