"""Inputs of a job laid into its directory: from the server, or by the pilot from their URLs."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass

from ..control import Control, Waker
from ..files import sandbox
from ..files.job_directories import JobDirectories
from ..payload import execution
from ..resources.limits import Limits
from ..server.client import Client, HashMismatch, NodeFault, Rejected, Superseded
from ..transfers.fetching import Fetcher
from ..transfers.rules import TransferBroken, TransferRefused, without_secrets
from .job_description import Input, Job

DOWNLOAD_TRIES = 3
#: Cause that a report tells where an input could not be had from its URL.
FETCH = "fetch"
_MEGABYTE = 2**20
# Errors for names that are too long, or of a file and a folder of the same name.
_BAD_NAMES = frozenset({errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG})

log = logging.getLogger("pilot")


class NotRun(Exception):
    """The payload was not run, or not to its end, for a reason that is not its own.

    This node or its connection is not fit for work, or the pilot has to end: then `stopped_by`
    says by whom.
    """

    def __init__(self, reason: str, stopped_by: str = "") -> None:
        super().__init__(reason)
        self.stopped_by = stopped_by


class NotFetched(Exception):
    """An input cannot be had from its URL now, or not from here: no fault of this pilot."""


class _Killed(Exception):
    """Somebody asked to stop the attempt."""


@dataclass(frozen=True)
class JobInputs:
    """The inputs of one job. `left_s` are the seconds that its pilot still has.

    `moved` is told how many bytes have come from URLs.
    """

    job: Job
    directories: JobDirectories
    client: Client
    control: Control
    waker: Waker
    limits: Limits
    left_s: Callable[[], float]
    moved: Callable[[int], None]

    def fetch(self) -> execution.Outcome | None:
        """Have all inputs; the attempt's outcome where it ends by one of them.

        Raises NotFetched, NotRun, BadPath, OSError and NodeFault.
        """
        for each in self.job.inputs:
            target = sandbox.inside(self.directories.sandbox, each.path)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                if each.sources:
                    self._fetch_from_url(each)
                else:
                    self._download(each)
            except TransferRefused as error:
                reason = f"{_told(each)}: {error}"
                return execution.Outcome(None, None, reason=reason, failed_transfer=FETCH)
            except TransferBroken as error:
                raise NotFetched(f"{_told(each)}: {error}") from error
            except _Killed:
                return execution.killed_on_request(self.control, self.job.key)
            except (OSError, NodeFault) as error:
                if _are_names_bad(error):
                    raise sandbox.BadPath(f"input {each.path} cannot exist: {error}") from error
                raise
        return None

    def check_still_wanted(self) -> None:
        """Raise NotRun in a pilot that has to end: it gives its job back."""
        if self.control.is_terminated:
            raise NotRun("terminated", execution.stop_initiator(self.control))

    def _download(self, each: Input) -> None:
        target = sandbox.inside(self.directories.sandbox, each.path)
        problem = ""
        for _ in range(DOWNLOAD_TRIES):
            self.check_still_wanted()
            try:
                self.client.download(
                    f"{self.job.path}/inputs/{each.path}", target, sha256=each.sha256
                )
                return
            except HashMismatch as error:
                problem = str(error)
                log.warning("%s", problem)
            except Superseded:
                raise
            except Rejected as error:
                raise NotRun(f"input {each.path}: {error}") from error
        raise NotRun(problem)

    def _fetch_from_url(self, each: Input) -> None:
        rules = self.job.transfer_rules
        if rules is None:
            raise TransferRefused("the server told no limits")
        fetcher = Fetcher(rules, self._check, self._pause, self.moved)
        most_bytes, disk_mb = rules.file_bytes, self.limits.disk_mb
        if disk_mb is not None:
            there = sum(
                path.stat().st_size
                for path in self.directories.sandbox.rglob("*")
                if path.is_file()
            )
            most_bytes = max(0, min(most_bytes, int(disk_mb * _MEGABYTE) - there))
        target = sandbox.inside(self.directories.sandbox, each.path)
        log.info("%s is fetched", _told(each))
        # So that heartbeats tell what the job is at.
        self.moved(0)
        fetcher.fetch(each.sources, target, most_bytes=most_bytes)

    def _check(self) -> None:
        self.check_still_wanted()
        if self.control.is_killed(self.job.key):
            raise _Killed
        if self.control.is_locked_out:
            raise NotRun("the pilot lost its credential", execution.PILOT)
        if self.left_s() <= 0:
            raise NotRun("the pilot had no time left for it", execution.PILOT)

    def _pause(self, pause_s: float) -> None:
        until = self.control.clock() + pause_s
        while (left_s := until - self.control.clock()) > 0:
            self._check()
            self.waker.wait(left_s)
        self._check()


def _told(each: Input) -> str:
    return f"input {each.path} from {without_secrets(each.sources[0].url)}"


def _are_names_bad(error: Exception) -> bool:
    """Tell a job whose file names cannot all exist from a node without resources."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in _BAD_NAMES
