"""Main loop of the pilot: register, validate the node, claim and run jobs, report the end.

Also the reasons for which a pilot ends, with its exit codes.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
from dataclasses import dataclass
from functools import partial

from .. import node
from ..control import Control, Waker
from ..fence.base import Fence, FenceUnusable
from ..jobs.images import Images
from ..jobs.job_run import RunContext
from ..jobs.job_transfers import NotRun
from ..jobs.running_jobs import RunningJobs
from ..resources.cgroups import Cgroups, own_group
from ..resources.limits import Limits
from ..server.client import (
    TIMEOUT_S,
    BadAnswer,
    Client,
    Rejected,
    Unauthorised,
    Unavailable,
    parsing,
)
from ..server.log_upload import LOG_FILE, LogUploader
from ..server.report_spool import ReportSpool
from .claims import Claimer, ClaimResult
from .fence_selection import best_fence
from .heartbeat import Heartbeats
from .image_selection import images_of
from .node_validation import NodeValidation
from .pilot_config import PilotConfig
from .pilot_lifetime import PilotLifetime
from .queue_fence import fence_of
from .queue_settings import QueueSettings
from .told_time import ToldTime

#: Largest multiple of the poll period between claims in vain.
MAX_POLL_FACTOR = 3.0
#: The same with jobs at hand: such a pilot may ask in vain for as long as they run.
MAX_BUSY_POLL_FACTOR = 10.0
_GROWTH = 1.3
_HEARTBEAT_TIMEOUT_S = 10.0
_GOODBYE_RETRY_S = 30.0

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
class EndReason:
    """Reason why the pilot ends, as sent to the server."""

    kind: str
    detail: str = ""

    @property
    def exit_code(self) -> int:
        """Exit code that the batch system sees."""
        return _EXIT_CODES.get(self.kind, EXIT_OK)


class Agent:
    """One pilot. Claims are made one after another; the jobs run side by side."""

    def __init__(self, config: PilotConfig, control: Control) -> None:
        self._config = config
        self._control = control
        # Chosen here, so that a registration whose answer was lost can be repeated.
        self._token = secrets.token_hex(32)
        self._client = self._new_client()
        self._started = control.clock() - config.used_s
        self._told_time = ToldTime(control, started=self._started)
        self._slot = node.slot(os.environ, config.work_dir)
        self._spool = ReportSpool(
            config.work_dir / "spool", client=self._new_client(), control=control
        )
        self._fence = best_fence(config.work_dir)
        self._running_jobs: RunningJobs | None = None
        self._claimer: Claimer | None = None
        self._validation = NodeValidation(
            config,
            self._slot,
            self._new_client(waker=control.new_waker()),
            control,
            skew_s=lambda: self._client.skew_s,
        )
        self._log_uploader = LogUploader(
            self._new_client(timeout_s=_HEARTBEAT_TIMEOUT_S), config.work_dir / LOG_FILE
        )

    def run(self) -> int:
        """Register, work to the end, and return the exit code."""
        try:
            settings = self._register()
        except Unauthorised as error:
            log.error("the server refused the registration: %s", error)
            return EXIT_UNAUTHORISED
        except (Unavailable, Rejected, BadAnswer) as error:
            log.error("could not register: %s", error)
            return EXIT_ERROR
        self._heartbeat_thread = self._heartbeats(settings)
        self._heartbeat_thread.start()
        self._spool.start()
        self._told_time.start()
        try:
            end = self._validate_and_work(settings)
        except Unauthorised as error:
            log.error("the server refused the pilot's credential, which ends it: %s", error)
            return EXIT_UNAUTHORISED
        finally:
            self._heartbeat_thread.stop()
            self._spool.stop()
            self._validation.stop()
            self._told_time.stop()
        return self._say_goodbye(end)

    def _heartbeats(self, settings: QueueSettings) -> Heartbeats:
        return Heartbeats(
            self._new_client(timeout_s=_HEARTBEAT_TIMEOUT_S),
            self._control,
            every_s=settings.heartbeat_s,
            work_dir=self._config.work_dir,
            jobs=lambda: self._running_jobs,
            told_time=self._told_time,
            spool=self._spool,
            log_uploader=self._log_uploader,
        )

    def _validate_and_work(self, settings: QueueSettings) -> EndReason:
        """Work if the node is fit; else keep its slot, so that no other pilot fails here soon."""
        lifetime = PilotLifetime(
            self._control,
            started=self._started,
            lifetime_s=settings.lifetime_s,
            idle_limit_s=settings.idle_limit_s,
            settings=self._config.settings,
            told_left_s=self._told_time.left_s,
        )
        lifetime.watch()
        try:
            fence = self._validate(settings)
        except (Unavailable, Rejected, BadAnswer) as error:
            return _ended_by(error)
        self._heartbeat_thread.validation_s = self._validation.seconds
        if fence is None:
            self._validation.keep_slot(settings.hold_after_failure_s - lifetime.elapsed_s())
            return self._end_of_unfit()
        self._heartbeat_thread.network = fence.network.name
        try:
            images = images_of(
                settings, fence, self._config.work_dir, partial(self._validation.tell, self._client)
            )
        except (Unavailable, Rejected, BadAnswer) as error:
            return _ended_by(error)
        self._validation.start()
        running_jobs = RunningJobs(
            self._slot,
            new_client=lambda waker: self._new_client(waker=waker),
            context=self._context(settings, fence, images, lifetime),
        )
        self._running_jobs = running_jobs
        self._claimer = Claimer(
            self._config.work_dir,
            self._slot,
            self._client,
            self._control,
            self._spool,
            lifetime=lifetime,
            running_jobs=running_jobs,
            poll_s=settings.poll_s,
        )
        return self._work(settings, lifetime, self._claimer, running_jobs)

    def _validate(self, settings: QueueSettings) -> Fence | None:
        """Check the node and its fence; return the fence, or None where either fails."""
        if not self._validation.validate(self._client):
            return None
        if self._told_time.faults:
            failure = "; ".join(self._told_time.faults)
            self._validation.tell(self._client, "time-left", failure=failure)
        try:
            fence = fence_of(settings, self._fence, self._config)
        except FenceUnusable as error:
            reason = f"{settings.fence} does not work: {error}"
            self._validation.report_failure(self._client, "fence", reason)
            return None
        if fence.account_faults:
            failure = "; ".join(fence.account_faults)
            self._validation.tell(self._client, "accounts", failure=failure)
        return fence

    def _end_of_unfit(self) -> EndReason:
        if self._control.is_locked_out:
            raise Unauthorised("told so while the slot was kept")
        return EndReason("unfit", self._validation.failure)

    def _context(
        self, settings: QueueSettings, fence: Fence, images: Images, lifetime: PilotLifetime
    ) -> RunContext:
        cgroups = Cgroups(own_group())
        cgroups.set_up()
        return RunContext(
            work_dir=self._config.work_dir,
            server_url=self._config.server_url,
            control=self._control,
            fence=fence,
            images=images,
            limits=Limits.of(settings.limits),
            spool=self._spool,
            cgroups=cgroups,
            next_claim=lambda job: self._claimer.next_claim(job) if self._claimer else None,
            left_s=lifetime.left_s,
            shared=settings.shared_folders,
            published=self._validation.variables,
        )

    def _new_client(self, *, waker: Waker | None = None, timeout_s: float = TIMEOUT_S) -> Client:
        config = self._config
        return Client(
            config.server_url,
            config.pilot,
            self._token,
            self._control,
            waker=waker,
            timeout_s=timeout_s,
        )

    def _register(self) -> QueueSettings:
        body = {
            "pilot": self._config.pilot,
            "secret": self._config.secret,
            "token": self._token,
            "node": {
                **node.describe_node(self._config.work_dir, self._slot),
                "fence": self._fence.name,
                **self._told_time.news(),
            },
        }
        answer = self._client.call("register", body, is_authorised=False)
        with parsing("register"):
            settings = QueueSettings.from_json(answer)
        self._told_time.accepted()
        log.info("registered as pilot %s: %s", self._config.pilot, settings)
        return settings

    def _work(
        self,
        settings: QueueSettings,
        lifetime: PilotLifetime,
        claimer: Claimer,
        running_jobs: RunningJobs,
    ) -> EndReason:
        """Run jobs until there is a reason to end, and let those at hand finish."""
        try:
            end = self._pull_jobs(settings, lifetime, claimer, running_jobs)
        except Unauthorised:
            self._control.lock_out()
            running_jobs.join()
            raise
        except (Unavailable, Rejected, BadAnswer) as error:
            end = _ended_by(error)
        running_jobs.join()
        self._spool.flush()
        # In the meantime there may have come a reason that goes before this one.
        if self._control.is_locked_out:
            raise Unauthorised("told so while the last jobs came to their end")
        if self._control.is_terminated:
            return self._end_of_terminated(lifetime)
        fault = running_jobs.fault or self._spool.fault
        return end if fault is None else _ended_by(fault)

    def _end_of_terminated(self, lifetime: PilotLifetime) -> EndReason:
        if lifetime.is_over:
            return EndReason("lifetime")
        return EndReason("preempted" if self._control.is_preempted else "terminated")

    def _pull_jobs(
        self,
        settings: QueueSettings,
        lifetime: PilotLifetime,
        claimer: Claimer,
        running_jobs: RunningJobs,
    ) -> EndReason:
        """Claim and start jobs until there is a reason to claim no more."""
        idle_s = 0.0
        job_starts = 0
        pause_s = settings.poll_s
        while True:
            if running_jobs.collect():
                pause_s = settings.poll_s
            end = self._why_end(lifetime, running_jobs, idle_s, job_starts)
            if end is not None:
                return end
            if not running_jobs.free().cores:
                self._control.waker.wait(None)
                continue
            rest_s = claimer.rest_s()
            if rest_s > 0 and not running_jobs.has_claimed_jobs():
                self._control.waker.wait(rest_s)
                continue
            is_reserved = running_jobs.reserve()
            claimed = (
                claimer.claim(settings.idle_limit_s - idle_s) if is_reserved else ClaimResult(None)
            )
            if claimed.job is not None:
                running_jobs.start(claimed.job)
                job_starts += 1
                idle_s, pause_s = 0.0, settings.poll_s
                continue
            running_jobs.release_reservation()
            waited_s = claimed.waited_s
            if not claimed.may_claim_at_once:
                waited_s += self._pause(pause_s)
            # Only these times count: a server that was away had no chance to give work, and while
            # reports wait the pilot stays for them. Nor is there no work where there was none for
            # the part that one job left.
            is_over = running_jobs.is_empty() and not self._spool.attempts()
            is_idle = is_over and not claimed.is_of_part
            idle_s = idle_s + waited_s if is_idle else 0.0
            factor = MAX_POLL_FACTOR if is_idle else MAX_BUSY_POLL_FACTOR
            pause_s = min(pause_s * _GROWTH, settings.poll_s * factor)

    def _pause(self, pause_s: float) -> float:
        """Wait about so long, or until something happens; return how long it was."""
        before = self._control.clock()
        self._control.waker.wait(pause_s * random.uniform(0.8, 1.2))
        return self._control.clock() - before

    def _why_end(
        self, lifetime: PilotLifetime, running_jobs: RunningJobs, idle_s: float, job_starts: int
    ) -> EndReason | None:
        control = self._control
        if control.is_locked_out:
            raise Unauthorised("told so by the answer to another request")
        if control.is_terminated:
            return self._end_of_terminated(lifetime)
        fault = running_jobs.fault or self._spool.fault
        if fault is not None:
            return _ended_by(fault)
        if self._validation.failure:
            return EndReason("unfit", self._validation.failure)
        if control.is_draining:
            return EndReason("drained", control.drain_reason)
        decision = lifetime.shutdown_decision(
            idle_s=idle_s,
            job_starts=job_starts,
            running=len(control.attempts()),
            draining=control.is_draining,
        )
        if not decision.accepts_jobs:
            return EndReason("lifetime")
        return EndReason("idle") if decision.shutdown else None

    def _say_goodbye(self, end: EndReason) -> int:
        log.info("the pilot ends: %s %s", end.kind, end.detail)
        self._log_uploader.upload()
        totals = {
            "cores": self._slot.cores,
            "lifetime_s": round(self._control.clock() - self._started, 3),
            "validation_s": round(self._validation.seconds, 3),
        }
        body = {"reason": end.kind, "detail": end.detail[:1000], "totals": totals}
        try:
            self._client.call("end", body, retry_s=_GOODBYE_RETRY_S)
        except (Unavailable, Unauthorised, Rejected, BadAnswer) as error:
            log.warning("the server did not take the good-bye: %s", error)
        return end.exit_code


def _ended_by(fault: Exception) -> EndReason:
    """End reason of a pilot that a fault keeps from going on."""
    if isinstance(fault, Unavailable):
        return EndReason("error", f"the server was away for too long: {fault}")
    if isinstance(fault, Rejected):
        return EndReason("error", f"the server refused a request: {fault}")
    if isinstance(fault, NotRun):
        return EndReason("error", f"a job was not run: {fault}")
    if isinstance(fault, BadAnswer):
        return EndReason("error", f"the server's answer cannot be understood: {fault}")
    return EndReason("error", f"the pilot itself failed: {fault!r}")
