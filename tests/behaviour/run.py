# SPDX-License-Identifier: MIT
"""Runs the test of one behaviour: run.py NAME BINARY-FOLDER LIBRARY

The function NAME of the group's file (group_c.py for c1_...) runs the program NAME under the library, as often and with the
settings it likes, and looks at what it wrote. Without a function: once, and the program's own checks decide.
Every profile a run leaves behind is parsed and checked, and stderr must be empty unless the test says otherwise."""

import glob
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
sys.dont_write_bytecode = True

from pprof_read import Profile  # noqa: E402

SKIPPED = 77
EMULATOR = os.environ.get("EMULATOR", "").split()  # runs programs of another processor; -E names a variable of theirs


def emulated(command, env):
    """The command as this machine runs it; takes out of its environment what is not for the emulator itself."""
    if EMULATOR:
        command = EMULATOR + ["-E", "LD_PRELOAD=" + env.pop("LD_PRELOAD")] + command
    return command


class Result:
    pass


class Test:
    def __init__(self, name, binaries, library):
        self.name, self.binaries, self.library = name, binaries, library
        self.top = tempfile.mkdtemp(prefix="heapprof-%s." % name)
        self.runs = 0

    def folder(self):
        self.runs += 1
        path = os.path.join(self.top, "run%d" % self.runs)
        os.mkdir(path)
        return path

    def environment(self, folder, settings):
        env = dict((k, v) for k, v in os.environ.items() if not k.startswith("HEAPPROF_") or k == "HEAPPROF_LONG")
        env.update({"LD_PRELOAD": self.library, "HEAPPROF_SAMPLE_RATE": "1", "HEAPPROF_PERIOD": "0", "HEAPPROF_EXIT_DUMP": "0",
                    "HEAPPROF_OUT": folder + "/out.%p.%n.pb.gz"})
        for key, value in settings.items():
            env["HEAPPROF_" + key.upper()] = str(value)
        return env

    def run(self, *arguments, program=None, folder=None, stderr=False, status=0, cwd=None, wrap=(), parse=True,
            pass_fds=(), **settings):
        """Runs the program with FOLDER and the arguments; settings: the library's variables without their prefix."""
        result = Result()
        result.folder = folder or self.folder()
        binary = program if program and os.path.isabs(program) else os.path.join(self.binaries, program or self.name)
        command = [binary, result.folder] + [str(a) for a in arguments]
        env = self.environment(result.folder, settings)
        if EMULATOR:
            command = list(wrap) + emulated(command, env)
        elif wrap:  # the words before the program run without the library
            command = list(wrap) + ["env"] + ["%s=%s" % (k, v) for k, v in env.items() if k == "LD_PRELOAD" or k.startswith("HEAPPROF_")] + command
            env = dict((k, v) for k, v in env.items() if k != "LD_PRELOAD" and not k.startswith("HEAPPROF_"))
        done = subprocess.run(command, env=env, cwd=cwd or result.folder, capture_output=True, text=True, timeout=540,
                              pass_fds=pass_fds)
        result.status, result.out, result.err = done.returncode, done.stdout, done.stderr
        if result.status == SKIPPED:
            print(result.out)
            sys.exit(SKIPPED)
        assert status is None or result.status == status, "ended with %d: %s%s" % (result.status, result.out, result.err)
        assert stderr or result.err == "", "stderr: " + result.err
        result.files = sorted(glob.glob(result.folder + "/**/*.pb.gz", recursive=True))
        left = glob.glob(result.folder + "/**/.*.tmp", recursive=True)
        assert not left, "left behind: %s" % left
        if parse:
            for path in result.files:
                Profile(path)
        return result

    def profile(self, result, name):
        return Profile(os.path.join(result.folder, name + ".pb.gz"))


def equal(got, want, what=""):
    assert got == want, "%s got %r, want %r" % (what, got, want)


def main():
    name, binaries, library = sys.argv[1:4]
    test = Test(name, binaries, library)
    try:
        group = importlib.import_module("group_" + name[0])
        getattr(group, name, lambda t: t.run())(test)
    finally:
        if os.environ.get("HEAPPROF_KEEP_FILES") != "1":
            shutil.rmtree(test.top, ignore_errors=True)


if __name__ == "__main__":
    main()
