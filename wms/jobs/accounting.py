"""Accounting of attempts: core-seconds (useful, failed, lost) of ended ones, added once each.

They go into the accounts of day, site, group, owner and label (`wms.accounting`), and of DAG or
cluster (`wms.jobs.uses`). Also the wall and CPU time of an attempt, and the words for its outcome
in a pilot's accounts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.core.database.statements import whole_numbers
from wms.jobs.account_names import AccountNames, names_of
from wms.jobs.models import Attempt
from wms.jobs.sql import NOTE_ENDS, TAKE_ENDED_ATTEMPTS
from wms.jobs.uses import add_topic_uses

_AT_ONCE = 2000
#: The database and the servers may have clocks that differ by so much.
_CLOCKS_DIFFER_S = 60.0
_OUTCOME = Attempt.Outcome
#: Outcomes of attempts in the words of a pilot's accounts.
PILOT_OUTCOMES = {
    _OUTCOME.DONE.value: "ok",
    _OUTCOME.FAILED.value: "error",
    _OUTCOME.LOST.value: "killed",
    _OUTCOME.KILLED.value: "killed",
    _OUTCOME.NOT_RUN.value: "killed",
}


def wall_time_s(attempt: Attempt) -> float:
    """Wall time of an attempt: by its report, else its latest heartbeat, else its times.

    Never longer than from its match to its end, whatever its pilot reports.
    """
    reported_s = attempt.wall_s
    if reported_s is None:
        reported_s = _reported_s(attempt.usage, "wall_s")
    if reported_s is not None:
        return (
            reported_s
            if attempt.ended_at is None
            else min(reported_s, _seen_s(attempt, attempt.ended_at))
        )
    if attempt.started_at is None or attempt.ended_at is None:
        return 0.0
    return max(0.0, (attempt.ended_at - attempt.started_at).total_seconds())


def _seen_s(attempt: Attempt, ended_at: datetime) -> float:
    return max(0.0, (ended_at - attempt.matched_at).total_seconds()) + _CLOCKS_DIFFER_S


def cpu_time_s(attempt: Attempt) -> float:
    """CPU time of an attempt by its report, else its latest heartbeat; zero if none was told."""
    reported_s = attempt.cpu_s
    if reported_s is None:
        reported_s = _reported_s(attempt.usage, "cpu_s")
    return max(0.0, reported_s or 0.0)


def _reported_s(usage: Mapping[str, Any] | None, name: str) -> float | None:
    seconds = (usage or {}).get(name)
    return None if seconds is None else float(seconds)


def core_seconds_of(attempt: Attempt) -> CoreSeconds:
    """Core-seconds of an ended attempt, as useful, failed or lost."""
    core_s = attempt.cores * wall_time_s(attempt)
    if attempt.outcome == _OUTCOME.DONE:
        return CoreSeconds(useful_s=core_s)
    if attempt.outcome == _OUTCOME.FAILED:
        return CoreSeconds(failed_s=core_s)
    return CoreSeconds(lost_s=core_s)


def note_ends(job_ids: Iterable[int]) -> None:
    """Note that the open attempts of these jobs, which the caller has locked, end right now."""
    with connection.cursor() as cursor:
        cursor.execute(NOTE_ENDS, [whole_numbers(job_ids)])


@transaction.atomic
def account_attempts() -> int:
    """Add a batch of ended attempts to the accounts; the number of attempts.

    Their entries go with it: whoever does it at the same time passes over what is taken here, and
    nothing is added twice.
    """
    with connection.cursor() as cursor:
        cursor.execute(TAKE_ENDED_ATTEMPTS, [_AT_ONCE])
        ended = [attempt_id for (attempt_id,) in cursor.fetchall()]
    attempts = [each for each in _to_account(ended) if each.ended_at is not None]
    names = names_of((each.job.topic, each.job.topic_key) for each in attempts)
    add_topic_uses(
        (each.job.topic, each.job.topic_key, each.outcome, core_seconds_of(each))
        for each in attempts
    )
    add_uses(
        _use(each, names.get((each.job.topic, each.job.topic_key), AccountNames()))
        for each in attempts
    )
    return len(ended)


def _to_account(ids: Collection[int]) -> QuerySet[Attempt]:
    columns = ("job__owner__username", "job__owner_id", "cores", "outcome", "wall_s", "cpu_s",
               "usage", "matched_at", "started_at", "ended_at", "site_name", "job__topic",
               "job__topic_key")  # fmt: skip
    found = Attempt.objects.filter(pk__in=ids).order_by("pk")
    return found.select_related("job__owner").only(*columns)


def _use(attempt: Attempt, names: AccountNames) -> Use:
    ended_at: datetime = attempt.ended_at or attempt.matched_at
    is_failed = attempt.outcome == _OUTCOME.FAILED
    return Use(
        day=ended_at.astimezone(UTC).date(),
        site_name=attempt.site_name,
        owner_name=attempt.job.owner.get_username(),
        group_name=names.group_name,
        labels=names.labels,
        spent=core_seconds_of(attempt),
        cpu_s=cpu_time_s(attempt),
        wall_s=wall_time_s(attempt),
        attempts=1,
        failed_attempts=int(is_failed),
        lost_attempts=int(not is_failed and attempt.outcome != _OUTCOME.DONE),
    )
