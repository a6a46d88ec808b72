"""Execution of one payload in its fence: start, watch its limits, stop, leave nothing behind.

Also its outcome, and who or what stopped it.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import math
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..control import Attempt, Control, Waker
from ..fence.base import LaunchPlan
from ..resources import processes
from ..resources.limits import Limits
from ..resources.usage import Usage
from ..resources.watchdog import Watchdog
from .fork_server import ForkServer, Supervisor
from .meter import Meter, next_measurement_s

#: The grace from the polite signal to the hard one when the pilot itself has to go.
GOODBYE_GRACE_S = 3.0
#: A batch system signals all processes of a slot, one after another: longest time between a
#: payload's end by such a signal, or its supervisor's, and the pilot's own signal.
SIGNAL_SPREAD_S = 2.0

#: Initiators of a stop, in the protocol's words.
PREEMPTION, PILOT, SERVER, WATCHDOG = "preemption", "pilot", "server", "watchdog"
PILOT_TIME = "pilot_time"

_NODE_IS_FULL = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
_BLOCKS_PER_MB = 2048
_URGENT_PAUSE_S = 0.5
_FORK_SERVER = ForkServer()


@dataclass(frozen=True)
class StopRequest:
    """Reason why a payload is stopped, in words, and who stops it, in the protocol's."""

    reason: str = ""
    by: str = ""


@dataclass(frozen=True)
class Deadline:
    """Time that the pilot has for a payload; `reason` says so in words."""

    after_s: float = math.inf
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """End of a payload; `reason` says in words what was not its own doing."""

    exit_code: int | None
    signal: int | None
    usage: Usage = field(default_factory=Usage)
    max_rss_mb: float = 0.0
    read_mb: float = 0.0
    written_mb: float = 0.0
    reason: str = ""
    stopped_by: str = ""
    #: Otherwise the fence that was to start it has ended.
    is_inside: bool = True
    is_image_at_fault: bool = False
    #: The cause, where it ended by a file of a URL.
    failed_transfer: str = ""

    @classmethod
    def not_started(cls, reason: str) -> Outcome:
        """Outcome of a payload that could not be executed."""
        return cls(None, None, reason=reason)

    def after(self, earlier: Outcome) -> Outcome:
        """This outcome of a payload that was started again, with what it used before."""
        usage = replace(
            self.usage,
            wall_s=round(self.usage.wall_s + earlier.usage.wall_s, 3),
            cpu_s=round(self.usage.cpu_s + earlier.usage.cpu_s, 3),
            peak_memory_mb=max(self.usage.peak_memory_mb, earlier.usage.peak_memory_mb),
        )
        return replace(
            self,
            usage=usage,
            max_rss_mb=max(self.max_rss_mb, earlier.max_rss_mb),
            read_mb=self.read_mb + earlier.read_mb,
            written_mb=self.written_mb + earlier.written_mb,
        )

    def usage_json(self) -> dict[str, Any]:
        """Usage of resources as the last report sends it."""
        return {
            **self.usage.to_json(),
            "memory_mb": round(self.usage.peak_memory_mb, 1),
            "read_mb": round(self.read_mb, 3),
            "written_mb": round(self.written_mb, 3),
        }


def run_payload(
    plan: LaunchPlan,
    *,
    stdout: Path,
    stderr: Path,
    limits: Limits,
    meter: Meter,
    attempt: Attempt,
    control: Control,
    waker: Waker,
    deadline: Deadline = Deadline(),
    cgroup: str = "",
    on_peek: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run a payload to its end, or until a limit, a kill command or the pilot's own end.

    An end of its own is believed only where no signal has come to the pilot by then.

    A small supervisor process stands between pilot and payload: it ends all that the payload has
    started, also what left its process group and its parents, and does so too when the pilot dies.
    When this returns, nothing of the payload runs. The calling thread has `waker` for itself.
    Raises OSError when it is this node that fails.
    """
    started = control.clock()
    with stdout.open("ab") as out, stderr.open("ab") as err:
        for each in (out, err):
            # It may be written by another account, through the descriptor or its name in /proc.
            os.fchmod(each.fileno(), 0o666)
        supervisor = _start_supervisor(plan, out.fileno(), err.fileno(), cgroup)
    watch = _Watch(supervisor, attempt, control, waker, limits, meter, started, on_peek, deadline)
    try:
        stop = watch.run()
    finally:
        watch.end()
    answer = watch.answer()
    if not stop.reason:
        was_signalled = answer.get("is_signalled", False) or _is_terminated(answer, plan)
        stop = watch.stop_of_slot(was_signalled)
    return _outcome(answer, stop, plan, meter, control.clock() - started)


def stop_initiator(control: Control) -> str:
    """Initiator of the pilot's end, in the protocol's words: preemption, or the pilot itself."""
    return PREEMPTION if control.is_preempted else PILOT


def _start_supervisor(plan: LaunchPlan, out: int, err: int, cgroup: str) -> Supervisor:
    """Start the supervisor and send it the order; secrets and options go through its pipe."""
    descriptors = [out, err, *plan.descriptors]
    order = {
        "argv": list(plan.argv),
        "environment": dict(plan.environment),
        "directory": plan.directory,
        "stdin": plan.stdin,
        "files": dict(plan.files),
        "confinement": None if plan.confinement is None else asdict(plan.confinement),
        "inner_confinement": (
            None
            if plan.inner_confinement is None
            else {
                **asdict(plan.inner_confinement),
                "stdin": plan.stdin,
                "program": None if plan.program is None else dict(plan.program),
            }
        ),
        "guard": plan.guard,
        "uid": plan.uid,
        "portal": plan.portal,
        "helpers": plan.helpers,
        "signal_argv": list(plan.signal_argv),
        "limits": dict(plan.limits),
        "cgroup": cgroup,
        "stdout_fd": out,
        "stderr_fd": err,
        "descriptors": descriptors,
    }
    supervisor = _FORK_SERVER.supervisor(descriptors)
    content = marshal.dumps(order)
    _write(supervisor, b"%08x" % len(content) + content)
    return supervisor


def _write(supervisor: Supervisor, content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        supervisor.orders.write(content)
        supervisor.orders.flush()


class _Watch:
    """Waits for the end of a payload, and stops it on request or at a limit."""

    def __init__(
        self,
        supervisor: Supervisor,
        attempt: Attempt,
        control: Control,
        waker: Waker,
        limits: Limits,
        meter: Meter,
        started: float,
        on_peek: Callable[[], None],
        deadline: Deadline,
    ) -> None:
        self._supervisor = supervisor
        self._attempt = attempt
        self._control = control
        self._waker = waker
        self._limits = limits
        self._meter = meter
        self._started = started
        self._on_peek = on_peek
        self._deadline = deadline
        self._ends_at = started + deadline.after_s
        self._watchdog = Watchdog(limits)
        self._has_ended = threading.Event()
        self._answer = b""
        self._thread = threading.Thread(target=self._await_end, daemon=True)

    def run(self) -> StopRequest:
        """Return when the payload has ended, with the reason if it was stopped."""
        self._thread.start()
        stop = StopRequest()
        look_at = self._started + next_measurement_s(0.0, 0.0)
        while not self._has_ended.is_set() and not stop.reason:
            stop = self._stop_request()
            if not stop.reason and self._control.clock() >= look_at:
                stop, look_at = self._look()
            if not stop.reason:
                self._sleep(min(look_at, self._ends_at))
            if self._control.take_peek_request(self._attempt):
                self._on_peek()
        if stop.reason:
            self._stop()
        return stop

    def stop_of_slot(self, was_signalled: bool) -> StopRequest:
        """Reason of the payload's end, if the pilot was sent a signal to end, too.

        Whatever the payload has made of that signal: it may be half done. With `was_signalled` the
        payload or its supervisor had one, and the pilot's own may follow.
        """
        self._control.heed_signals()
        until = self._control.clock() + (SIGNAL_SPREAD_S if was_signalled else 0.0)
        while not self._control.is_terminated and self._control.clock() < until:
            self._sleep(until)
        return self._stop_of_pilot()

    def end(self) -> None:
        """Kill what is left, and wait until it is gone."""
        with contextlib.suppress(BrokenPipeError):
            self._supervisor.orders.close()
        if self._thread.ident is None:
            # The node had no thread left for this.
            self._await_end()
        self._has_ended.wait()
        self._supervisor.answers.close()

    def answer(self) -> dict[str, Any]:
        """Answer of the supervisor at its end; empty if it was killed.

        Then what is left of the payload's session is killed from here.
        """
        answer: dict[str, Any] = {}
        rest = self._answer
        while rest:
            end = 8 + int(rest[:8], 16)
            answer = marshal.loads(rest[8:end])
            rest = rest[end:]
        if "leader" in answer:
            processes.end_session(answer["leader"])
            return {}
        return answer

    def _await_end(self) -> None:
        self._answer = self._supervisor.answers.read()
        self._has_ended.set()
        self._waker.wake()

    def _look(self) -> tuple[StopRequest, float]:
        """Look at what is used; return why to stop, and when to look again."""
        clock = self._control.clock
        began = clock()
        seen = self._meter.measure(self._supervisor.pid, began - self._started, clock)
        reason = self._watchdog.why_stop(seen)
        now = clock()
        pause_s = next_measurement_s(now - self._started, now - began)
        if self._limits.memory_mb is not None and seen.memory_mb > self._limits.memory_mb / 2:
            pause_s = min(pause_s, _URGENT_PAUSE_S)
        if self._limits.wall_s is not None:
            pause_s = min(pause_s, max(0.0, self._started + self._limits.wall_s - now))
        return StopRequest(reason, WATCHDOG if reason else ""), now + pause_s

    def _sleep(self, until: float) -> None:
        self._waker.wait(max(0.0, until - self._control.clock()))

    def _stop(self) -> None:
        """Ask the payload to end; `end` kills it when the grace is over."""
        _write(self._supervisor, b"stop\n")
        kill_at = self._control.clock() + self._limits.grace_s
        while not self._has_ended.is_set():
            if self._control.terminated_at is not None:
                kill_at = min(kill_at, self._control.terminated_at + GOODBYE_GRACE_S)
            if self._control.clock() >= kill_at:
                return
            self._sleep(kill_at)

    def _stop_of_pilot(self) -> StopRequest:
        if self._control.is_terminated:
            return StopRequest("the pilot was terminated", stop_initiator(self._control))
        return StopRequest()

    def _stop_request(self) -> StopRequest:
        if self._control.is_terminated:
            return self._stop_of_pilot()
        if self._control.is_locked_out:
            return StopRequest("the pilot lost its credential", PILOT)
        if self._control.is_killed(self._attempt):
            return StopRequest(_kill_words(self._control, self._attempt), SERVER)
        if self._control.clock() >= self._ends_at:
            return StopRequest(self._deadline.reason, PILOT_TIME)
        return StopRequest()


def killed_on_request(control: Control, attempt: Attempt) -> Outcome:
    """Outcome of an attempt that somebody asked to stop before its payload began."""
    return Outcome(None, None, reason=_kill_words(control, attempt), stopped_by=SERVER)


def _kill_words(control: Control, attempt: Attempt) -> str:
    why = control.kill_reason(attempt)
    return f"killed on request: {why}" if why else "killed on request"


def _outcome(
    answer: dict[str, Any], stop: StopRequest, plan: LaunchPlan, meter: Meter, wall_s: float
) -> Outcome:
    """Outcome from the supervisor's answer and the measured usage."""
    if "errno" in answer:
        problem = f"cannot start {plan.argv[0]}: {answer['problem']}"
        # Without a number it is the job's own words that no program can be given.
        if answer["errno"] and (plan.helpers or answer["errno"] in _NODE_IS_FULL):
            raise OSError(answer["errno"], problem)
        return Outcome.not_started(problem)
    code, number = _code_and_signal(answer.get("status"), plan)
    usage = meter.finish(round(wall_s, 3), round(float(answer.get("cpu_s", meter.last.cpu_s)), 3))
    peak_mb = usage.peak_memory_mb or float(answer.get("max_rss_kb", 0)) / 1024
    reason = stop.reason
    if not answer and not reason:
        reason = "the process that watches over the payload was killed"
    return Outcome(
        exit_code=code,
        signal=number,
        usage=usage,
        max_rss_mb=round(peak_mb, 1),
        read_mb=float(answer.get("read_blocks", 0)) / _BLOCKS_PER_MB,
        written_mb=float(answer.get("written_blocks", 0)) / _BLOCKS_PER_MB,
        reason=reason,
        stopped_by=stop.by,
        is_inside=plan.inner_confinement is None or bool(answer.get("is_inside", True)),
    )


def _code_and_signal(status: int | None, plan: LaunchPlan) -> tuple[int | None, int | None]:
    """Exit code and signal of the payload's first process."""
    if status is None:
        return None, int(signal.SIGKILL)
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    code = os.WEXITSTATUS(status)
    if plan.is_signal_in_code and code - 128 in _SIGNALS:
        return None, code - 128
    return code, None


def _is_terminated(answer: dict[str, Any], plan: LaunchPlan) -> bool:
    """True if SIGTERM has ended a payload, or what it waited for."""
    if "status" not in answer:
        return False
    code, number = _code_and_signal(answer["status"], plan)
    return signal.SIGTERM in (number, (code or 0) - 128)


_SIGNALS = frozenset(int(each) for each in signal.Signals)
