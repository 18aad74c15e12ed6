# SPDX-License-Identifier: MIT
"""The targets, each row with its figure, its control and a verdict. Limits stand here and nowhere else."""
import statistics

from . import measure, report, special

PEER_ROWS = ("pair 512 B", "ring 10^6", "depth 5", "depth 20", "depth 64", "depth 200", "python")


class Rows:
    """Collects the rows of the target table."""

    def __init__(self, results, found, micro, real):
        self.results, self.found, self.micro, self.real = results, found, micro, real
        self.rows = []

    def ratio(self, workload, subject, reference, metric="cpu_ns"):
        return measure.Ratio(self.results.get((workload, subject)), self.results.get((workload, reference)), metric)

    def noise(self, workload):
        return self.ratio(workload, "plain again", "plain")

    def add(self, target, what, figure, limit, verdict, control="–"):
        self.rows.append((target, what, figure, control, limit, verdict))

    def add_ratio(self, target, workload, subject, reference, limit, metric="cpu_ns"):
        ratio, control = self.ratio(workload, subject, reference, metric), self.noise(workload)
        if not ratio:
            return
        self.add(target, "%s: %s / %s" % (workload, subject, reference), str(ratio), "≤ %.3f" % limit,
                 judge(ratio, limit, control), str(control))

    def add_value(self, target, what, value, limit, show, control="–"):
        if value is not None:
            self.add(target, what, show(value), "≤ " + show(limit), "met" if value <= limit else "MISSED", control)


def judge(ratio, limit, control):
    """met; within noise: the limit lies inside the quartiles, or no further away than plain lies from itself; or MISSED."""
    if ratio.median <= limit:
        return "met"
    spread = max(abs(control.low - 1), abs(control.high - 1)) if control else 0
    return "within noise" if ratio.low <= limit or ratio.median <= limit + spread else "MISSED"


def rates(rows):
    for workload in rows.micro:
        if workload.kind != "exec" and "live" not in workload.name:
            rows.add_ratio("1 default rate", workload.name, "heapprof 512k", "null", 1.03)
    for workload in rows.real:
        rows.add_ratio("1 default rate", workload.name, "heapprof 512k", "plain", 1.01)
    counts = rows.found.get("instructions") or {}
    if "null" in counts and "heapprof 512k" in counts:
        rows.add_value("1 default rate", "instructions a pair over null, samples included",
                       counts["heapprof 512k"] - counts["null"], 20, lambda value: "%.1f" % value)
    for workload in rows.micro:
        if workload.name.startswith(("pair 16", "ring")) or workload.kind == "threads":
            rows.add_ratio("2 32k", workload.name, "heapprof 32k", "null", 1.05)
    rows.add_ratio("2 32k", "depth 20", "heapprof 32k", "null", 1.25)
    for workload in rows.real:
        rows.add_ratio("2 32k", workload.name, "heapprof 32k", "plain", 1.03)


def one_sample(rows):
    limits = {5: (300, 150), 20: (300, 150), 64: (450, 200)}
    for (profiler, depth, stacks), values in sorted((rows.found.get("sweep") or {}).items()):
        if profiler == "heapprof" and depth in limits:
            stretch = limits[depth][1]
            what = "sample all in, depth %d, %d stack%s (stretch %d)" % (depth, stacks, "" if stacks == 1 else "s", stretch)
            spread = "quartiles %.0f–%.0f" % (measure.quantile(values, 0.25), measure.quantile(values, 0.75))
            rows.add_value("3 a sample", what, statistics.median(values), limits[depth][0], "{:.0f} ns".format, spread)
    first = rows.found.get("first sample") or {}
    if first.get("heapprof 1") and first.get("null"):
        null_ns = special.median_of(first["null"], "cpu_ns")
        over_ns = special.median_of(first["heapprof 1"], "cpu_ns") - null_ns
        rows.add_value("3 a sample", "first sample of a new thread, over null", over_ns, 5000, report.us,
                       "null " + report.us(null_ns))


def every_call(rows):
    for workload in rows.real:
        peer = rows.ratio(workload.name, "heaptrack", "plain")
        if peer:
            rows.add_ratio("4 rate 1", workload.name, "heapprof 1", "plain", (peer.median + 2) / 3)
    for workload in ("2 threads", "8 threads"):
        rows.add_ratio("4 rate 1, wall", workload, "heapprof 1", "heaptrack", 0.2, "wall_ns")


def filter_and_start(rows):
    rows.add_ratio("5 free of an unsampled block", "pair, 10^6 live samples", "heapprof 512k", "null", 1.03)
    rows.add_ratio("6 start-up (stretch 1.15)", "exec + exit", "heapprof 512k", "null", 1.3)
    calls = rows.found.get("startup") or {}
    if "heapprof 512k" in calls and "null" in calls:
        more = {call: count - calls["null"].get(call, 0) for call, count in calls["heapprof 512k"].items()
                if count != calls["null"].get(call, 0)}
        bad = any(more.get(call, 0) > 0 for call in ("openat", "open", "clone", "clone3"))
        rows.add("6 start-up", "system calls over null", ", ".join("%s %+d" % item for item in more.items()) or "none",
                 "no file opened, no thread", "MISSED" if bad else "met")


def memory(rows):
    found = rows.found.get("memory") or {}
    small, large = found.get("small") or {}, (found.get("large") or {}).get("heapprof 1")
    if small.get("heapprof 512k") and small.get("plain"):
        plain = special.median_of(small["plain"], "live_private")
        rows.add_value("7 memory", "small program at 512k, private bytes over plain",
                       special.median_of(small["heapprof 512k"], "live_private") - plain, 1.5 * 2**20, report.mib,
                       report.mib(plain))
    null = (found.get("large") or {}).get("null")
    if not large or not null:
        return
    run, floor = large[0], null[0]

    def step(after, before):
        def grown(of, what):
            return of[after + what] - of[before + what]
        return grown(run, "_own"), grown(run, "_private") - grown(floor, "_private")

    def show(value):
        return "%.1f B" % value

    own, private = step("live", "start")
    samples, stacks = run["samples"], run["visited_stacks"] - run["settled_stacks"]
    rows.add_value("7 memory", "a live sample, at %d (private pages over null: %s)" % (samples, show(private / samples)),
                   own / samples, 48, show)
    own, private = step("visited", "settled")
    rows.add_value("7 memory", "a distinct stack of depth %d, at %d (private pages over null: %s)" % (
        run["depth"], stacks, show(private / stacks)), own / stacks, 8 * (run["depth"] + 6) + 96, show,
        "depth is that of the program's own frames; 6 more for main and the start")
    rows.add_value("7 memory", "left of the live samples some time after all are freed", run["settled_own"] - run["start_own"],
                   0.1 * (run["live_own"] - run["start_own"]), report.mib)


def dumps(rows):
    found = rows.found.get("dump") or {}
    full = found.get("heapprof full")
    if full:
        cpu_ns = special.median_of(full, "cpu_ns")
        peers = ", ".join("%s %s" % (name, report.ms(special.median_of(runs, "cpu_ns"))) for name, runs in found.items()
                          if runs and not name.startswith("heapprof"))
        rows.add_value("8 dump", "CPU, names resolved before", cpu_ns, 60e6, report.ms, peers)
        rows.add_value("8 dump", "file", special.median_of(full, "file_bytes"), 2 * 2**20, report.mib)
        for name in ("heapprof full,delta", "heapprof full + peak"):
            if found.get(name):
                rows.add_value("8 dump", name + ": CPU over full", special.median_of(found[name], "cpu_ns") / cpu_ns, 1.10,
                               lambda value: "%.3f" % value)
    pauses = rows.found.get("pause") or {}
    for rate in ("512k", "4k"):
        with_dumps, without = pauses.get("heapprof %s, dumps" % rate), pauses.get("heapprof %s, no dump" % rate)
        if with_dumps and without:
            rows.add_value("8 dump", "longest wait of a malloc or free, rate " + rate,
                           special.median_of(with_dumps, "waited_max_ns"), 200000, report.us,
                           "no dump: " + report.us(special.median_of(without, "waited_max_ns")))


def scaling(rows):
    """The ratio of heapprof's throughput to null's must not fall as threads are added."""
    for rate in ("512k", "4k"):
        found = []
        for workload in rows.micro:
            if workload.kind == "threads":
                ratio = rows.ratio(workload.name, "heapprof " + rate, "null", "wall_ns")
                if ratio:
                    found.append((workload.name, 1 / ratio.median))
        if len(found) > 1:
            worst = min(value for _, value in found)
            rows.add("9 scaling", "throughput to null's at %s: " % rate + ", ".join("%s %.3f" % item for item in found),
                     "%.3f" % (worst / found[0][1]), "≥ 0.95 of one thread's",
                     "met" if worst >= 0.95 * found[0][1] else "MISSED", str(rows.noise(found[-1][0])))


def over_jemalloc(rows):
    rows.add_ratio("10 over jemalloc", "pair 16 B", "heapprof 512k over jemalloc", "jemalloc", 1.20)
    for name in PEER_ROWS:
        peer = rows.ratio(name, "jemalloc prof", "jemalloc")
        if peer:
            rows.add_ratio("10 over jemalloc", name, "heapprof 512k over jemalloc", "jemalloc", peer.median)


def target_table(results, found, micro, real):
    rows = Rows(results, found, micro, real)
    for part in (rates, one_sample, every_call, filter_and_start, memory, dumps, scaling, over_jemalloc):
        part(rows)
    header = ("target", "row", "figure: median (quartiles)", "control (plain again / plain unless named)", "limit",
              "verdict")
    return report.table(header, rows.rows)
