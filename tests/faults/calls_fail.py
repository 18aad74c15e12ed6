#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each system call that the library makes fails, the n-th of its kind, for every n there is; and from the n-th on for good.

  calls_fail.py HEAPPROF_LIBRARY CALLS_FAIL_LIBRARY PROGRAM [CALL...]

PROGRAM is ../integration/faults.c. The faults hit the library's own calls only (calls_fail.c), so whatever fails the program's answer
must be "done" and 0, its error output must be empty but for lines of the library's, and a file under a profile's name must be whole
and leave no unfinished one. If only one call fails, one of the dumps is there: the library goes on.
"""
import errno
import glob
import gzip
import os
import re
import resource
import subprocess
import sys
import tempfile

N_MAX = 150  # calls of one kind; fewer are made, but for the names of threads
FOR_GOOD = 2**32 - 1
OTHER_LAYOUT = 79  # calls_fail.c could do nothing in this run

# x86_64, aarch64, and the errors worth telling apart.
CALLS = {
    'mmap': (9, 222, 'ENOMEM'), 'munmap': (11, 215, 'ENOMEM'), 'madvise': (28, 233, 'EINVAL'), 'mprotect': (10, 226, 'ENOMEM'),
    'openat': (257, 56, 'EMFILE EINTR ENOSYS EOPNOTSUPP'), 'read': (0, 63, 'EIO EINTR'), 'pread64': (17, 67, 'EIO EINTR'),
    'write': (1, 64, 'ENOSPC EINTR EAGAIN'), 'fstat': (5, 80, 'EOVERFLOW'), 'close': (3, 57, 'EIO EINTR'),
    'renameat2': (316, 276, 'EXDEV ENOSYS'), 'unlinkat': (263, 35, ''), 'readlinkat': (267, 78, 'EACCES'),
    'getcwd': (79, 17, 'ENOENT'), 'rt_sigprocmask': (14, 135, 'EPERM'), 'rt_sigaction': (13, 134, 'EPERM'),
    'rt_sigpending': (127, 136, 'EPERM'), 'prctl': (157, 167, 'EPERM'),
    'linkat': (265, 37, 'EPERM EEXIST ENOENT'), 'flock': (73, 32, 'ENOLCK'), 'fcntl': (72, 25, 'EMFILE'),
    'newfstatat': (262, 79, 'EACCES'), 'futex': (202, 98, 'EINTR'), 'sendfile': (40, 71, ''), 'uname': (63, 160, 'EPERM'),
    'ppoll': (271, 73, 'EINTR'), 
}
# What happens only where another call fails each time: (that, its error), (call, error).
SECOND = [(('linkat', 'EPERM'), ('sendfile', 'EINVAL')), (('linkat', 'EPERM'), ('sendfile', 'EINTR')), (('linkat', 'EPERM'), ('openat', 'EMFILE')),
          (('linkat', 'EPERM'), ('fstat', 'EOVERFLOW')), (('renameat2', 'EXDEV'), ('unlinkat', 'EROFS')),
          (('openat', 'EOPNOTSUPP'), ('fstat', 'EOVERFLOW'))]
ALL_SETTINGS = {'HEAPPROF_PEAK': '1', 'HEAPPROF_LABELS': 'size,thread,age', 'HEAPPROF_KIND': 'full,delta,heap',
                'HEAPPROF_MAX_DEPTH': '500', 'HEAPPROF_LOG': 'info', 'HEAPPROF_OUT': 'DIR/%h.%e.%p.%n.pb.gz'}
RUNS = [([], {}), (['threads', 'names'], {}), (['threads'], ALL_SETTINGS)]


def plan(call, error, first, last):
    return f'{CALLS[call][os.uname().machine == "aarch64"]}:{getattr(errno, error)}:{first}:{last}'


class Sweep:
    def __init__(self, library, faults, program, folder):
        self.library, self.faults, self.program, self.folder = library, faults, program, folder
        self.wrong = 0

    def run(self, call, error, first, last, arguments, settings, always=None):
        """One run; False: no call has failed, there were fewer. What is wrong is printed."""
        seen = os.path.join(self.folder, 'seen')
        out = os.path.join(self.folder, 'out')
        for old in [seen] + glob.glob(out + '/*') + glob.glob(out + '/.*'):
            if os.path.exists(old):
                os.unlink(old)
        environment = {'LD_PRELOAD': self.library + ' ' + self.faults, 'CALLS_FAIL_IN': 'libheapprof', 'CALLS_FAIL_SEEN': seen,
                       'CALLS_FAIL': plan(call, error, first, last) + (',' + plan(*always, 1, FOR_GOOD) if always else ''),
                       'HEAPPROF_SAMPLE_RATE': '1', 'HEAPPROF_PERIOD': '0', 'HEAPPROF_OUT': out + '/%e.%p.%n.pb.gz'}
        environment.update({name: value.replace('DIR', out) for name, value in settings.items()})
        what = f'{" ".join(always) + " and " if always else ""}{call} {error} {first}{"" if first == last else " and on"} {" ".join(arguments)} {"all settings" if settings else ""}'
        try:
            run = self.run_once_placed([self.program] + arguments, environment)
        except subprocess.TimeoutExpired:
            return self.note(what, 'does not end')
        if run.returncode == 77:
            print('no seccomp filters here')
            sys.exit(77)
        if (run.stdout, run.returncode) != ('done\n', 0):
            self.note(what, f'{run.stdout!r}, status {run.returncode}')
        for line in run.stderr.splitlines():
            if not re.match(r'heapprof\[\d+\]: (error|warn|info): ', line):
                self.note(what, 'error output: ' + line)
        self.check_files(what, call, first == last and always is None, out)
        return os.path.exists(seen)

    @staticmethod
    def run_once_placed(command, environment):
        for _ in range(20):
            run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
            if run.returncode != OTHER_LAYOUT:
                break
        return run

    def check_files(self, what, call, only_one_failed, out):
        whole = 0
        for path in glob.glob(out + '/*.pb.gz'):
            try:
                with gzip.open(path) as file:
                    whole += len(file.read()) > 0
            except (OSError, EOFError) as error:
                self.note(what, f'{path}: {error}')
        if only_one_failed and not whole:
            self.note(what, 'one fault, and no profile at all')
        if glob.glob(out + '/.heapprof.*') and call != 'unlinkat':
            self.note(what, 'an unfinished file is left')

    def note(self, what, wrong):
        self.wrong += 1
        print(f'{what}: {wrong}')
        return True

    def sweep(self, call, error, runs):
        counts = []
        for arguments, settings in runs:
            n = 1
            while n < N_MAX and self.run(call, error, n, n, arguments, settings):
                if error not in ('EINTR', 'EAGAIN') and (n <= 8 or n & n - 1 == 0):  # these two are no answers for ever
                    self.run(call, error, n, FOR_GOOD, arguments, settings)
                n += 1
            counts.append(n - 1)
        print(f'{call} {error}: {" + ".join(map(str, counts))} calls, each failed once')
        return sum(counts)

    def sweep_second(self, always, fault):
        n = 1
        while n < N_MAX and self.run(*fault, n, n, [], {}, always):
            n += 1
        print(f'{" ".join(fault)} where {always[0]} fails: {n - 1} calls, each failed once')
        return n - 1


def main():
    library, faults, program = map(os.path.abspath, sys.argv[1:4])
    only = sys.argv[4:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, 'out'))
        sweep = Sweep(library, faults, program, folder)
        counts = [sweep.sweep(call, error, RUNS if i == 0 else RUNS[::2])
                  for call in only or CALLS for i, error in enumerate(CALLS[call][2].split())]
        if not only:
            counts += [sweep.sweep_second(always, fault) for always, fault in SECOND]
    print(f'{sum(counts)} calls; wrong: {sweep.wrong}')
    return 1 if sweep.wrong or 0 in counts else 0


if __name__ == '__main__':
    sys.exit(main())
