"""Inputs of a job laid into its directory: from the server, or by the pilot from their URLs."""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass

from ..files import sandbox
from ..files.job_directories import JobDirectories
from ..payload import execution
from ..resources.limits import Limits
from ..server.client import Client, HashMismatch, NodeFault, Rejected, Superseded
from ..transfers.fetching import Fetcher
from ..transfers.rules import TransferBroken, TransferRefused, without_secrets
from .job_description import Input, Job
from .job_transfers import FETCH, JobTransfers, Killed, NotRun

DOWNLOAD_TRIES = 3
_MEGABYTE = 2**20
# Errors for names that are too long, or of a file and a folder of the same name.
_BAD_NAMES = frozenset({errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG})

log = logging.getLogger("pilot")


class NotFetched(Exception):
    """An input cannot be had from its URL now, or not from here: no fault of this pilot."""


@dataclass(frozen=True)
class JobInputs:
    """The inputs of one job, and its transfers by which some come."""

    job: Job
    directories: JobDirectories
    client: Client
    limits: Limits
    transfers: JobTransfers

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
            except Killed:
                return execution.killed_on_request(self.transfers.control, self.job.key)
            except (OSError, NodeFault) as error:
                if _are_names_bad(error):
                    raise sandbox.BadPath(f"input {each.path} cannot exist: {error}") from error
                raise
        return None

    def _download(self, each: Input) -> None:
        target = sandbox.inside(self.directories.sandbox, each.path)
        problem = ""
        for _ in range(DOWNLOAD_TRIES):
            self.transfers.check_still_wanted()
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
        by = self.transfers
        fetcher = Fetcher(rules, by.check, by.pause, by.moved.add_fetched)
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
        by.moved.add_fetched(0)
        fetcher.fetch(each.sources, target, most_bytes=most_bytes, sha256=each.sha256)


def _told(each: Input) -> str:
    return f"input {each.path} from {without_secrets(each.sources[0].url)}"


def _are_names_bad(error: Exception) -> bool:
    """Tell a job whose file names cannot all exist from a node without resources."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in _BAD_NAMES
