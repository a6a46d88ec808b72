"""The pilot's life: register, pull jobs as long as something is free, say good-bye."""

from __future__ import annotations

import logging
import os
import random
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import node
from .beats import Heartbeats
from .client import (
    TIMEOUT_S,
    BadAnswer,
    Client,
    Rejected,
    Unauthorised,
    Unavailable,
    understanding,
)
from .control import Bell, Control
from .job import Job, NotRun
from .runs import Runs

#: The pause between fruitless claims grows up to this multiple.
MAX_POLL_FACTOR = 3.0
#: With jobs at hand up to this one: such a pilot may ask in vain for as long as they run.
MAX_BUSY_POLL_FACTOR = 10.0
_GROWTH = 1.3
#: Asked sooner after a fruitless claim, the server says no at once: a part of the pause, and the
#: most that this part comes to.
_REST_OF_POLL = 0.5
_LONGEST_REST_S = 1.0
_HEARTBEAT_TIMEOUT_S = 10.0
_GOODBYE_PATIENCE_S = 30.0

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_UNAUTHORISED = 77
EXIT_TERMINATED = 143

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class Mission:
    """What the submission gave this pilot."""

    server_url: str
    pilot: str
    secret: str
    work_dir: Path


@dataclass(frozen=True)
class Terms:
    """What the server's answer to the registration asks of the pilot."""

    heartbeat_s: float
    poll_s: float
    idle_limit_s: float
    lifetime_s: float

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Terms:
        """Read the answer; call it `understanding` that it may be none."""
        return cls(
            heartbeat_s=float(data["heartbeat_s"]),
            poll_s=float(data["poll_s"]),
            idle_limit_s=float(data["idle_limit_s"]),
            lifetime_s=float(data["lifetime_s"]),
        )


@dataclass(frozen=True)
class End:
    """Why the pilot ends."""

    reason: str
    detail: str = ""

    @property
    def exit_code(self) -> int:
        """The code the batch system sees."""
        return {"error": EXIT_ERROR, "terminated": EXIT_TERMINATED}.get(self.reason, EXIT_OK)


class Agent:
    """One pilot. Claims are made one after another; the jobs run side by side."""

    def __init__(self, mission: Mission, control: Control) -> None:
        self._mission = mission
        self._control = control
        # Chosen here, so that a registration whose answer was lost can be repeated.
        self._token = secrets.token_hex(32)
        self._client = self._new_client()
        self._started = control.clock()
        self._slot = node.slot(os.environ)
        self._runs = Runs(
            self._slot,
            control,
            new_client=lambda bell: self._new_client(bell=bell),
            work_dir=mission.work_dir,
        )

    def run(self) -> int:
        """Live and return the exit code."""
        try:
            terms = self._register()
        except Unauthorised as error:
            log.error("the server refused the registration: %s", error)
            return EXIT_UNAUTHORISED
        except (Unavailable, Rejected, BadAnswer) as error:
            log.error("could not register: %s", error)
            return EXIT_ERROR
        beats = Heartbeats(
            self._new_client(timeout_s=_HEARTBEAT_TIMEOUT_S),
            self._control,
            every_s=terms.heartbeat_s,
            work_dir=self._mission.work_dir,
        )
        beats.start()
        try:
            end = self._work(terms)
        except Unauthorised as error:
            log.error("the server refused the pilot's credential, which ends it: %s", error)
            return EXIT_UNAUTHORISED
        finally:
            beats.stop()
        return self._say_goodbye(end)

    def _new_client(self, *, bell: Bell | None = None, timeout_s: float = TIMEOUT_S) -> Client:
        mission = self._mission
        return Client(
            mission.server_url,
            mission.pilot,
            self._token,
            self._control,
            bell=bell,
            timeout_s=timeout_s,
        )

    def _register(self) -> Terms:
        body = {
            "pilot": self._mission.pilot,
            "secret": self._mission.secret,
            "token": self._token,
            "node": node.describe_node(self._mission.work_dir, self._slot),
        }
        answer = self._client.call("register", body, is_authorised=False)
        with understanding("register"):
            terms = Terms.from_json(answer)
        log.info("registered as pilot %s: %s", self._mission.pilot, terms)
        return terms

    def _work(self, terms: Terms) -> End:
        """Run jobs until there is a reason to end, and those at hand to theirs."""
        try:
            end = self._pull_jobs(terms)
        except Unauthorised:
            self._control.lock_out()
            self._runs.join()
            raise
        except (Unavailable, Rejected, BadAnswer) as error:
            end = _ended_by(error)
        self._runs.join()
        # In the meantime there may have come a reason that goes before this one.
        if self._control.is_locked_out:
            raise Unauthorised("told so while the last jobs came to their end")
        if self._control.is_terminated:
            return End("terminated")
        return end if self._runs.fault is None else _ended_by(self._runs.fault)

    def _pull_jobs(self, terms: Terms) -> End:
        """Claim and start jobs until there is a reason to claim no more."""
        idle_s = 0.0
        pause_s = terms.poll_s
        asks_from = self._control.clock()
        while True:
            if self._runs.collect():
                pause_s = terms.poll_s
            end = self._why_end(terms, idle_s)
            if end is not None:
                return end
            free = self._runs.free()
            if not free.cores:
                self._control.bell.wait(None)
                continue
            rest_s = asks_from - self._control.clock()
            if rest_s > 0:
                self._control.bell.wait(rest_s)
                continue
            job = self._claim(terms, free)
            if job is not None:
                self._runs.start(job)
                idle_s, pause_s = 0.0, terms.poll_s
                continue
            before = self._control.clock()
            asks_from = before + min(_LONGEST_REST_S, terms.poll_s * _REST_OF_POLL)
            self._control.bell.wait(pause_s * random.uniform(0.8, 1.2))
            # Only these pauses count: a server that was away had no chance to give work.
            is_idle = self._runs.are_over()
            idle_s = idle_s + self._control.clock() - before if is_idle else 0.0
            factor = MAX_POLL_FACTOR if is_idle else MAX_BUSY_POLL_FACTOR
            pause_s = min(pause_s * _GROWTH, terms.poll_s * factor)

    def _why_end(self, terms: Terms, idle_s: float) -> End | None:
        if self._control.is_locked_out:
            raise Unauthorised("told so by the answer to another request")
        if self._control.is_terminated:
            return End("terminated")
        if self._runs.fault is not None:
            return _ended_by(self._runs.fault)
        if self._control.is_draining:
            return End("drained")
        if self._left_s(terms) <= 0:
            return End("lifetime")
        if idle_s >= terms.idle_limit_s:
            return End("idle")
        return None

    def _left_s(self, terms: Terms) -> float:
        return terms.lifetime_s - (self._control.clock() - self._started)

    def _claim(self, terms: Terms, free: node.Share) -> Job | None:
        body = {
            # The same in every repetition: so it gets one job, however many answers are lost.
            "claim": secrets.token_hex(16),
            "cpu_time_s": max(0, int(self._left_s(terms))),
            "cores": free.cores,
            "memory_mb": free.memory_mb,
            "gpus": free.gpus,
            "disk_mb": node.free_disk_mb(self._mission.work_dir),
            "platform": node.platform_name(),
            "tags": [],
            "required_tags": [],
        }
        answer = self._client.call("claim", body)
        with understanding("claim"):
            return None if answer["job"] is None else Job.from_json(answer["job"])

    def _say_goodbye(self, end: End) -> int:
        log.info("the pilot ends: %s %s", end.reason, end.detail)
        body = {"reason": end.reason, "detail": end.detail[:1000]}
        try:
            self._client.call("end", body, patience_s=_GOODBYE_PATIENCE_S)
        except (Unavailable, Unauthorised, Rejected, BadAnswer) as error:
            log.warning("the server did not take the good-bye: %s", error)
        return end.exit_code


def _ended_by(fault: Exception) -> End:
    """Return why a pilot ends that cannot go on."""
    if isinstance(fault, Unavailable):
        return End("error", f"the server was away for too long: {fault}")
    if isinstance(fault, Rejected):
        return End("error", f"the server refused a request: {fault}")
    if isinstance(fault, NotRun):
        return End("error", f"a job was not run: {fault}")
    if isinstance(fault, BadAnswer):
        return End("error", f"the server's answer cannot be understood: {fault}")
    return End("error", f"the pilot itself failed: {fault!r}")
