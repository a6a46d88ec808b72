"""Concurrency limits of jobs: what running ones use of each, and whether another may start.

Asked and locked by a claim; also which limits of waiting jobs are reached, with reasons. The same
names and maxima count for DAGs, whose use is counted apart. Jobs without such limits cost a claim
nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from django.db import connection

from matching.negotiation.fairshare import limit_of
from matching.task_queues.limit_words import name_and_amount
from matching.task_queues.needs import Needs
from matching.task_queues.resources import JobKind
from wms.accounting.selectors import limits as configured_limits
from wms.jobs.sql import LIMITS_OF_WAITING_JOBS, LOCK_FREE_NAME, LOCK_NAME, USE_OF_LIMITS


@dataclass(slots=True)
class ConcurrencyLimits:
    """Concurrency limits for one claim. Lives inside the claim's transaction."""

    _held: set[str] = field(default_factory=set)

    def refuses(self, needs: Needs) -> JobKind | None:
        """The kind of jobs that use a limit of which so much is not left; None lets them pass.

        Exact: the names stay locked until the end of the transaction. A claim that holds some
        already waits for no others: what somebody else uses now counts as reached.
        """
        words = _limited(needs.limits)
        names = sorted({name_and_amount(word)[0] for word in words} - self._held)
        may_wait = not self._held
        for name in names:
            if not _lock(name, may_wait=may_wait):
                return JobKind(limit=next(w for w in words if name_and_amount(w)[0] == name))
            self._held.add(name)
        return next((kind for kind, _ in _reached(words)), None)


def amounts_of(needs: Needs) -> dict[str, float] | None:
    """What a job uses of each limit; None if it names none."""
    return dict(map(name_and_amount, needs.limits)) or None


def reached_by_waiting_jobs() -> list[tuple[JobKind, str]]:
    """Kinds of waiting jobs that use a limit of which so much is not left, with the reasons."""
    with connection.cursor() as cursor:
        cursor.execute(LIMITS_OF_WAITING_JOBS)
        words = [row[0] for row in cursor.fetchall()]
    return _reached(_limited(words)) if words else []


def _limited(words: Collection[str]) -> dict[str, float]:
    """The maxima of those that have one, by word."""
    if not words:
        return {}
    configured = configured_limits()
    maxima = {word: limit_of(name_and_amount(word)[0], configured)[1] for word in words}
    return {word: maximum for word, maximum in maxima.items() if maximum is not None}


def _reached(maxima: dict[str, float]) -> list[tuple[JobKind, str]]:
    names = {name_and_amount(word)[0] for word in maxima}
    if not names:
        return []
    with connection.cursor() as cursor:
        cursor.execute(USE_OF_LIMITS, [sorted(names)])
        used: dict[str, float] = dict(cursor.fetchall())
    reached = []
    for word, maximum in maxima.items():
        name, amount = name_and_amount(word)
        if used.get(name, 0.0) + amount > maximum:
            told = f"{used.get(name, 0.0):g} of {maximum:g} of the limit {name} are used"
            reached.append((JobKind(limit=word), f"{told}, and {amount:g} more are needed"))
    return reached


def _lock(name: str, *, may_wait: bool) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(LOCK_NAME if may_wait else LOCK_FREE_NAME, [name])
        row = cursor.fetchone()
    return bool(may_wait or (row and row[0]))
