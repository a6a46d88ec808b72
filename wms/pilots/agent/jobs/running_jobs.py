"""The jobs at hand: each runs in a thread of its own, and holds its part of the slot."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ..control import Attempt, Bell
from ..fence.base import NoPlace, Place
from ..node import Share
from ..server.client import BadAnswer, Client, Rejected, Unauthorised, Unavailable
from .job_description import Followup, Job
from .job_run import Equipment, JobRun, NotRun

log = logging.getLogger("pilot")


class Runs:
    """Started and collected by the main thread only.

    A fault of one lets the others go on to their end; but when the server does not accept the
    pilot any more, all are told.
    """

    def __init__(
        self,
        slot: Share,
        *,
        new_client: Callable[[Bell], Client],
        equipment: Equipment,
    ) -> None:
        self._slot = slot
        self._control = equipment.control
        self._new_client = new_client
        self._equipment = equipment
        self._jobs: dict[Attempt, Job] = {}
        # Replaced and never changed: the thread of heartbeats reads it at any moment.
        self._running: dict[Attempt, JobRun] = {}
        self._lock = threading.Lock()
        self._faults: list[Exception] = []
        # By the attempt that they followed: its part of the slot must be free first.
        self._followups: dict[Attempt, Followup] = {}
        self._ready: deque[Followup] = deque()
        self._place: Place | None = None

    @property
    def fault(self) -> Exception | None:
        """What first kept a job from being run or reported."""
        return self._faults[0] if self._faults else None

    def are_over(self) -> bool:
        """Tell whether no job is at hand."""
        return not self._jobs

    def free(self) -> Share:
        """Return what no job holds of the slot."""
        return self._slot.minus(job.share for job in self._jobs.values())

    @property
    def has_few_places(self) -> bool:
        """Whether a job must have its place before it is claimed, or it may find none."""
        return self._equipment.fence.has_few_places

    def has_place(self) -> bool:
        """Keep a place behind the fence for the next job; tell whether there is one."""
        try:
            self._place = self._place or self._equipment.fence.place()
        except NoPlace:
            return False
        return True

    def give_up_place(self) -> None:
        """There is no next job now: other pilots of this node may have its place."""
        if self._place is not None:
            self._place.close()
            self._place = None

    def freed_by(self, job: Job) -> Share:
        """What can be claimed at the end of a job; for its own thread.

        The whole slot, if there is nothing else in it: what is left of the slot beside a job is
        claimed by the main thread, and nothing must be claimed twice.
        """
        others = [each for each in list(self._jobs.values()) if each.key != job.key]
        is_full = not self._slot.minus([job.share]).cores
        return self._slot if is_full and not others else job.share

    def usage(self) -> dict[Attempt, dict[str, Any]]:
        """What the payloads that run were last seen to use."""
        return {key: run.usage() for key, run in self._running.items()}

    def start(self, job: Job) -> None:
        """Run a job for which there is a place, from its inputs to its report."""
        place, self._place = self._place or Place(), None
        bell = self._control.hold(job.key)
        self._jobs[job.key] = job
        thread = threading.Thread(
            target=self._run, args=(job, bell, place), name=f"job {job.job}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            # The node has no thread left. The good-bye gives the job back.
            self._faults.append(error)
            place.close()
            self._control.release(job.key)

    def collect(self) -> bool:
        """Let go of jobs that are over; tell whether there was any."""
        held = set(self._control.held())
        over = [key for key in self._jobs if key not in held]
        for key in over:
            del self._jobs[key]
            if key in self._followups:
                self._ready.append(self._followups.pop(key))
        return bool(over)

    def followup(self) -> Followup | None:
        """Take what became of a claim that went with the last report of a collected job.

        Those that brought a job go first: the server counts it as begun.
        """
        if not self._ready:
            return None
        first = next((each for each in self._ready if each.has_job()), self._ready[0])
        self._ready.remove(first)
        return first

    def has_been_given_jobs(self) -> bool:
        """Tell whether a followup has brought a job."""
        return any(each.has_job() for each in self._ready)

    def join(self) -> None:
        """Return when no job is at hand any more."""
        self.give_up_place()
        self.collect()
        self._give_back()
        while self._jobs:
            self._control.bell.wait(None)
            self.collect()
            self._give_back()

    def _give_back(self) -> None:
        """Tell of the jobs that came with answers to reports that they are not begun any more.

        Where the pilot has to go at once, its good-bye does that.
        """
        while self._ready and not (self._control.is_terminated or self._control.is_locked_out):
            followup = self._ready.popleft()
            if followup.has_job():
                try:
                    self._tell_not_run(followup)
                except (Unavailable, Unauthorised, Rejected, BadAnswer) as error:
                    log.warning("a job could not be given back: %s", error)

    def _tell_not_run(self, followup: Followup) -> None:
        job = followup.job()
        log.info("job %d attempt %d is given back: the pilot takes no more jobs", *job.key)
        self._equipment.spool.put(
            f"{job.path}/report",
            {"event": "not_run", "reason": "the pilot takes no more jobs"},
            client=self._new_client(self._control.bell).with_token(job.token),
        )

    def _run(self, job: Job, bell: Bell, place: Place) -> None:
        run = JobRun(
            job,
            client=self._new_client(bell),
            bell=bell,
            equipment=self._equipment,
            place=place,
        )
        with self._lock:
            self._running = {**self._running, job.key: run}
        try:
            followup = run.run()
            if followup is not None:
                self._followups[job.key] = followup
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
            self._control.release(job.key)
