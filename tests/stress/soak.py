# SPDX-License-Identifier: MIT
"""soak.py SECONDS PROGRAM PLUGIN LIBRARY: runs soak under the library, and reads (and removes) each profile it writes: valid,
0 <= in use <= allocated in each row. Prints the program's last line and the number of files; fails if anything was wrong."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.dont_write_bytecode = True
from pprof_read import Profile  # noqa: E402


def read_all(folder):
    """Reads and removes what is there; the number of files and of rows."""
    files = rows = 0
    for path in glob.glob(folder + "/*.pb.gz"):
        rows += len(Profile(path).rows)
        files += 1
        os.remove(path)
    return files, rows


def main():
    seconds, program, plugin, library = sys.argv[1:5]
    folder = tempfile.mkdtemp(prefix="heapprof-soak.")
    env = dict((k, v) for k, v in os.environ.items() if not k.startswith("HEAPPROF_"))
    env.update({"LD_PRELOAD": library, "HEAPPROF_SAMPLE_RATE": "16k", "HEAPPROF_PERIOD": "7", "HEAPPROF_KEEP": "0",
                "HEAPPROF_PEAK": "1", "HEAPPROF_KIND": "full,delta", "HEAPPROF_OUT": folder + "/out.%n.pb.gz"})
    log = open(folder + "/output", "w+")
    child = subprocess.Popen([program, seconds, folder, plugin], env=env, stdout=log, stderr=log)
    files = rows = 0
    try:
        while child.poll() is None:
            time.sleep(2)
            f, r = read_all(folder)
            files, rows = files + f, rows + r
    finally:
        if child.poll() is None:
            child.kill()
    f, r = read_all(folder)
    files, rows = files + f, rows + r
    log.seek(0)
    output = log.read()
    print(output, end="")
    print("status=%d files=%d rows=%d" % (child.returncode, files, rows))
    left = [n for n in os.listdir(folder) if n != "output"]
    good = child.returncode == 0 and output.count("\n") == 1 and files >= int(seconds) and not left
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
