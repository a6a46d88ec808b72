"""Launch of a payload's first program by the supervisor: its child becomes that program.

Also starts the network guard and the portal relay where the order asks for them, and sends the
supervisor's answers to the pilot.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import socket
import threading

from . import confinement
from .confinement import PR_SET_DUMPABLE, memory_file, prctl
from .network_guard import NetworkGuard
from .portal_relay import PortalRelay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PR_SET_PDEATHSIG = 1
_NAME_BYTES = 5


def tell(answer: dict[str, object]) -> None:
    """Send an answer to the pilot."""
    content = marshal.dumps(answer)
    os.write(1, b"%08x" % len(content) + content)


def start(order: dict[str, Any]) -> tuple[int, Attendant]:
    """Start the first program; return its process number and who attends to its confinement.

    Raises the OSError of its exec.
    """
    reader, writer = os.pipe()
    ours, theirs = socket.socketpair()
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _become(order, supervisor, theirs)
        except OSError as error:
            os.write(writer, b"%d %s" % (error.errno or 0, str(error).encode()))
        except ValueError as error:
            # Words that no program can be given.
            os.write(writer, b"0 %s" % str(error).encode(errors="replace"))
        finally:
            os._exit(127)
    os.close(writer)
    theirs.close()
    problem = b""
    while piece := os.read(reader, 4096):
        problem += piece
    os.close(reader)
    if problem:
        os.waitpid(pid, 0)
        number, _, text = problem.decode(errors="replace").partition(" ")
        raise OSError(int(number), text)
    attendant = Attendant(ours, order)
    attendant.start()
    return pid, attendant


class Attendant(threading.Thread):
    """Thread that sends the order for the inner confinement, and starts guard and relay.

    It ends when the channel is closed by all who had it.
    """

    def __init__(self, channel: socket.socket, order: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._channel = channel
        self._order = order
        #: The payload's own program was about to be started, behind all that the fence is.
        self.is_inside = False

    def run(self) -> None:
        """Do as the confinements ask."""
        order = self._order
        try:
            if order["inner_confinement"] is not None:
                content = marshal.dumps(order["inner_confinement"])
                self._channel.sendall(b"%08x" % len(content) + content)
            while True:
                name, descriptors, _, _ = socket.recv_fds(self._channel, _NAME_BYTES, 1)
                if not name:
                    return
                if name == confinement.READY:
                    self.is_inside = True
                elif name == confinement.GUARD:
                    NetworkGuard(descriptors[0], order["guard"], order["uid"]).begin()
                else:
                    PortalRelay(socket.socket(fileno=descriptors[0]), *order["portal"]).begin()
        except OSError:
            # The fence has ended; what it said is in the payload's stderr.
            return
        finally:
            self._channel.close()


def _become(order: dict[str, Any], supervisor: int, channel: socket.socket) -> None:
    """In the child: become the first program of the payload."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.setsid()
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(1)
    # Before the payload can do anything: it may kill the supervisor, and then the pilot has to end
    # it.
    tell({"leader": os.getpid()})
    # When the node's memory is full the kernel takes the payload before the pilot. The file that
    # says so would be root's otherwise; the exec does the same.
    prctl(PR_SET_DUMPABLE, 1)
    write_if_allowed("/proc/self/oom_score_adj", "800")
    if order["cgroup"]:
        _write(os.path.join(order["cgroup"], "cgroup.procs"), "0")
    os.dup2(_stdin(order, channel), 0)
    os.dup2(order["stdout_fd"], 1)
    os.dup2(order["stderr_fd"], 2)
    argv = list(order["argv"])
    for word, content in order["files"].items():
        descriptor = memory_file(content)
        os.set_inheritable(descriptor, True)
        argv = [str(descriptor) if each == word else each for each in argv]
    if order["confinement"] is not None:
        confinement.confine(order["confinement"], channel)
    os.chdir(order["directory"])
    os.umask(0o022)
    for name, value in order["limits"].items():
        _limit(getattr(resource, name), value)
    os.execve(argv[0], argv, order["environment"])


def _stdin(order: dict[str, Any], channel: socket.socket) -> int:
    if order["inner_confinement"] is not None:
        return channel.fileno()
    if order["stdin"] is None:
        return os.open(os.devnull, os.O_RDONLY)
    return memory_file(order["stdin"].encode("utf-8", "surrogateescape"))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def write_if_allowed(path: str, text: str) -> None:
    """Write a file, if this process may."""
    try:
        _write(path, text)
    except OSError:
        return


def _limit(kind: int, value: int) -> None:
    # What is already lower cannot be raised, and need not be.
    hard = resource.getrlimit(kind)[1]
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (most, most))
