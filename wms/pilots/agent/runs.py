"""The jobs at hand: each runs in a thread of its own, and holds its part of the slot."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from .client import BadAnswer, Client, Rejected, Unauthorised, Unavailable
from .control import Attempt, Bell, Control
from .job import Job, JobRun, NotRun
from .node import Share

log = logging.getLogger("pilot")


class Runs:
    """Started and collected by the main thread only.

    A fault of one lets the others go on to their end; but when the server does not accept the
    pilot any more, all are told.
    """

    def __init__(
        self,
        slot: Share,
        control: Control,
        *,
        new_client: Callable[[Bell], Client],
        work_dir: Path,
    ) -> None:
        self._slot = slot
        self._control = control
        self._new_client = new_client
        self._work_dir = work_dir
        self._jobs: dict[Attempt, Job] = {}
        self._faults: list[Exception] = []

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

    def start(self, job: Job) -> None:
        """Run a job, from its inputs to its report."""
        bell = self._control.hold(job.key)
        self._jobs[job.key] = job
        thread = threading.Thread(
            target=self._run, args=(job, bell), name=f"job {job.job}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            # The node has no thread left. The good-bye gives the job back.
            self._faults.append(error)
            self._control.release(job.key)

    def collect(self) -> bool:
        """Let go of jobs that are over; tell whether there was any."""
        held = set(self._control.held())
        over = [key for key in self._jobs if key not in held]
        for key in over:
            del self._jobs[key]
        return bool(over)

    def join(self) -> None:
        """Return when no job is at hand any more."""
        self.collect()
        while self._jobs:
            self._control.bell.wait(None)
            self.collect()

    def _run(self, job: Job, bell: Bell) -> None:
        try:
            JobRun(
                job,
                client=self._new_client(bell),
                control=self._control,
                bell=bell,
                work_dir=self._work_dir,
            ).run()
        except Unauthorised as error:
            log.error("the server refused the pilot's credential, which ends it: %s", error)
            self._control.lock_out()
        except (Unavailable, Rejected, BadAnswer, NotRun) as error:
            self._faults.append(error)
        except Exception as error:
            log.exception("job %d attempt %d: the pilot itself failed", *job.key)
            self._faults.append(error)
        finally:
            self._control.release(job.key)
