# SPDX-License-Identifier: MIT
"""test_trend.py - `heapprof trend` on a real process, whose clock is its own: a leak of 1 KiB per 1000 requests among a large churn is first
in the list within 20 dumps, and runs without a leak name nothing. Arguments: heapprof, libheapprof-testing.so, leak_server; -n RUNS without
a leak (default 2). Seeds are 1, 2, 3 ...: trend's false alarms are one of a thousand runs (tests/unit/test_trend_fit.c)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

DUMPS = 20
PERIOD = 0.5


def trend(heapprof, library, server, leak_every, seed):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_PRELOAD": library, "HEAPPROF_OUT": folder + "/%n.pb.gz", "HEAPPROF_PERIOD": str(PERIOD),
                       "HEAPPROF_KEEP": "0", "HEAPPROF_SAMPLE_RATE": "4k", "HEAPPROF_EXIT_DUMP": "0"}
        subprocess.run([server, str(PERIOD * (DUMPS + 2)), str(leak_every), str(seed)], check=True, env=environment, stdout=subprocess.DEVNULL)
        files = sorted(pathlib.Path(folder).iterdir(), key=lambda p: int(p.name.split(".")[0]))[:DUMPS]
        return json.loads(subprocess.run([heapprof, "trend", "--json", "-n", "0", *map(str, files)], check=True, capture_output=True).stdout)


def functions(row):
    return [frame["function"] for frame in row["stack"]]


def main():
    heapprof, library, server = sys.argv[1:4]
    runs = int(sys.argv[5]) if sys.argv[4:5] == ["-n"] else 2
    report = trend(heapprof, library, server, 1000, 1)
    assert len(report["dumps"]) == DUMPS, len(report["dumps"])
    first = report["rows"][0]
    print("with a leak:", functions(first)[:2], first["suspect"], first["p_adjusted"], f'{report["tested"]} tested', flush=True)
    assert functions(first)[0] == "remember_session", functions(first)
    assert all(functions(row)[0] == "remember_session" for row in report["rows"] if row["suspect"])
    for run in range(runs):
        report = trend(heapprof, library, server, 0, run + 2)
        named = [functions(row)[:2] for row in report["rows"] if row["suspect"]]
        assert not named, (run, named)
    print(f"{runs} runs without a leak: nothing named")


if __name__ == "__main__":
    main()
