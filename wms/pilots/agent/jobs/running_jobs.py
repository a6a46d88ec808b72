"""Running jobs of the pilot: a thread for each, share of the slot that it holds, what is free.

Also the fence's reservation for the next job, and jobs that came in answers to reports.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ..control import Attempt, Waker
from ..fence.base import NoFreeAccount, Reservation
from ..node import Share
from ..server.client import BadAnswer, Client, Rejected, Unauthorised, Unavailable
from .job_description import AttachedClaim, BearerToken, Job
from .job_run import JobRun, RunContext
from .job_transfers import NotRun

log = logging.getLogger("pilot")


class RunningJobs:
    """Jobs at hand; the main thread alone starts and collects them.

    A fault of one lets the others finish; but when the server no longer accepts the pilot, all
    stop.
    """

    def __init__(
        self,
        slot: Share,
        *,
        new_client: Callable[[Waker], Client],
        context: RunContext,
    ) -> None:
        self._slot = slot
        self._control = context.control
        self._new_client = new_client
        self._context = context
        self._jobs: dict[Attempt, Job] = {}
        # Replaced and never changed: the thread of heartbeats reads it at any moment.
        self._running: dict[Attempt, JobRun] = {}
        self._lock = threading.Lock()
        self._faults: list[Exception] = []
        # By the attempt that they followed: its part of the slot must be free first.
        self._attached_claims: dict[Attempt, AttachedClaim] = {}
        self._ready: deque[AttachedClaim] = deque()
        self._reservation: Reservation | None = None

    @property
    def fault(self) -> Exception | None:
        """First fault that kept a job from being run or reported."""
        return self._faults[0] if self._faults else None

    def tags(self) -> list[str]:
        """Tags with which the pilot claims: what it has proved of its node."""
        return self._context.images.tags()

    def is_empty(self) -> bool:
        """Tell whether no job is at hand."""
        return not self._jobs

    def free(self) -> Share:
        """Share of the slot that no job holds."""
        return self._slot.minus(job.share for job in self._jobs.values())

    @property
    def needs_reservation(self) -> bool:
        """Whether a job must have its account before it is claimed, as there may be none left."""
        return self._context.fence.needs_reservation

    def reserve(self) -> bool:
        """Make a reservation behind the fence for the next job; false where all are taken."""
        try:
            self._reservation = self._reservation or self._context.fence.reserve()
        except NoFreeAccount:
            return False
        return True

    def refused(self) -> dict[str, list[str]]:
        """Users and groups whose jobs the reservation is not for."""
        return {} if self._reservation is None else self._reservation.refused()

    def release_reservation(self) -> None:
        """Release the reservation: there is no next job now, and other pilots may use it."""
        if self._reservation is not None:
            self._reservation.close()
            self._reservation = None

    def freed_by(self, job: Job) -> Share:
        """Share that can be claimed at the end of a job; called by its own thread.

        The whole slot, if there is nothing else in it: what is left of the slot beside a job is
        claimed by the main thread, and nothing must be claimed twice.
        """
        others = [each for each in list(self._jobs.values()) if each.key != job.key]
        is_full = not self._slot.minus([job.share]).cores
        return self._slot if is_full and not others else job.share

    def usage(self) -> dict[Attempt, dict[str, Any]]:
        """Usage of each running payload as last measured."""
        return {key: run.usage() for key, run in self._running.items()}

    def want_tokens(self) -> list[Attempt]:
        """Attempts whose payloads need another bearer token soon."""
        return [key for key, run in self._running.items() if run.token.is_due()]

    def renew_token(self, attempt: Attempt, token: BearerToken) -> None:
        """Give a payload another bearer token, if it still runs."""
        run = self._running.get(attempt)
        if run is not None:
            run.token.renew(token)

    def start(self, job: Job) -> None:
        """Run a job in a thread, from its inputs to its report."""
        reservation = (self._reservation or Reservation()).choose(job.owner, job.owner_group)
        self._reservation = None
        waker = self._control.add_attempt(job.key)
        self._jobs[job.key] = job
        thread = threading.Thread(
            target=self._run, args=(job, waker, reservation), name=f"job {job.job}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            # The node has no thread left. The good-bye gives the job back.
            self._faults.append(error)
            reservation.close()
            self._control.remove_attempt(job.key)

    def collect(self) -> bool:
        """Forget jobs that are over; tell whether there was any."""
        held = set(self._control.attempts())
        over = [key for key in self._jobs if key not in held]
        for key in over:
            del self._jobs[key]
            if key in self._attached_claims:
                self._ready.append(self._attached_claims.pop(key))
        return bool(over)

    def next_attached_claim(self) -> AttachedClaim | None:
        """Take the next attached claim of a collected job, with its answer.

        Those that brought a job go first: the server counts it as begun.
        """
        if not self._ready:
            return None
        first = next((each for each in self._ready if each.has_job()), self._ready[0])
        self._ready.remove(first)
        return first

    def has_claimed_jobs(self) -> bool:
        """Tell whether an attached claim has brought a job."""
        return any(each.has_job() for each in self._ready)

    def join(self) -> None:
        """Return when no job is at hand any more."""
        self.release_reservation()
        self.collect()
        self._give_back()
        while self._jobs:
            self._control.waker.wait(None)
            self.collect()
            self._give_back()

    def _give_back(self) -> None:
        """Report jobs that came with answers to reports as not run.

        Where the pilot has to end at once, its last message does that.
        """
        while self._ready and not (self._control.is_terminated or self._control.is_locked_out):
            attached_claim = self._ready.popleft()
            if attached_claim.has_job():
                try:
                    self._tell_not_run(attached_claim)
                except (Unavailable, Unauthorised, Rejected, BadAnswer) as error:
                    log.warning("a job could not be given back: %s", error)

    def _tell_not_run(self, attached_claim: AttachedClaim) -> None:
        job = attached_claim.job()
        log.info("job %d attempt %d is given back: the pilot takes no more jobs", *job.key)
        self._context.spool.put(
            f"{job.path}/report",
            {"event": "not_run", "reason": "the pilot takes no more jobs"},
            client=self._new_client(self._control.waker).with_token(job.token),
        )

    def _run(self, job: Job, waker: Waker, reservation: Reservation) -> None:
        run = JobRun(
            job,
            client=self._new_client(waker),
            waker=waker,
            context=self._context,
            reservation=reservation,
        )
        with self._lock:
            self._running = {**self._running, job.key: run}
        try:
            attached_claim = run.run()
            if attached_claim is not None:
                self._attached_claims[job.key] = attached_claim
        except Unauthorised as error:
            log.error("the server refused the pilot's credential, which ends it: %s", error)
            self._control.lock_out()
        except (Unavailable, Rejected, BadAnswer, NotRun) as error:
            self._faults.append(error)
        except Exception as error:
            log.exception("job %d attempt %d: the pilot itself failed", *job.key)
            self._faults.append(error)
        finally:
            with self._lock:
                self._running = {k: v for k, v in self._running.items() if k != job.key}
            self._control.remove_attempt(job.key)
