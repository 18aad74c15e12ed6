# SPDX-License-Identifier: MIT
"""Runs programs, pinned, one at a time, and reads their `bench` line. Rounds are interleaved: a b c a b c ..., every second
round backwards, so that a slow drift of the machine and the place in the order touch all subjects alike.
"""
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time


class Failed(Exception):
    """A program ended badly, or said nothing."""


def parse_line(text):
    """The `bench` line of a program as {key: number or text}."""
    line = next((line for line in text.splitlines() if line.startswith("bench ")), None)
    if line is None:
        raise Failed("no result line")
    values = {}
    for word in line.split()[1:]:
        key, _, value = word.partition("=")
        try:
            values[key] = float(value)
        except ValueError:
            values[key] = value
    return values


class Machine:
    """The CPUs to pin to and the scratch folder."""

    def __init__(self, cpu=None):
        self.all_cpus = os.sched_getaffinity(0)
        self.one_cpu = max(self.all_cpus) if cpu is None else cpu
        self.other_cpus = (self.all_cpus - {self.one_cpu}) or self.all_cpus
        self.tmp = tempfile.mkdtemp(prefix="heapprof-bench.")

    def close(self):
        shutil.rmtree(self.tmp, ignore_errors=True)

    def env_of(self, subject, more=None):
        """Variables of a subject, the scratch folder filled in."""
        env = dict(subject.env)
        env.update(more or {})
        return {key: value.replace("{tmp}", self.scratch()) for key, value in env.items()}

    def scratch(self):
        path = os.path.join(self.tmp, "out")
        os.makedirs(path, exist_ok=True)
        return path

    def clean(self):
        shutil.rmtree(self.scratch(), ignore_errors=True)

    def start(self, argv, env, cpus, **options):
        """A process on `cpus`. Affinity is inherited, so nothing of ours runs in the child between fork and exec."""
        os.sched_setaffinity(0, cpus)
        try:
            full = {key: value for key, value in os.environ.items() if not key.startswith(("HEAPPROF_", "LD_PRELOAD"))}
            full.update(env)
            return subprocess.Popen(argv, env=full, cwd=self.scratch(), text=True, errors="replace",
                                    start_new_session=True, **options)
        finally:
            os.sched_setaffinity(0, self.all_cpus)

    def run(self, argv, env, cpus, timeout_s=600):
        process = self.start(argv, env, cpus, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException as error:
            stop(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed("took longer than %d s" % timeout_s) from error
            raise
        if process.returncode != 0:
            raise Failed("status %d: %s" % (process.returncode, err.strip()[-300:]))
        return parse_line(out)


def stop(process):
    """End a process of ours and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


class Progress:
    """One line on a terminal, nothing elsewhere."""

    def __init__(self, total):
        self.total, self.done, self.start_s = total, 0, time.monotonic()
        self.is_shown = sys.stderr.isatty()

    def step(self, text):
        self.done += 1
        if not self.is_shown:
            return
        left_s = (time.monotonic() - self.start_s) / self.done * (self.total - self.done)
        sys.stderr.write("\r\033[K[%d/%d] %s, %d s left" % (self.done, self.total, text, left_s))
        if self.done >= self.total:
            sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def run_rounds(machine, jobs, rounds, progress, failures, results=None):
    """jobs: [(key, rounds_max, function)]; the function runs once and returns values. Returns {key: [values or None]}, filled in
    as it goes: an interrupted run keeps the rounds it had."""
    results = {} if results is None else results
    results.update({key: [] for key, _, _ in jobs})
    for number in range(rounds):
        for key, rounds_max, function in (jobs if number % 2 == 0 else reversed(jobs)):
            progress.step(" / ".join(str(part) for part in key))
            if number >= rounds_max or (key in failures and number > 0):
                results[key].append(None)
                continue
            try:
                results[key].append(function())
            except Failed as error:
                failures[key] = str(error)
                results[key].append(None)
            machine.clean()
    return results


def values_of(runs, metric):
    return [run[metric] for run in runs or [] if run and metric in run]


def quantile(values, fraction):
    """Linear between neighbours; values need not be sorted."""
    ordered = sorted(values)
    at = fraction * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


class Ratio:
    """Ratio of two subjects, pair by pair (the same round), with quartiles."""

    def __init__(self, runs, reference, metric="cpu_ns"):
        pairs = [(a[metric], b[metric]) for a, b in zip(runs or [], reference or []) if a and b and b.get(metric)]
        self.values = [a / b for a, b in pairs]
        self.count = len(self.values)
        if self.values:
            self.median = statistics.median(self.values)
            self.low, self.high = quantile(self.values, 0.25), quantile(self.values, 0.75)
            self.of_minima = min(a for a, _ in pairs) / min(b for _, b in pairs)

    def __bool__(self):
        return self.count > 0

    def __str__(self):
        return "%.3f (%.3f–%.3f)" % (self.median, self.low, self.high) if self.values else "–"


def slope(points):
    """Least-squares slope of [(x, y)]."""
    mean_x, mean_y = statistics.fmean(x for x, _ in points), statistics.fmean(y for _, y in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
