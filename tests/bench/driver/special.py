# SPDX-License-Identifier: MIT
"""Measurements that are no plain ratio: cost of one sample, first sample of a thread, memory, dumps, pauses, start-up,
instructions. Each function returns plain values for report.py and targets.py; what cannot run here is left out.
"""
import math
import os
import re
import shutil
import statistics
import subprocess

from . import measure, subjects

SWEEP_SIZE_BYTES = 512
SWEEP_DEPTHS = (5, 20, 64)
RATE_1 = {"HEAPPROF_SAMPLE_RATE": "1", "HEAPPROF_MAX_MEMORY": "8g"}


def sample_probability(rate_bytes, size_bytes=SWEEP_SIZE_BYTES):
    return 1 - math.exp(-size_bytes / rate_bytes)


def sweep(machine, programs, library, options, failures):
    """{(profiler, depth, stacks): [ns a sample, one a round]}: slope of ns a pair over samples a pair."""
    found, rounds = subjects.sweep_subjects(library), options.rounds
    if options.quick or options.subjects:
        wanted = options.subjects or ["heapprof"]
        found = {name: rates for name, rates in found.items() if any(part in name for part in wanted)}
    jobs = []
    for profiler, rates in found.items():
        for depth in SWEEP_DEPTHS:
            for stacks in ((1, 1024) if profiler == "heapprof" else (1,)):
                for rate, subject in rates.items():
                    argv = [os.path.join(programs, "bench_depth"), "--depth=%d" % depth, "--stacks=%d" % stacks,
                            "--size=%d" % SWEEP_SIZE_BYTES, "--iterations=%d" % (300000 if options.quick else 600000)]
                    jobs.append((("sample", profiler, depth, stacks, rate), rounds,
                                 lambda argv=argv, subject=subject: machine.run(argv, machine.env_of(subject),
                                                                                {machine.one_cpu})))
    runs = measure.run_rounds(machine, jobs, rounds, measure.Progress(len(jobs) * rounds), failures)
    result = {}
    for key in {(profiler, depth, stacks) for _, profiler, depth, stacks, _ in runs}:
        for number in range(rounds):
            points = [(sample_probability(rate), values[number]["mean_cpu_ns"])
                      for (_, *rest, rate), values in runs.items() if tuple(rest) == key and values[number]]
            if len(points) > 2:
                result.setdefault(key, []).append(measure.slope(points))
    return result


def run_list(machine, programs, program, arguments, chosen, rounds, failures, cpus=None):
    """[(name, env, extra arguments)] -> {name: [values of each round]}, interleaved."""
    jobs = []
    for name, env, extra in chosen:
        argv = [os.path.join(programs, program), *arguments, *extra]
        subject = subjects.Subject(name, env)
        jobs.append(((program, name), rounds,
                     lambda argv=argv, subject=subject: machine.run(argv, machine.env_of(subject),
                                                                    cpus or {machine.one_cpu})))
    runs = measure.run_rounds(machine, jobs, rounds, measure.Progress(len(jobs) * rounds), failures)
    return {name: [run for run in values if run] for (_, name), values in runs.items()}


def first_sample(machine, programs, null, library, rounds, failures):
    chosen = [("null", {"LD_PRELOAD": null}, ())]
    if library:
        chosen.append(("heapprof 1", subjects.heapprof_env(library, "1"), ()))
    return run_list(machine, programs, "bench_first_sample", (), chosen, rounds, failures)


def memory(machine, programs, null, library, is_quick, failures):
    """Rate 1 with many samples and stacks, against null; and a small program at 512k, against plain."""
    many = 100000 if is_quick else 1000000
    heapprof = subjects.heapprof_env(library, "1", HEAPPROF_MAX_MEMORY="8g", HEAPPROF_EXIT_DUMP="0") if library else None
    chosen = [("null", {"LD_PRELOAD": null}, ())] + ([("heapprof 1", heapprof, ())] if heapprof else [])
    arguments = ("--samples=%d" % many, "--stacks=%d" % many, "--wait=%d" % (1 if is_quick else 15))
    large = run_list(machine, programs, "bench_memory", arguments, chosen, 1, failures)
    chosen = [("plain", {}, ())]
    if library:
        chosen.append(("heapprof 512k", subjects.heapprof_env(library, "512k"), ()))
    small = run_list(machine, programs, "bench_memory", ("--samples=0", "--stacks=0", "--wait=0"), chosen, 5, failures)
    return {"large": large, "small": small}


def dump(machine, programs, library, is_quick, failures):
    jemalloc, tcmalloc = subjects.find_library("libjemalloc.so.2"), subjects.find_library("libtcmalloc.so.4")
    chosen = []
    if library:
        for name, more, extra in (("full", {}, ()), ("full, in a threaded program", {}, ("--threads=1",)),
                                  ("full,delta", {"HEAPPROF_KIND": "full,delta"}, ()),
                                  ("full + peak", {"HEAPPROF_PEAK": "1"}, ()),
                                  ("full, no names", {"HEAPPROF_SYMBOLS": "0"}, ())):
            chosen.append(("heapprof " + name, subjects.heapprof_env(library, "1", HEAPPROF_EXIT_DUMP="0", **more), extra))
    if jemalloc:
        conf = "prof:true,prof_accum:true,lg_prof_sample:0"
        chosen.append(("jemalloc", {"LD_PRELOAD": jemalloc, "MALLOC_CONF": conf}, ()))
    if tcmalloc and not is_quick:
        chosen.append(("tcmalloc heap profiler", {"LD_PRELOAD": tcmalloc, "HEAPPROFILE": "{tmp}/tcmalloc"}, ()))
    return run_list(machine, programs, "bench_dump", (), chosen, 1 if is_quick else 3, failures)


def pause(machine, programs, null, library, is_quick, failures):
    rounds = "--dumps=10" if is_quick else "--dumps=40"
    chosen = [("null, no dump", {"LD_PRELOAD": null}, ("--dumps=0", "--rounds=10"))]
    if library:
        env = subjects.heapprof_env(library, "1", HEAPPROF_EXIT_DUMP="0")
        chosen += [("heapprof 512k, no dump", env, ("--dumps=0", "--rounds=10")), ("heapprof 512k, dumps", env, (rounds,)),
                   ("heapprof 4k, no dump", env, ("--dumps=0", "--rounds=10", "--rate=4096")),
                   ("heapprof 4k, dumps", env, (rounds, "--rate=4096"))]
    return run_list(machine, programs, "bench_pause", (), chosen, 1 if is_quick else 3, failures, machine.all_cpus)


def startup_calls(machine, null, library):
    """{subject: {system call: count}} of /bin/true, by strace."""
    if not shutil.which("strace"):
        return {}
    chosen = [("plain", {}), ("null", {"LD_PRELOAD": null})]
    if library:
        chosen.append(("heapprof 512k", subjects.heapprof_env(library, "512k")))
    result = {}
    for name, env in chosen:
        log = os.path.join(machine.scratch(), "strace.log")
        variables = machine.env_of(subjects.Subject(name, env)).items()
        assignments = [word for item in variables for word in ("-E", "%s=%s" % item)]
        subprocess.run(["strace", "-f", "-o", log, *assignments, "/bin/true"], check=True)
        with open(log, encoding="utf-8", errors="replace") as lines:
            calls = [match.group(1) for match in (re.match(r"\d+ +(\w+)\(", line) for line in lines) if match]
        result[name] = {call: calls.count(call) for call in sorted(set(calls))}
    machine.clean()
    return result


def instructions_once(machine, argv, env):
    """Instructions of a program, by callgrind."""
    out = os.path.join(machine.scratch(), "callgrind.out")
    full = {key: value for key, value in os.environ.items() if not key.startswith(("HEAPPROF_", "LD_PRELOAD"))}
    full.update(env)
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, *argv], env=full, check=False,
                          capture_output=True, text=True)
    match = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not match:
        raise measure.Failed(done.stderr[-300:])
    return int(match.group(1))


def instructions(machine, programs, null, library, failures):
    """{subject: instructions a pair of 16 B, the loop's own included}, from two lengths of the same run."""
    if not shutil.which("valgrind"):
        return {}
    chosen = [("plain", {}), ("null", {"LD_PRELOAD": null})]
    if library:
        chosen += [("heapprof " + rate, subjects.heapprof_env(library, rate, HEAPPROF_EXIT_DUMP="0"))
                   for rate in ("0", "512k", "4k")]
    result, program = {}, os.path.join(programs, "bench_pair")
    few, many = 200000, 2200000
    for name, env in chosen:
        try:
            variables = machine.env_of(subjects.Subject(name, env))
            counts = [instructions_once(machine, [program, "--iterations=%d" % count], variables) for count in (few, many)]
            # The program warms up with a fiftieth and rounds each of its 20 chunks up by one.
            result[name] = (counts[1] - counts[0]) / ((many - few) * 1.02)
        except measure.Failed as error:
            failures[("instructions", name)] = str(error)
        machine.clean()
    return result


def median_of(runs, metric):
    values = measure.values_of(runs, metric)
    return statistics.median(values) if values else None
