# SPDX-License-Identifier: MIT
"""claims.py - the scripts of this folder whose test_* functions are one claim each: a function that returns holds, and may return a word
to say so with ("skipped: ..."); one that raises does not."""
import os
import shutil


class Failure(Exception):
    pass


def expect(condition, *what):
    if not condition:
        raise Failure(" ".join(str(w) for w in what))


def fresh_folder(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def run_all(names, part=""):
    """Runs every test_* of `names` (a script's globals()) that has `part` in its name. The exit status."""
    failed = 0
    for name, test in sorted(names.items()):
        if not name.startswith("test_") or part not in name:
            continue
        try:
            outcome = test() or "ok"
        except Exception as failure:  # whatever it is, the claim does not hold, and the others are still asked
            outcome = "FAILED: %r" % failure
            failed += 1
        print("%-75s %s" % (name, outcome), flush=True)
    return 1 if failed else 0
