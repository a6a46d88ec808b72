"""Core-seconds and attempts by DAG or cluster: added as attempts end, and summed for many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from django.db.models import Q, Sum

from wms.accounting.core_seconds import CoreSeconds
from wms.jobs.models import Attempt, TopicUse
from wms.jobs.sql import ADD_TOPIC_USES

_SECONDS = ("useful_s", "failed_s", "lost_s")
_COUNTS = ("done_count", "failed_count", "lost_count")
_PLACE = {Attempt.Outcome.DONE.value: 0, Attempt.Outcome.FAILED.value: 1}
_LOST = 2


@dataclass(frozen=True, slots=True)
class UseOfJobs:
    """Core-seconds of jobs, and their attempts that have ended, by outcome."""

    spent: CoreSeconds = CoreSeconds()  # noqa: RUF009 - it never changes
    done: int = 0
    failed: int = 0
    lost: int = 0

    @property
    def core_hours(self) -> float:
        """Core-hours, whatever became of the attempts."""
        return self.spent.total_s / 3600


def add_topic_uses(ended: Iterable[tuple[str, int, str, CoreSeconds]]) -> None:
    """Add attempts by topic, key, outcome and core-seconds, in the caller's transaction.

    Those of jobs without a topic, which belong to no DAG and no cluster, are left out.
    """
    seconds: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0] * 3)
    counts: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0] * 3)
    for topic, key, outcome, spent in ended:
        if not topic:
            continue
        for place, name in enumerate(_SECONDS):
            seconds[topic, key][place] += getattr(spent, name)
        counts[topic, key][_PLACE.get(outcome, _LOST)] += 1
    if not counts:
        return
    keys = [list(column) for column in zip(*counts, strict=True)]
    of_seconds = [list(column) for column in zip(*(seconds[key] for key in counts), strict=True)]
    of_counts = [list(column) for column in zip(*counts.values(), strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(ADD_TOPIC_USES, [*keys, *of_seconds, *of_counts])


def use_of(condition: Q) -> UseOfJobs:
    """Sum over the topics and keys of the condition. One query."""
    sums = TopicUse.objects.filter(condition).aggregate(
        **{name: Sum(name, default=0) for name in (*_SECONDS, *_COUNTS)}
    )
    return UseOfJobs(
        CoreSeconds(**{name: float(sums[name]) for name in _SECONDS}),
        *(int(sums[name]) for name in _COUNTS),
    )
