"""Runs one payload as a child process and makes sure that nothing of it is left."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .control import Attempt, Bell, Control

#: From the polite signal to the hard one.
GRACE_S = 10.0
#: The same when the pilot itself has to go.
GOODBYE_GRACE_S = 3.0

_PR_SET_PDEATHSIG = 1
_NODE_IS_FULL = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
# Is told the payload's process group, and kills it when its standard input ends without another
# line: that happens when the pilot dies, even by SIGKILL. Unlike the death signal it reaches the
# payload's children too.
_GUARD = """
read -r group && [ "$group" != over ] || exit 0
read -r _ || kill -s KILL -- "-$group" 2>/dev/null
"""


@dataclass(frozen=True)
class Outcome:
    """How a payload ended; `reason` says in words what was not its own doing."""

    exit_code: int | None
    signal: int | None
    wall_s: float
    cpu_s: float
    max_rss_mb: int
    reason: str = ""

    @classmethod
    def not_started(cls, reason: str) -> Outcome:
        """The outcome of a payload that could not be executed."""
        return cls(None, None, 0.0, 0.0, 0, reason)


def run_payload(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    stdout: Path,
    stderr: Path,
    wall_limit_s: float | None,
    attempt: Attempt,
    control: Control,
    bell: Bell,
) -> Outcome:
    """Run `command` to its end, or until its limit, a kill command or the pilot's own end.

    The payload leads its own session. It inherits no descriptor and no variable of the pilot. When
    it returns, every process of its group is gone; one that left the group is not followed.
    The calling thread has `bell` for itself; the kernel's death signal for the payload is tied to
    this thread, which does not end before it.
    Raises OSError when it is this node that fails.
    """
    started = control.clock()
    with _guard() as guard_input:
        with stdout.open("wb") as out, stderr.open("wb") as err:
            try:
                process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=directory,
                    env=dict(environment),
                    start_new_session=True,
                    close_fds=True,
                    preexec_fn=_leash(guard_input),
                )
            except OSError as error:
                if error.errno in _NODE_IS_FULL:
                    raise
                return Outcome.not_started(_why_not_started(command[0], error))
        try:
            limit_at = None if wall_limit_s is None else started + wall_limit_s
            watch = _Watch(process.pid, attempt, control, bell, limit_at, wall_limit_s)
            reason = watch.run()
        finally:
            # The dead leader is not reaped yet, so its number cannot belong to anybody else.
            _signal_group(process.pid, signal.SIGKILL)
    return _reap(process, control.clock() - started, reason)


def _leash(guard_input: int) -> Callable[[], None]:
    """Return what ties the child to the pilot before it becomes the payload.

    The kernel is to kill it when this thread dies, and the guard learns of its group.
    """
    is_linux = sys.platform.startswith("linux")
    prctl = ctypes.CDLL(None, use_errno=True).prctl if is_linux else None
    parent = os.getpid()

    def arm() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        os.write(guard_input, b"%d\n" % os.getpid())

    return arm


@contextlib.contextmanager
def _guard() -> Iterator[int]:
    """Keep a small shell beside the payload that outlives a murdered pilot; yield its input."""
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "pilot-guard"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        start_new_session=True,
    )
    assert guard.stdin is not None
    try:
        yield guard.stdin.fileno()
    finally:
        with contextlib.suppress(BrokenPipeError):
            guard.communicate(b"over\n")


class _Watch:
    """Waits for the end of a payload, and brings it about where somebody wants it."""

    def __init__(
        self,
        pid: int,
        attempt: Attempt,
        control: Control,
        bell: Bell,
        limit_at: float | None,
        limit_s: float | None,
    ) -> None:
        self._pid = pid
        self._attempt = attempt
        self._control = control
        self._bell = bell
        self._limit_at = limit_at
        self._limit_s = limit_s
        self._has_ended = threading.Event()

    def run(self) -> str:
        """Return when the leader has ended, with the reason if it was us who ended it."""
        threading.Thread(target=self._await_end, daemon=True).start()
        reason = ""
        while not self._has_ended.is_set() and not reason:
            reason = self._why_stop()
            if not reason:
                self._sleep(self._limit_at)
        if reason:
            self._stop()
        return reason

    def _await_end(self) -> None:
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        self._has_ended.set()
        self._bell.ring()

    def _sleep(self, until: float | None) -> None:
        self._bell.wait(None if until is None else max(0.0, until - self._control.clock()))

    def _stop(self) -> None:
        """Ask the payload's group to end, and after a grace make it."""
        _signal_group(self._pid, signal.SIGTERM)
        kill_at = self._control.clock() + GRACE_S
        while not self._has_ended.is_set():
            if self._control.terminated_at is not None:
                kill_at = min(kill_at, self._control.terminated_at + GOODBYE_GRACE_S)
            if self._control.clock() >= kill_at:
                _signal_group(self._pid, signal.SIGKILL)
                self._has_ended.wait()
                return
            self._sleep(kill_at)

    def _why_stop(self) -> str:
        if self._control.is_terminated:
            return "the pilot was terminated"
        if self._control.is_locked_out:
            return "the pilot lost its credential"
        if self._control.is_killed(self._attempt):
            return "killed on request"
        if self._limit_at is not None and self._control.clock() >= self._limit_at:
            return f"wall-clock limit of {self._limit_s:g} s exceeded"
        return ""


def _reap(process: subprocess.Popen[bytes], wall_s: float, reason: str) -> Outcome:
    _, status, usage = os.wait4(process.pid, 0)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    process.returncode = -(number or 0) if code is None else code  # Popen must not wait again
    return Outcome(
        exit_code=code,
        signal=number,
        wall_s=round(wall_s, 3),
        cpu_s=round(usage.ru_utime + usage.ru_stime, 3),
        # Never below the pilot's own size: the kernel counts the moment between fork and exec.
        max_rss_mb=usage.ru_maxrss // 1024,
        reason=reason,
    )


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _first_line(path: str) -> str:
    """The beginning of a file's first line, its end included; empty for a file that hides it."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.readline(200).decode("utf-8", "replace")
    return ""


def _why_not_started(executable: str, error: OSError) -> str:
    """Explain the usual ways in which an executable cannot be executed."""
    if error.errno == errno.ENOEXEC:
        return f"cannot start {executable}: no known program format; a script needs a first line #!"
    if error.errno == errno.ENOENT and os.path.exists(executable):
        first = _first_line(executable)
        why = f"its first line names an interpreter that does not exist here: {first.strip()}"
        if first.endswith("\r\n"):
            why = "its lines end as in Windows, so that its first line names no interpreter"
        return f"cannot start {os.path.basename(executable)}: {why}"
    return f"cannot start {executable}: {error.strerror or error}"
