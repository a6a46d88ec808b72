"""Supervisor of one payload: starts it, signals it, and ends all of its processes.

A program of its own between pilot and payloads, started with its text on the command line, so it
needs nothing but the standard library and the modules of this package (see `payload.fork_server`).
On a socket, its standard input, the pilot asks it for supervisors; each is a fork of it, for one
payload.

A supervisor's standard input brings an order, what to start, and later the words `stop` and `kill`,
one a line; when it is closed, by the pilot or by its death, that is a `kill` too. Its standard
output tells the start and the end. Order and answers are values as `marshal` writes them, each
after its length in eight hexadecimal digits.

All processes below a supervisor stay below it, whatever they do: those that lose their parent
become its children, also after a double fork.
"""

from __future__ import annotations

import errno
import fcntl
import marshal
import os
import resource
import select
import signal
import socket

from .confinement import PR_SET_DUMPABLE, prctl
from .launch import start, tell, write_if_allowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
# A fork bomb that is being stopped may go on for some rounds.
_STOP_ROUNDS = 50
_SHORT_PAUSE_S = 0.005
_LONG_PAUSE_S = 0.2
_LAST_WORD_S = 1.0
_MOST_DESCRIPTORS = 64
_TERMINATIONS = ("SIGTERM", "SIGINT", "SIGHUP")
_SENT_TO_ALL = (*_TERMINATIONS, "SIGQUIT", "SIGUSR1", "SIGUSR2")


def main() -> None:
    """Fork a supervisor for each request, until the pilot closes the socket or dies."""
    # Payloads may run under our account: they shall not look into this process or its forks.
    prctl(PR_SET_DUMPABLE, 0)
    # Nobody waits for the supervisors: their pipes tell when they have ended. And batch systems
    # signal all that runs in a slot: the pilot says what is to end, and that after its grace.
    for name in ("SIGCHLD", *_SENT_TO_ALL):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    requests = socket.socket(fileno=0)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, 4096, _MOST_DESCRIPTORS)
        if not request:
            return
        requests.send(marshal.dumps(_fork_supervisor(marshal.loads(request), descriptors)))


def _fork_supervisor(numbers: list[int], descriptors: list[int]) -> int:
    """Process number of the fork, or the number of the error below zero."""
    try:
        # The kernel leaves out what this process may not open any more.
        pid = os.fork() if len(descriptors) == len(numbers) else -errno.EMFILE
    except OSError as error:
        pid = -(error.errno or errno.EAGAIN)
    if pid == 0:
        try:
            os.setsid()
            _renumber(numbers, descriptors)
            _supervise()
        finally:
            os._exit(1)
    for each in descriptors:
        os.close(each)
    return pid


def _renumber(numbers: list[int], descriptors: list[int]) -> None:
    """Move the descriptors to the numbers that the pilot knows them by."""
    above = max(*numbers, *descriptors) + 1
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, above) for each in descriptors]
    for each in descriptors:
        os.close(each)
    for index, each in enumerate(moved):
        os.dup2(each, numbers[index])
        os.close(each)


def _supervise() -> None:
    """Read the order, carry it out, report the end."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)
    orders = _Orders()
    order = marshal.loads(orders.first())
    wake_up = _wake_up_on_children()
    signals = _note_terminations()
    for descriptor in order["descriptors"]:
        os.set_inheritable(descriptor, False)
    try:
        leader, attendant = start(order)
    except OSError as error:
        answer: dict[str, object] = {"errno": error.errno, "problem": error.strerror}
    else:
        status = _Supervision(order, orders, leader, wake_up).to_the_end()
        # What the fence's programs had to say has been sent: they have ended.
        attendant.join(_LAST_WORD_S)
        answer = {
            "status": status,
            "is_inside": attendant.is_inside,
            "is_signalled": bool(signals),
        }
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer.update(
        cpu_s=used.ru_utime + used.ru_stime,
        max_rss_kb=used.ru_maxrss,
        read_blocks=used.ru_inblock,
        written_blocks=used.ru_oublock,
    )
    tell(answer)
    # At once: there is nothing to tidy up, and the pilot waits.
    os._exit(0)


def _wake_up_on_children() -> int:
    """Descriptor that becomes readable when a child has ended."""
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer)
    return reader


def _note_terminations() -> list[int]:
    """List to which the signals to end that come to this process are added.

    They change nothing here. But who sends them to this process sends them to all of the slot: the
    pilot does not take its payload's end for the end of the work then.
    """
    noted: list[int] = []
    for name in _TERMINATIONS:
        signal.signal(getattr(signal, name), lambda number, _: noted.append(number))
    return noted


class _Orders:
    """Orders of the pilot, read from standard input."""

    def __init__(self) -> None:
        self._rest = b""
        self.is_closed = False

    def first(self) -> bytes:
        """The first order: what to start."""
        length = int(self._take(8), 16)
        return self._take(length)

    def _take(self, length: int) -> bytes:
        while len(self._rest) < length:
            self._read()
            if self.is_closed:
                os._exit(1)
        content, self._rest = self._rest[:length], self._rest[length:]
        return content

    def words(self) -> list[str]:
        """Words that have come; called when there is something to read."""
        self._read()
        *lines, self._rest = self._rest.split(b"\n")
        words = [line.decode() for line in lines]
        return [*words, "kill"] if self.is_closed else words

    def _read(self) -> None:
        piece = os.read(0, 65536)
        self._rest += piece
        self.is_closed = not piece


class _Supervision:
    """Supervision of a payload from its start until nothing of it is left."""

    def __init__(self, order: dict[str, Any], orders: _Orders, leader: int, wake_up: int) -> None:
        self._order = order
        self._orders = orders
        self._leader = leader
        self._wake_up = wake_up
        self._status: int | None = None

    def to_the_end(self) -> int:
        """Wait for the end; return the leader's status as `wait` gives it."""
        watched = [0, self._wake_up]
        while self._status is None:
            ready = select.select(watched, [], [])[0]
            if self._wake_up in ready:
                os.read(self._wake_up, 4096)
                self._reap()
            if 0 in ready:
                words = self._orders.words()
                if "kill" in words:
                    break
                if "stop" in words:
                    self._stop()
        self._end_all()
        return self._status or 0

    def _reap(self) -> bool:
        """Collect ended children; tell whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._leader:
                self._status = status

    def _stop(self) -> None:
        """Ask the payload to end. The fence's own programs are left to wait for it."""
        if self._order["signal_argv"]:
            self._signal_by_program("TERM")
            return
        for pid, depth in _below(os.getpid()).items():
            if depth > self._order["helpers"]:
                _signal(pid, signal.SIGTERM)

    def _end_all(self) -> None:
        """Kill all that is left, and return when it is gone."""
        pause_s = _SHORT_PAUSE_S
        while self._reap():
            if self._order["signal_argv"]:
                self._signal_by_program("KILL")
            self._kill_below()
            if not self._reap():
                return
            if select.select([self._wake_up], [], [], pause_s)[0]:
                os.read(self._wake_up, 4096)
            pause_s = min(pause_s * 2, _LONG_PAUSE_S)

    def _kill_below(self) -> None:
        """Stop all, so that no process is born while the others die, and kill them then."""
        stopped: set[int] = set()
        for _ in range(_STOP_ROUNDS):
            new = _below(os.getpid()).keys() - stopped
            if not new:
                break
            for pid in new:
                _signal(pid, signal.SIGSTOP)
            stopped |= new
        if self._order["cgroup"]:
            # All of it at once, where the kernel can.
            write_if_allowed(os.path.join(self._order["cgroup"], "cgroup.kill"), "1")
        for pid in stopped:
            _signal(pid, signal.SIGKILL)

    def _signal_by_program(self, name: str) -> None:
        """Signal processes of another account, by a program that may."""
        argv = [name if each == "@SIGNAL@" else each for each in self._order["signal_argv"]]
        try:
            pid = os.fork()
        except OSError:
            # The payload has taken all processes that there may be: later, then.
            return
        if pid == 0:
            try:
                nothing = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(nothing, descriptor)
                os.execve(argv[0], argv, self._order["environment"])
            finally:
                os._exit(127)
        while True:
            done, status = os.waitpid(-1, 0)
            if done == self._leader:
                self._status = status
            if done == pid:
                return


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _below(root: int) -> dict[int, int]:
    """Processes below one, with their depth."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent_of(name)
            children.setdefault(parent, []).append(int(name))
    depths: dict[int, int] = {}
    level = [root]
    depth = 0
    while level:
        depth += 1
        level = [child for pid in level for child in children.get(pid, ())]
        depths.update((pid, depth) for pid in level)
    return depths


def _parent_of(pid: str) -> int:
    """Parent of a process; 0 if it is gone.

    A process whose first thread has ended looks ended, and may run on: it counts.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
