"""Transfers of one job by URL: when they end before their time, and its outputs that go elsewhere.

Nothing is sent but after a success: who waits for a file must not find that of a failure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..control import Control, Waker
from ..files import sandbox
from ..files.job_directories import JobDirectories
from ..payload import execution
from ..transfers.moved import Moved
from ..transfers.rules import Source, TransferBroken, TransferRefused, without_secrets
from ..transfers.sending import Sender
from .job_description import Job

#: Causes that a report tells where an input or output could not be moved.
FETCH, SEND = "fetch", "send"

log = logging.getLogger("pilot")


class NotRun(Exception):
    """The payload was not run, or not to its end, for a reason that is not its own.

    This node or its connection is not fit for work, or the pilot has to end: then `stopped_by`
    says by whom.
    """

    def __init__(self, reason: str, stopped_by: str = "") -> None:
        super().__init__(reason)
        self.stopped_by = stopped_by


class Killed(Exception):
    """Somebody asked to stop the attempt."""


@dataclass(frozen=True)
class JobTransfers:
    """Common facts of the transfers of a job. `left_s` are the seconds that its pilot has."""

    job: Job
    control: Control
    waker: Waker
    left_s: Callable[[], float]
    moved: Moved = field(default_factory=Moved)

    def check_still_wanted(self) -> None:
        """Raise NotRun in a pilot that has to end: it gives its job back."""
        if self.control.is_terminated:
            raise NotRun("terminated", execution.stop_initiator(self.control))

    def check(self) -> None:
        """Raise NotRun or Killed once a transfer is to end."""
        self.check_still_wanted()
        if self.control.is_killed(self.job.key):
            raise Killed
        if self.control.is_locked_out:
            raise NotRun("the pilot lost its credential", execution.PILOT)
        if self.left_s() <= 0:
            raise NotRun("the pilot had no time left for a transfer", execution.PILOT)

    def pause(self, pause_s: float) -> None:
        """Wait between tries. Raises NotRun and Killed."""
        until = self.control.clock() + pause_s
        while True:
            self.check()
            left_s = until - self.control.clock()
            if left_s <= 0:
                return
            self.waker.wait(left_s)

    def send_outputs(
        self, directories: JobDirectories, outcome: execution.Outcome
    ) -> tuple[execution.Outcome, int]:
        """Send what goes elsewhere, if its payload has come to a good end.

        The outcome after that, and the number of outputs that were sent.
        """
        is_good = outcome.exit_code == self.job.success_code and not outcome.reason
        if not is_good or outcome.signal is not None:
            return outcome, 0
        sent = 0
        for name, target in self.job.output_urls.items():
            told = f"output {name} to {without_secrets(target.url)}"
            try:
                self._send(directories, name, target)
            except (TransferRefused, TransferBroken, OSError) as error:
                reason = f"{told}: {error}"
                log.error("job %d attempt %d: %s", *self.job.key, reason)
                return replace(outcome, reason=reason, failed_transfer=SEND), sent
            except Killed:
                killed = execution.killed_on_request(self.control, self.job.key)
                return replace(outcome, reason=killed.reason, stopped_by=killed.stopped_by), sent
            except NotRun as error:
                return replace(outcome, reason=str(error), stopped_by=error.stopped_by), sent
            sent += 1
        return outcome, sent

    def _send(self, directories: JobDirectories, name: str, target: Source) -> None:
        file = sandbox.find_output(directories.sandbox, name)
        if file is None:
            raise TransferRefused("the payload has left no file there")
        if self.job.transfer_rules is None:
            raise TransferRefused("the server told no limits")
        # So that heartbeats tell what the job is at.
        self.moved.add_sent(0)
        log.info("output %s goes to %s", name, without_secrets(target.url))
        sender = Sender(self.job.transfer_rules, self.check, self.pause, self.moved.add_sent)
        sender.send(file, target)
