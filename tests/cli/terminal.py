# SPDX-License-Identifier: MIT
"""terminal.py - a command on a terminal of its own, and every byte that it prints there.

A terminal that its last writer leaves may answer "nobody is there" before what was written last has been read. So a shell leads the
session: it says the command's exit status behind all the command wrote, and stays until that has been read.
"""
import fcntl
import os
import pty
import re
import struct
import termios

LEADER = 'trap : INT; "$@"; echo "[status $?]"; read -r line'
STATUS = re.compile(rb"\[status (\d+)\]\r\n")


class Terminal:
    def __init__(self, command, cwd, columns=80, silent=False):
        """Starts it; `silent` sends its standard error to /dev/null."""
        self.text = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
                if silent:
                    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                os.execvp("sh", ["sh", "-c", LEADER, "sh", *command])
            finally:
                os._exit(127)

    def read_until(self, pattern):
        """Reads until `pattern` matches what was printed so far; the match."""
        while True:
            found = pattern.search(self.text)
            if found:
                return found
            try:
                self.text += os.read(self.master, 65536)
            except OSError as error:
                raise RuntimeError("the terminal closed after %r" % self.text) from error

    def type(self, keys):
        os.write(self.master, keys)

    def finish(self):
        """What the command printed, with "\\n" for line ends, and its exit status."""
        found = self.read_until(STATUS)
        self.type(b"\n")
        os.waitpid(self.pid, 0)
        os.close(self.master)
        return self.text[:found.start()].decode().replace("\r\n", "\n"), int(found.group(1))
