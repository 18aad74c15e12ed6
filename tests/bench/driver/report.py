# SPDX-License-Identifier: MIT
"""Markdown tables of everything measured."""
import statistics

from . import measure, special


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def scaled(ns, kind):
    if kind == "exec":
        return "%.0f µs" % (ns / 1e3)
    return "%.1f ms" % (ns / 1e6) if kind == "real" else "%.2f ns" % ns


def cell(runs, kind, metric="cpu_ns"):
    values = measure.values_of(runs, metric)
    if not values:
        return "–"
    return "%s (%s–%s)" % (scaled(statistics.median(values), kind), scaled(measure.quantile(values, 0.25), kind),
                           scaled(measure.quantile(values, 0.75), kind))


def workload_table(workload, subjects, results):
    """One workload: a row for each subject; ratio to its own reference and to plain, and of the fastest runs."""
    rows = []
    for subject in subjects:
        runs = results.get((workload.name, subject.name))
        if not measure.values_of(runs, "cpu_ns"):
            continue
        reference = workload.reference if subject.group == "heapprof" else subject.reference
        ratio = measure.Ratio(runs, results.get((workload.name, reference)))
        plain = measure.Ratio(runs, results.get((workload.name, "plain")))
        wall = measure.Ratio(runs, results.get((workload.name, "plain")), "wall_ns")
        to_reference = "%s %s" % (ratio, reference) if subject.name != "plain" else "–"
        rows.append((subject.name, cell(runs, workload.kind), to_reference,
                     "%.3f" % ratio.of_minima if ratio else "–", "%.3f" % plain.median if plain else "–",
                     "%.3f" % wall.median if wall else "–", len(measure.values_of(runs, "cpu_ns"))))
    unit = "CPU time a pair" if workload.kind in ("micro", "threads") else "CPU time"
    header = ("subject", unit + ": median (quartiles)", "ratio pair by pair to", "fastest / fastest", "CPU to plain",
              "wall to plain", "rounds")
    return "### %s\n\n" % workload.name + table(header, rows)


def sweep_table(sweep):
    rows = []
    for (profiler, depth, stacks), values in sorted(sweep.items()):
        spread = "%.0f (%.0f–%.0f)" % tuple(measure.quantile(values, fraction) for fraction in (0.5, 0.25, 0.75))
        rows.append((profiler, depth, stacks, spread, len(values)))
    return "### One sample all in (slope of the rate sweep, 512 B)\n\n" + table(
        ("profiler", "depth", "distinct stacks", "ns a sample: median (quartiles)", "rounds"), rows)


def plain_table(title, runs_by_name, columns):
    """columns: [(heading, metric, format function)]; medians over the rounds."""
    rows = []
    for name, runs in runs_by_name.items():
        if runs:
            rows.append((name, *(show(special.median_of(runs, metric) or 0) for _, metric, show in columns)))
    return "### %s\n\n" % title + table(("subject", *(heading for heading, _, _ in columns)), rows)


def ms(ns):
    return "%.2f ms" % (ns / 1e6)


def us(ns):
    return "%.1f µs" % (ns / 1e3)


def mib(value):
    return "%.2f MiB" % (value / 2**20)


def whole(value):
    return "%d" % value


def special_tables(found):
    parts = []
    if found.get("sweep"):
        parts.append(sweep_table(found["sweep"]))
    if found.get("first sample"):
        title = "First sample of a new thread (wall time of its first, second, third malloc)"
        parts.append(plain_table(title, found["first sample"],
                                 [("first", "cpu_ns", us), ("second", "second_ns", us), ("third", "third_ns", us),
                                  ("99th percentile of the first", "p99_ns", us),
                                  ("very first in the process", "cold_ns", us)]))
    if found.get("dump"):
        parts.append(plain_table("Dump of 100 000 live samples on 10 000 stacks of depth 40", found["dump"],
                                 [("CPU", "cpu_ns", ms), ("wall", "wall_ns", ms), ("CPU of the first", "first_cpu_ns", ms),
                                  ("file", "file_bytes", mib)]))
    if found.get("pause"):
        parts.append(plain_table("malloc and free of three busy threads while dumps run", found["pause"],
                                 [("calls", "calls", whole), ("median", "p50_ns", whole), ("99 %", "p99_ns", whole),
                                  ("99.9 %", "p999_ns", whole), ("99.99 %", "p9999_ns", us),
                                  ("over 30 µs: waited", "waited", whole), ("longest", "waited_max_ns", us),
                                  ("other (spin, fault, stolen)", "other", whole), ("longest", "other_max_ns", us),
                                  ("preempted", "preempted", whole), ("a dump takes", "dump_wall_ns", ms)]))
    memory = found.get("memory") or {}
    if memory.get("large"):
        parts.append(plain_table("Memory at rate 1", memory["large"],
                                 [("own: at start", "start_own", mib), ("live", "live_own", mib),
                                  ("all freed", "freed_own", mib), ("some time later", "settled_own", mib),
                                  ("distinct stacks", "visited_own", mib),
                                  ("private: at start", "start_private", mib), ("live", "live_private", mib),
                                  ("all freed", "freed_private", mib), ("distinct stacks", "visited_private", mib)]))
    if memory.get("small"):
        parts.append(plain_table("Memory of a small program at 512k", memory["small"],
                                 [("private", "live_private", mib), ("resident", "live_rss", mib),
                                  ("own", "live_own", mib)]))
    if found.get("startup"):
        calls = sorted({call for counts in found["startup"].values() for call in counts})
        rows = [(name, *(counts.get(call, 0) for call in calls)) for name, counts in found["startup"].items()]
        parts.append("### System calls of /bin/true\n\n" + table(("subject", *calls), rows))
    if found.get("instructions"):
        counts = found["instructions"]
        rows = [(name, "%.2f" % count, "%+.2f" % (count - counts.get("null", count))) for name, count in counts.items()]
        header = ("subject", "instructions", "over null")
        parts.append("### Instructions a pair of 16 B (callgrind)\n\n" + table(header, rows))
    return "\n".join(parts)
