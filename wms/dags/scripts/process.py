"""Script as a process: started behind its fence, limited, watched, stopped, its output cut.

It returns exit code, reason of a failure, and output. Also limits, command and result as values.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from wms.dags.scripts import launcher
from wms.dags.scripts.fences import Fence, interpreter
from wms.dags.scripts.memory import activity, memory_mb, processes_of
from wms.pilots.agent.fence.base import Confinement, denied_calls_filter
from wms.pilots.agent.inline_program import module_of, program

_LAUNCHER_TEXT = program(
    [
        module_of("supervisor.confinement"),
        (launcher.__name__, Path(launcher.__file__).read_text(encoding="utf-8")),
    ]
)
_TICK_S = 0.25
_MEMORY_EVERY_S = 1.0
#: After the launcher's own grace; then the fence is torn down with all in it.
_STOP_S = launcher.GRACE_S + 5.0
_DRAIN_S = 1.0
#: Maximum length of the launcher's status: anything longer does not come from it.
_STATUS_BYTES = 4096

_FOREIGN_STATUS = "something else than its launcher told of its end."

#: Exit code of a script that was not started, or has no code of its own.
FAILED_CODE: Final = 1
STDOUT, STDERR = "stdout", "stderr"


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one run."""

    wall_s: float
    cpu_s: int
    memory_mb: int
    processes: int
    file_bytes: int
    output_bytes: int
    #: So long its processes may neither say, read, write nor compute anything; None: any time.
    stall_s: float | None = None

    def as_resources(self) -> dict[str, int]:
        """Limits that the kernel enforces, by the names of the module `resource`."""
        return {
            "RLIMIT_CPU": self.cpu_s,
            "RLIMIT_DATA": self.memory_mb * 2**20,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NOFILE": 1024,
            "RLIMIT_CORE": 0,
        }


@dataclass(frozen=True, slots=True)
class Command:
    """Command of a script; `directory` is relative to the root of the sandbox."""

    executable: str
    arguments: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    has_separate_streams: bool = False


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """Exit code of a run. `failure` is the reason why it was not started or was stopped.

    `output` has both streams as they came, `streams` each of them if they were kept apart.
    """

    exit_code: int
    failure: str = ""
    output: bytes = b""
    streams: Mapping[str, bytes] = field(default_factory=dict)


class BoundedOutput:
    """Beginning and end of a script's output, with a mark for the bytes left out."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = max(limit_bytes // 2, 1)
        self._head = b""
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        space = self._half - len(self._head)
        if space > 0:
            self._head += chunk[:space]
            chunk = chunk[space:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= self._half:
            self._dropped += len(self._tail[0])
            self._tail_bytes -= len(self._tail.popleft())

    def text(self) -> bytes:
        tail = b"".join(self._tail)
        surplus = max(len(tail) - self._half, 0)
        dropped = self._dropped + surplus
        if not dropped:
            return self._head + tail
        mark = b"\n[%d bytes of output are left out here]\n" % dropped
        return self._head + mark + tail[surplus:]


def run_process(
    fence: Fence, command: Command, limits: Limits, *, heartbeat: Callable[[], None]
) -> ProcessResult:
    """Run a script to its end, at most for its time, and end all processes that it started.

    `heartbeat` is called several times a second; an exception from it stops the script and is
    raised.
    """
    run = _Run(fence, command, limits)
    try:
        return run.wait_for_end(heartbeat)
    finally:
        run.tear_down()


class _Run:
    def __init__(self, fence: Fence, command: Command, limits: Limits) -> None:
        self._limits = limits
        self._uid = fence.uid
        self._output = BoundedOutput(limits.output_bytes)
        self._streams = {
            name: BoundedOutput(limits.output_bytes)
            for name in ((STDOUT, STDERR) if command.has_separate_streams else ())
        }
        self._status = b""
        self._failure = ""
        self._said_bytes, self._moved_at = 0, 0.0
        self._done: tuple[int, int] | None = None
        self._selector = selectors.DefaultSelector()
        status_end, inner_end = os.pipe()
        try:
            self._process = _launch(fence, inner_end, command.has_separate_streams)
        except OSError:
            os.close(status_end)
            raise
        finally:
            os.close(inner_end)
        self._status_end = status_end
        self._watch(status_end, "")
        assert self._process.stdout is not None
        self._watch(self._process.stdout.fileno(), STDOUT)
        if self._process.stderr is not None:
            self._watch(self._process.stderr.fileno(), STDERR)
        self._send(_spec(fence, command, limits))

    def _watch(self, descriptor: int, name: str) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, name)

    def _send(self, spec: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        # The launcher may be gone already, when the fence could not be set up.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(spec).encode() + b"\n")
            self._process.stdin.flush()

    def wait_for_end(self, heartbeat: Callable[[], None]) -> ProcessResult:
        started = memory_at = time.monotonic()
        self._moved_at = started
        stop_at: float | None = None
        while self._is_open():
            self._read(_TICK_S)
            heartbeat()
            now = time.monotonic()
            if stop_at is None and now - started > self._limits.wall_s:
                self._failure = f"It was stopped: it ran for more than {self._limits.wall_s:g} s."
            if stop_at is None and now - memory_at >= _MEMORY_EVERY_S:
                memory_at = now
                self._check_processes(now)
            if self._failure and stop_at is None:
                stop_at = now + _STOP_S
                self._ask_to_stop()
            if stop_at is not None and now > stop_at:
                break
        return self._result()

    def _is_open(self) -> bool:
        return self._status_end in self._selector.get_map()

    def _read(self, timeout_s: float) -> bool:
        """Read the available output; whether there was any."""
        ready = self._selector.select(timeout_s)
        for key, _ in ready:
            chunk = os.read(key.fd, 65536)
            if not chunk:
                self._selector.unregister(key.fd)
            elif not key.data:
                self._read_status(chunk)
            else:
                self._said_bytes += len(chunk)
                self._output.add(chunk)
                if key.data in self._streams:
                    self._streams[key.data].add(chunk)
        return bool(ready)

    def _read_status(self, chunk: bytes) -> None:
        self._status += chunk
        if len(self._status) > _STATUS_BYTES:
            self._selector.unregister(self._status_end)
            self._status = b""
            self._failure = self._failure or f"It was stopped: {_FOREIGN_STATUS}"

    def _check_processes(self, now: float) -> None:
        """Note it as a failure if they use too much memory, or do nothing for too long."""
        pids = processes_of(self._process.pid, self._uid)
        self._check_memory(pids)
        if self._limits.stall_s is None or self._failure:
            return
        done = (self._said_bytes, activity(pids))
        if done != self._done:
            self._done, self._moved_at = done, now
        elif now - self._moved_at > self._limits.stall_s:
            self._failure = f"It was stopped: nothing moved for {self._limits.stall_s:g} s."

    def _check_memory(self, pids: Sequence[int]) -> None:
        used_mb = memory_mb(pids)
        if used_mb > self._limits.memory_mb:
            self._failure = (
                f"It was stopped: its processes used {used_mb:.0f} MB of memory together, "
                f"more than {self._limits.memory_mb} MB."
            )

    def _ask_to_stop(self) -> None:
        if self._process.stdin is not None:
            # One that has ended by itself reads no more of what it was to be told.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def _result(self) -> ProcessResult:
        deadline = time.monotonic() + _DRAIN_S
        while self._selector.get_map() and time.monotonic() < deadline:
            if not self._read(0.05):
                break
        status = _parsed_status(self._status)
        streams = {name: kept.text() for name, kept in self._streams.items()}
        code, failure = _exit_code_and_failure(status, self._failure)
        return ProcessResult(code, failure, self._output.text(), streams)

    def tear_down(self) -> None:
        """End the process and close its descriptors."""
        self._ask_to_stop()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._selector.close()
        os.close(self._status_end)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _launch(fence: Fence, status_fd: int, has_separate_streams: bool) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*fence.prefix, interpreter(), "-I", "-S", "-c", _LAUNCHER_TEXT, str(status_fd)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if has_separate_streams else subprocess.STDOUT,
        pass_fds=(status_fd,),
        cwd="/",
        # None of the portal's own environment: it has the secrets.
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
        start_new_session=True,
    )


def _spec(fence: Fence, command: Command, limits: Limits) -> dict[str, Any]:
    directory = os.path.join(fence.root, command.directory) if command.directory else fence.root
    return {
        "executable": command.executable,
        "arguments": list(command.arguments),
        "directory": directory,
        "environment": {"HOME": directory, "TMPDIR": fence.tmp, **command.environment},
        "limits": limits.as_resources(),
        "uid": fence.uid,
        "gate": _gate() if fence.name != "none" else None,
    }


def _gate() -> dict[str, Any]:
    """Restrictions behind a fence: a session keyring, no capabilities, a filter of system calls."""
    gate = asdict(Confinement(has_no_capabilities=True, denied=denied_calls_filter()))
    return {**gate, "denied": gate["denied"].hex(), "watched": ""}


def _parsed_status(status: bytes) -> Mapping[str, Any]:
    """Status that the launcher reported; empty if it reported nothing."""
    if not status:
        return {}
    try:
        parsed = json.loads(status)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and type(parsed.get("exit_code", 0)) is int:
        return parsed
    return {"failure": f"How it ended is not known: {_FOREIGN_STATUS}"}


def _exit_code_and_failure(status: Mapping[str, Any], stopped: str) -> tuple[int, str]:
    """Exit code, and the reason why the script was stopped or could not be started."""
    if "failure" in status:
        return FAILED_CODE, str(status["failure"])
    code = status.get("exit_code")
    if stopped:
        # One that says success when it is told to stop has not succeeded.
        return (code or -int(signal.SIGTERM)), stopped
    if code is None:
        return FAILED_CODE, "It could not be started, or its fence was torn down: see its output."
    return int(code), _SIGNALS.get(int(code), "")


_SIGNALS = {
    -int(signal.SIGXCPU): "It used more CPU time than it may.",
    -int(signal.SIGXFSZ): "It wrote a file that is larger than it may be.",
}
