"""The pilot's life: register, pull jobs as long as something is free, say good-bye."""

from __future__ import annotations

import logging
import os
import random
import secrets
from dataclasses import dataclass

from .. import node
from ..control import Bell, Control
from ..fence.base import Fence, FenceFails
from ..fence.host_view import is_below
from ..fence.network import Network
from ..jobs.claims import Claimed, Claims
from ..jobs.job_run import Equipment, NotRun
from ..jobs.running_jobs import Runs
from ..resources.cgroups import Cgroups, own_group
from ..resources.limits import Limits
from ..server.client import (
    TIMEOUT_S,
    BadAnswer,
    Client,
    Rejected,
    Unauthorised,
    Unavailable,
    understanding,
)
from ..server.log_upload import LOG_FILE, LogShipper
from ..server.report_spool import Spool
from .fence_selection import AUTO, best_fence, fence_named
from .heartbeat import Heartbeats
from .node_validation import Validation
from .pilot_config import Mission
from .pilot_lifetime import Life
from .registration import Terms

#: The pause between fruitless claims grows up to this multiple.
MAX_POLL_FACTOR = 3.0
#: With jobs at hand up to this one: such a pilot may ask in vain for as long as they run.
MAX_BUSY_POLL_FACTOR = 10.0
_GROWTH = 1.3
_HEARTBEAT_TIMEOUT_S = 10.0
_GOODBYE_PATIENCE_S = 30.0

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_UNAUTHORISED = 77
EXIT_TERMINATED = 143
_EXIT_CODES = {
    "error": EXIT_ERROR,
    "unfit": EXIT_ERROR,
    "terminated": EXIT_TERMINATED,
    "preempted": EXIT_TERMINATED,
}

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class End:
    """Why the pilot ends."""

    kind: str
    detail: str = ""

    @property
    def exit_code(self) -> int:
        """The code the batch system sees."""
        return _EXIT_CODES.get(self.kind, EXIT_OK)


class Agent:
    """One pilot. Claims are made one after another; the jobs run side by side."""

    def __init__(self, mission: Mission, control: Control) -> None:
        self._mission = mission
        self._control = control
        # Chosen here, so that a registration whose answer was lost can be repeated.
        self._token = secrets.token_hex(32)
        self._client = self._new_client()
        self._started = control.clock() - mission.used_s
        self._slot = node.slot(os.environ, mission.work_dir)
        self._spool = Spool(mission.work_dir / "spool", client=self._new_client(), control=control)
        self._fence = best_fence(mission.work_dir)
        self._runs: Runs | None = None
        self._claims: Claims | None = None
        self._validation = Validation(
            mission,
            self._slot,
            self._new_client(bell=control.new_bell()),
            control,
            skew_s=lambda: self._client.skew_s,
        )
        self._shipper = LogShipper(
            self._new_client(timeout_s=_HEARTBEAT_TIMEOUT_S), mission.work_dir / LOG_FILE
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
        self._beats = self._heartbeats(terms)
        self._beats.start()
        self._spool.start()
        try:
            end = self._prove_and_work(terms)
        except Unauthorised as error:
            log.error("the server refused the pilot's credential, which ends it: %s", error)
            return EXIT_UNAUTHORISED
        finally:
            self._beats.stop()
            self._spool.stop()
            self._validation.stop()
        return self._say_goodbye(end)

    def _heartbeats(self, terms: Terms) -> Heartbeats:
        return Heartbeats(
            self._new_client(timeout_s=_HEARTBEAT_TIMEOUT_S),
            self._control,
            every_s=terms.heartbeat_s,
            work_dir=self._mission.work_dir,
            usage=lambda: self._runs.usage() if self._runs else {},
            spool=self._spool,
            shipper=self._shipper,
        )

    def _prove_and_work(self, terms: Terms) -> End:
        """Work if the node is fit; else keep its slot, so that no other pilot fails here soon."""
        life = Life(
            self._control,
            started=self._started,
            lifetime_s=terms.lifetime_s,
            idle_limit_s=terms.idle_limit_s,
            settings=self._mission.settings,
        )
        life.watch()
        try:
            fence = self._prove(terms)
        except (Unavailable, Rejected, BadAnswer) as error:
            return _ended_by(error)
        self._beats.validation_s = self._validation.seconds
        if fence is None:
            self._validation.hold(terms.hold_after_failure_s - life.elapsed_s())
            return self._end_of_unfit()
        self._beats.network = fence.network.name
        self._validation.start()
        runs = Runs(
            self._slot,
            new_client=lambda bell: self._new_client(bell=bell),
            equipment=self._equipment(terms, fence, life),
        )
        self._runs = runs
        self._claims = Claims(
            self._mission.work_dir,
            self._slot,
            self._client,
            self._control,
            self._spool,
            life=life,
            runs=runs,
            poll_s=terms.poll_s,
        )
        return self._work(terms, life, self._claims, runs)

    def _prove(self, terms: Terms) -> Fence | None:
        """Check the node and its fence; return this one, or nothing where either fails."""
        if not self._validation.prove(self._client):
            return None
        try:
            return self._fence_for(terms)
        except FenceFails as error:
            reason = f"{terms.fence} does not work: {error}"
            self._validation.fail(self._client, "fence", reason)
            return None

    def _end_of_unfit(self) -> End:
        if self._control.is_locked_out:
            raise Unauthorised("told so while the slot was kept")
        return End("unfit", self._validation.failure)

    def _fence_for(self, terms: Terms) -> Fence:
        """What the queue asks for; raises FenceFails where that does not work."""
        for shared in terms.shared_folders:
            if is_below(str(self._mission.work_dir.resolve()), shared.path):
                raise FenceFails(f"the shared folder {shared.path} holds the pilot's own files")
        if terms.fence in (AUTO, self._fence.name) and terms.network in (
            AUTO,
            self._fence.network.name,
        ):
            return self._fence
        name = self._fence.name if terms.fence == AUTO else terms.fence
        wanted = Network(terms.network, self._mission.server_url)
        return fence_named(name, self._mission.work_dir, wanted)

    def _equipment(self, terms: Terms, fence: Fence, life: Life) -> Equipment:
        cgroups = Cgroups(own_group())
        cgroups.set_up()
        return Equipment(
            work_dir=self._mission.work_dir,
            control=self._control,
            fence=fence,
            limits=Limits.of(terms.limits),
            spool=self._spool,
            cgroups=cgroups,
            next_claim=lambda job: self._claims.next_claim(job) if self._claims else None,
            left_s=life.left_s,
            shared=terms.shared_folders,
        )

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
            "node": {
                **node.describe_node(self._mission.work_dir, self._slot),
                "fence": self._fence.name,
            },
        }
        answer = self._client.call("register", body, is_authorised=False)
        with understanding("register"):
            terms = Terms.from_json(answer)
        log.info("registered as pilot %s: %s", self._mission.pilot, terms)
        return terms

    def _work(self, terms: Terms, life: Life, claims: Claims, runs: Runs) -> End:
        """Run jobs until there is a reason to end, and those at hand to theirs."""
        try:
            end = self._pull_jobs(terms, life, claims, runs)
        except Unauthorised:
            self._control.lock_out()
            runs.join()
            raise
        except (Unavailable, Rejected, BadAnswer) as error:
            end = _ended_by(error)
        runs.join()
        self._spool.flush()
        # In the meantime there may have come a reason that goes before this one.
        if self._control.is_locked_out:
            raise Unauthorised("told so while the last jobs came to their end")
        if self._control.is_terminated:
            return self._end_of_terminated(life)
        fault = runs.fault or self._spool.fault
        return end if fault is None else _ended_by(fault)

    def _end_of_terminated(self, life: Life) -> End:
        if life.is_over:
            return End("lifetime")
        return End("preempted" if self._control.is_preempted else "terminated")

    def _pull_jobs(self, terms: Terms, life: Life, claims: Claims, runs: Runs) -> End:
        """Claim and start jobs until there is a reason to claim no more."""
        idle_s = 0.0
        job_starts = 0
        pause_s = terms.poll_s
        while True:
            if runs.collect():
                pause_s = terms.poll_s
            end = self._why_end(life, runs, idle_s, job_starts)
            if end is not None:
                return end
            if not runs.free().cores:
                self._control.bell.wait(None)
                continue
            rest_s = claims.rest_s()
            if rest_s > 0 and not runs.has_been_given_jobs():
                self._control.bell.wait(rest_s)
                continue
            has_place = runs.has_place()
            claimed = claims.claim(terms.idle_limit_s - idle_s) if has_place else Claimed(None)
            if claimed.job is not None:
                runs.start(claimed.job)
                job_starts += 1
                idle_s, pause_s = 0.0, terms.poll_s
                continue
            runs.give_up_place()
            waited_s = claimed.waited_s
            if not claimed.asks_on:
                waited_s += self._pause(pause_s)
            # Only these times count: a server that was away had no chance to give work, and while
            # reports wait the pilot stays for them. Nor is there no work where there was none for
            # the part that one job left.
            is_over = runs.are_over() and not self._spool.attempts()
            is_idle = is_over and not claimed.is_of_part
            idle_s = idle_s + waited_s if is_idle else 0.0
            factor = MAX_POLL_FACTOR if is_idle else MAX_BUSY_POLL_FACTOR
            pause_s = min(pause_s * _GROWTH, terms.poll_s * factor)

    def _pause(self, pause_s: float) -> float:
        """Return how long it was: until something happens, or about so long."""
        before = self._control.clock()
        self._control.bell.wait(pause_s * random.uniform(0.8, 1.2))
        return self._control.clock() - before

    def _why_end(self, life: Life, runs: Runs, idle_s: float, job_starts: int) -> End | None:
        control = self._control
        if control.is_locked_out:
            raise Unauthorised("told so by the answer to another request")
        if control.is_terminated:
            return self._end_of_terminated(life)
        fault = runs.fault or self._spool.fault
        if fault is not None:
            return _ended_by(fault)
        if self._validation.failure:
            return End("unfit", self._validation.failure)
        if control.is_draining:
            return End("drained", control.drain_reason)
        decision = life.judge(
            idle_s=idle_s,
            job_starts=job_starts,
            running=len(control.held()),
            draining=control.is_draining,
        )
        if not decision.accepts_jobs:
            return End("lifetime")
        return End("idle") if decision.shutdown else None

    def _say_goodbye(self, end: End) -> int:
        log.info("the pilot ends: %s %s", end.kind, end.detail)
        self._shipper.ship()
        totals = {
            "cores": self._slot.cores,
            "lifetime_s": round(self._control.clock() - self._started, 3),
            "validation_s": round(self._validation.seconds, 3),
        }
        body = {"reason": end.kind, "detail": end.detail[:1000], "totals": totals}
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
