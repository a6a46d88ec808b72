"""Claims of the pilot: free resources offered to the server, jobs in its answers, pauses.

Also the claim for what the end of a job frees, which goes with the job's report.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import node
from ..control import Control
from ..jobs.job_description import Job
from ..jobs.running_jobs import RunningJobs
from ..server.client import Client, parsing
from ..server.report_spool import ReportSpool
from .pilot_lifetime import PilotLifetime

#: Longest time that the server holds the claim of a pilot with nothing at hand.
LONGEST_WAIT_S = 10.0
#: Rest after a claim in vain, before which the server refuses at once: a part of the poll period,
#: and its longest.
_REST_OF_POLL = 0.5
_LONGEST_REST_S = 1.0
#: An answer that comes sooner was not held, whatever it says.
_SHORTEST_WAIT_S = 1.0
_MOST_UNREPORTED = 1000


@dataclass(frozen=True)
class ClaimResult:
    """Result of a claim: the job, if there was one.

    `is_of_part`: it was for a part of the slot. `waited_s`: how long the server held it in vain.
    `may_claim_at_once`: the next claim needs no pause, since the server holds it.
    """

    job: Job | None
    is_of_part: bool = False
    waited_s: float = 0.0
    may_claim_at_once: bool = False


class Claimer:
    """Makes the claims of one pilot. Claims attached to a report are sent by jobs' threads."""

    def __init__(
        self,
        work_dir: Path,
        slot: node.Share,
        client: Client,
        control: Control,
        spool: ReportSpool,
        *,
        lifetime: PilotLifetime,
        running_jobs: RunningJobs,
        poll_s: float,
    ) -> None:
        self._work_dir = work_dir
        self._slot = slot
        self._client = client
        self._control = control
        self._spool = spool
        self._lifetime = lifetime
        self._running_jobs = running_jobs
        self._poll_s = poll_s
        # After a fruitless claim; the threads of jobs read it.
        self._asks_from = control.clock()
        self._are_held = False

    def rest_s(self) -> float:
        """Seconds until the next claim may be sent after one in vain; below zero if now."""
        is_held = self._are_held and self._may_wait()
        return 0.0 if is_held else self._asks_from - self._control.clock()

    def claim(self, longest_wait_s: float) -> ClaimResult:
        """Claim a job; a claim that went with a report is answered already, or asked again.

        With nothing at hand the server may hold the claim, for `longest_wait_s` at the most.
        """
        asked = self._running_jobs.next_attached_claim()
        # Under its own key, but the report that it went with may wait since.
        body = dict(asked.claim) if asked else self._body(self._running_jobs.free())
        body.update(self._unreported())
        is_of_part = body["cores"] < self._slot.cores
        if asked is not None and asked.answer is not None:
            return self._read(asked.answer, is_of_part=is_of_part)
        if not self._may_wait():
            return self._read(self._client.call("claim", body), is_of_part=is_of_part)
        return self._wait_for_job(body, min(LONGEST_WAIT_S, longest_wait_s))

    def next_claim(self, job: Job) -> dict[str, Any] | None:
        """Claim for what becomes free with the end of a job; called by the job's thread."""
        running_jobs = self._running_jobs
        if (
            self._control.is_ending
            or not self._lifetime.accepts_jobs()
            or running_jobs.needs_reservation
        ):
            return None
        if running_jobs.fault or self._spool.fault:
            return None
        if self._control.clock() < self._asks_from:
            return None
        return {**self._body(running_jobs.freed_by(job)), **self._unreported()}

    def _may_wait(self) -> bool:
        """Whether the server may hold the claim: no job runs here, and no account is reserved."""
        running_jobs = self._running_jobs
        return (
            running_jobs.is_empty()
            and not running_jobs.needs_reservation
            and not self._spool.attempts()
        )

    def _wait_for_job(self, body: dict[str, Any], wait_s: float) -> ClaimResult:
        before = self._control.clock()
        answer = self._client.long_poll("claim", {**body, "wait_s": wait_s})
        if answer is None:
            return ClaimResult(None)
        waited_s = min(wait_s, self._control.clock() - before)
        shortest_s = min(_SHORTEST_WAIT_S, self._poll_s)
        is_held = answer.get("is_held") is True and waited_s >= shortest_s
        # Where there was a job it is not told whether the next claim in vain is held.
        self._are_held = is_held or ("is_held" in answer and answer.get("job") is not None)
        return self._read(answer, waited_s=waited_s if is_held else 0.0)

    def _read(
        self, answer: dict[str, Any], *, is_of_part: bool = False, waited_s: float = 0.0
    ) -> ClaimResult:
        with parsing("claim"):
            job = None if answer["job"] is None else Job.from_json(answer["job"])
        if job is None:
            rest_s = min(_LONGEST_REST_S, self._poll_s * _REST_OF_POLL)
            self._asks_from = self._control.clock() + rest_s
        may_claim_at_once = self._are_held and self._may_wait()
        return ClaimResult(
            job, is_of_part=is_of_part, waited_s=waited_s, may_claim_at_once=may_claim_at_once
        )

    def _body(self, free: node.Share) -> dict[str, Any]:
        return {
            # The same in every repetition: so it gets one job, however many answers are lost.
            "claim": secrets.token_hex(16),
            "cpu_time_s": max(0, int(self._lifetime.left_s())),
            "cores": free.cores,
            "memory_mb": free.memory_mb,
            "gpus": free.gpus,
            "disk_mb": min(free.disk_mb, node.free_disk_mb(self._work_dir)),
            "platform": node.platform_name(),
            "tags": self._running_jobs.tags(),
            "required_tags": [],
            **self._running_jobs.refused(),
        }

    def _unreported(self) -> dict[str, Any]:
        """Attempts that are over here and not yet reported; the server reads no more of them."""
        waiting = self._spool.attempts()[:_MOST_UNREPORTED]
        named = [{"job": job, "attempt": number} for job, number in waiting]
        return {"unreported": named} if named else {}
