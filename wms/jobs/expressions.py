"""Expressions of jobs, such as `periodic_hold` or `on_exit_remove`, evaluated in the job's ad.

Gives their verdicts, and the texts and numbers of reasons and subcodes of holds. The ad's
attributes have HTCondor's names. Of verdicts only `True` or `False` counts; a value that is
undefined or an error decides nothing. Also `retry_until` and `success_exit_code`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression
from wms.jobs.attempts.hold_codes import SUBCODE, hold_code
from wms.jobs.models import Attempt, Job
from wms.jobs.states import JobCause, JobState

#: HTCondor's numbers of states; a job that waits with a pilot is idle there.
_JOB_STATUS = {
    JobState.RECEIVED.value: 1,
    JobState.WAITING.value: 1,
    JobState.MATCHED.value: 1,
    JobState.RUNNING.value: 2,
    JobState.STALLED.value: 2,
    JobState.DONE.value: 4,
    JobState.FAILED.value: 4,
    JobState.KILLED.value: 3,
    JobState.HELD.value: 5,
}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Limit of an expression's cost, with the attributes that it refers to, in steps of `ad_cost`.
_MOST_STEPS = 8 * 1024
_VERDICT = "Verdict"
#: A payload is run again by its expressions at most this often.
MOST_PAYLOAD_FAILURES = 1000
_OF_RETRIES = frozenset({"retry_until", "success_exit_code"})
_LONGEST_CODE = 18
_LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True)
class PayloadExit:
    """Exit code or signal of a payload, for its expressions."""

    exit_code: int | None = None
    signal: int | None = None

    def values(self) -> dict[str, Any]:
        """The attributes of the job's ad for this exit."""
        values: dict[str, Any] = {"ExitBySignal": self.signal is not None}
        if self.exit_code is not None:
            values["ExitCode"] = self.exit_code
        if self.signal is not None:
            values["ExitSignal"] = self.signal
        return values


@dataclass(slots=True)
class JobAd:
    """The ad of one job, made when the first expression is evaluated."""

    job: Job
    attempt: Attempt | None
    now: datetime
    ending: PayloadExit | None = None
    _ads: dict[str, classad2.ClassAd] = field(default_factory=dict)

    def is_true(self, name: str) -> bool:
        """Whether the job's expression of this name is true."""
        text = (self.job.periodic or {}).get(name)
        return text is not None and self._value(text) is True

    def is_false(self, name: str) -> bool:
        """Whether the job's expression of this name is false, and not only undefined."""
        text = (self.job.periodic or {}).get(name)
        return text is not None and self._value(text) is False

    def text(self, name: str) -> str:
        """The text that the job's expression of this name gives; empty if it gives none."""
        text = (self.job.periodic or {}).get(name)
        value = None if text is None else self._value(text)
        return " ".join(value.split())[:_LONGEST_REASON] if isinstance(value, str) else ""

    def whole_number(self, name: str) -> int:
        """The whole number that the job's expression of this name gives; 0 if it gives none."""
        text = (self.job.periodic or {}).get(name)
        value = None if text is None else self._value(text)
        is_number = isinstance(value, int) and not isinstance(value, bool | classad2.Value)
        return int(value) if is_number and abs(value) < 2**31 else 0  # type: ignore[arg-type]

    def _value(self, text: str) -> Any:
        attributes = _named_in(text, self.job.attributes)
        try:
            return evaluate(_checked(text, attributes), self._ad(attributes))
        except AdError:
            return classad2.Value.Error

    def _ad(self, attributes: tuple[tuple[str, Any], ...]) -> classad2.ClassAd:
        key = repr(attributes)
        if key not in self._ads:
            expressions = {name: text for name, text in attributes if isinstance(text, str)}
            plain = {name: value for name, value in attributes if name not in expressions}
            self._ads[key] = build_ad(expressions, {**plain, **self._values()})
        return self._ads[key]

    def _values(self) -> dict[str, Any]:
        job, needs = self.job, self.job.needs
        values: dict[str, Any] = {
            "ClusterId": job.cluster_id,
            "ProcId": job.process,
            "Owner": needs["owner"],
            "Cmd": job.executable,
            "JobStatus": _JOB_STATUS[job.state],
            "EnteredCurrentStatus": int(job.state_since.timestamp()),
            "CurrentTime": int(self.now.timestamp()),
            "QDate": int(job.created_at.timestamp()),
            "NumJobStarts": job.attempt_number,
            "NumJobCompletions": job.payload_failures + (self.ending is not None),
            "NumHolds": job.hold_count,
            "JobPrio": job.priority,
            "MaxRetries": job.max_retries,
            "RequestCpus": needs.get("cores", 1),
            "RequestMemory": needs.get("memory_mb", 0),
            "RequestGPUs": needs.get("gpus", 0),
            "RequestDisk": needs.get("disk_mb", 0) * 1024,
        }
        if job.state == JobState.HELD:
            values["HoldReason"] = job.state_reason
            values["HoldReasonCode"] = hold_code(job.state_cause)
            # Where something else holds it, what is kept is of an earlier hold.
            is_own = job.state_cause == JobCause.EXPRESSION
            values[SUBCODE] = job.attributes.get(SUBCODE, 0) if is_own else 0
        if self.attempt is not None:
            values |= _of_attempt(self.attempt)
        return values | (self.ending.values() if self.ending is not None else {})


def _of_attempt(attempt: Attempt) -> dict[str, Any]:
    values: dict[str, Any] = {"LastRemoteHost": attempt.host, "MATCH_Site": attempt.site_name}
    if attempt.started_at is not None:
        started = int(attempt.started_at.timestamp())
        values |= {"JobStartDate": started, "JobCurrentStartDate": started}
    if attempt.max_rss_mb is not None:
        values |= {"MemoryUsage": round(attempt.max_rss_mb)}
    return values


def has_retries(job: Job) -> bool:
    """Whether a command for retries is given: then `on_exit_remove` can but end them."""
    return bool(job.max_retries or not _OF_RETRIES.isdisjoint(job.periodic or {}))


def retries_end(job: Job, ad: JobAd, exit_code: int | None) -> bool:
    """True when `retry_until` ends the retries of a failed payload."""
    until = (job.periodic or {}).get("retry_until", "")
    if re.fullmatch(r"-?[0-9]+", until):
        # Python reads no number of thousands of digits, and no payload ends with it.
        return len(until) <= _LONGEST_CODE and exit_code == int(until)
    return ad.is_true("retry_until")


def success_code(job: Job) -> int:
    """The exit code of a success, by default 0."""
    return int((job.periodic or {}).get("success_exit_code", 0))


def _named_in(text: str, attributes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The job's own attributes that an expression refers to, directly or by others."""
    by_name = {name.lower(): name for name in attributes}
    found: dict[str, Any] = {}
    texts = [text]
    while texts:
        for word in _WORD.findall(texts.pop()):
            name = by_name.get(word.lower())
            if name is None or name in found:
                continue
            found[name] = attributes[name]
            if isinstance(attributes[name], str):
                texts.append(attributes[name])
    return tuple(sorted(found.items()))


@lru_cache(maxsize=1024)
def _checked(text: str, attributes: tuple[tuple[str, Any], ...]) -> classad2.ExprTree:
    """The expression, if it costs little with these attributes. Raises AdError."""
    expressions = {name: value for name, value in attributes if isinstance(value, str)}
    check_cost({**expressions, _VERDICT: text}, most_steps=_MOST_STEPS)
    return parse_expression(text)
