"""Lists and details of TaskQueues, in a time that does not depend on the number of waiting jobs.

Everything is counted from tallies, never from the waiting jobs. The age of a TaskQueue is that of
its oldest job, found by one look into an index for each job priority that occurs in it. Also the
orders and page borders of these lists, and how a TaskQueue's priority comes about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from django.db.models import Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, JSONObject
from django.utils.dateparse import parse_datetime

from matching.task_queues.needs import Needs
from matching.task_queues.weighted_draws import job_weight
from wms.accounting.models import AccountingGroup
from wms.core.errors import NotFound
from wms.core.models import User
from wms.taskqueues import selectors
from wms.taskqueues.models import Tally, TaskQueue, TaskQueuePolicy, Ticket, WaitingJob
from wms.taskqueues.selectors import needs_of, with_waiting_counts


def _by_age(task_queue: OuterRef | int, priority: OuterRef | int) -> QuerySet[WaitingJob]:
    """The waiting jobs of this priority in this TaskQueue, the oldest first."""
    # A range and no equation: then the index alone has them in this order. Else the database may
    # go by the primary key, which looks quick but passes by all older jobs of other TaskQueues.
    rows = WaitingJob.objects.filter(
        task_queue=task_queue, priority__gte=priority, priority__lte=priority
    )
    return rows.order_by("priority", "job_id")


_OLDEST = _by_age(OuterRef("task_queue_id"), OuterRef("priority"))
_TICKET = Ticket.objects.filter(task_queue=OuterRef("task_queue_id"))


class Order(StrEnum):
    """Orders of a list of TaskQueues; with -, from the largest or latest on."""

    WAITING = "-waiting"
    FEWEST = "waiting"
    OLDEST = "oldest"
    YOUNGEST = "-oldest"
    PRIORITY = "-priority"
    LOWEST = "priority"

    @property
    def is_falling(self) -> bool:
        """True from the largest or latest on."""
        return self.startswith("-")

    @property
    def by(self) -> str:
        """Column of the order."""
        return self.removeprefix("-")


_KEYS = {
    "waiting": Sum("jobs"),
    "oldest": Min(Subquery(_OLDEST.values("enqueued_at")[:1])),
    "priority": Coalesce(Max(Subquery(_TICKET.values("priority")[:1])), 0.0),
}


@dataclass(frozen=True, slots=True)
class Border:
    """Cursor of a page in an ordered list; its text can stand in an address."""

    key: Any
    task_queue_id: int

    @classmethod
    def parse(cls, text: str, order: Order) -> Self | None:
        """The border that `str` made, for the same order; None for any other text."""
        key, _, number = text.rpartition("_")
        try:
            found = _PARSERS[order.by](key)
        except ValueError:
            return None
        is_number = number.isascii() and number.isdigit() and len(number) < 19
        return cls(found, int(number)) if found is not None and is_number else None

    def __str__(self) -> str:
        key = self.key.isoformat() if isinstance(self.key, datetime) else repr(self.key)
        return f"{key}_{self.task_queue_id}"


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _moment(text: str) -> datetime | None:
    found = parse_datetime(text)
    # In another zone the first and last times that there are would be out of range.
    return found if found is not None and found.utcoffset() == timedelta() else None


_PARSERS: dict[str, Callable[[str], Any]] = {
    "waiting": _count,
    "oldest": _moment,
    "priority": float,
}


@dataclass(frozen=True, slots=True)
class TaskQueueLine:
    """A TaskQueue of a list. `share` is the part of its priority in the sum of all, up to 1.

    `oldest_at` tells since when the oldest of its jobs waits.
    """

    id: int
    needs: Needs
    waiting_jobs: int
    oldest_at: datetime | None
    priority: float
    share: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TaskQueuePage:
    """Some TaskQueues of an ordered list, and where the next ones begin, if there are any."""

    lines: Sequence[TaskQueueLine]
    following: Border | None


def visible_task_queues(user: User) -> QuerySet[TaskQueue]:
    """The TaskQueues that the user may see, with owners and priorities."""
    return selectors.visible_task_queues(user).select_related("owner", "ticket")


def task_queue_page(
    chosen: QuerySet[TaskQueue], *, order: Order, after: Border | None, limit: int
) -> TaskQueuePage:
    """The first TaskQueues behind a border of those chosen that have waiting jobs. Two queries."""
    waiting = _with_jobs(chosen).annotate(key=_KEYS[order.by])
    if after is not None:
        waiting = waiting.filter(_behind(after, order))
    falling = order.is_falling
    key, pk = F("key"), F("task_queue_id")
    found = waiting.order_by(
        key.desc(nulls_last=True) if falling else key.asc(nulls_last=True),
        pk.desc() if falling else pk.asc(),
    ).values_list("task_queue_id", "key")[: limit + 1]
    borders = [Border(key, pk) for pk, key in found]
    lines = _lines([border.task_queue_id for border in borders[:limit]])
    return TaskQueuePage(lines, borders[limit - 1] if len(borders) > limit else None)


def _with_jobs(chosen: QuerySet[TaskQueue]) -> QuerySet[Any, Any]:
    """The ids of those chosen that have waiting jobs, with their number."""
    rows = Tally.objects.filter(task_queue_id__in=chosen.order_by().values("pk"))
    return rows.values("task_queue_id").annotate(waiting=Sum("jobs")).filter(waiting__gt=0)


def _behind(border: Border, order: Order) -> Q:
    side = "lt" if order.is_falling else "gt"
    beside = Q(key=border.key) & Q(**{f"task_queue_id__{side}": border.task_queue_id})
    return Q(**{f"key__{side}": border.key}) | beside


def _lines(ids: Sequence[int]) -> list[TaskQueueLine]:
    """The TaskQueues with these ids, in this order; what is gone by now is left out."""
    found = _with_whole(with_counts(TaskQueue.objects.select_related("ticket"))).in_bulk(list(ids))
    lines = (found[pk] for pk in ids if pk in found)
    return [_line(row, (row.waiting, row.oldest_at), row.whole) for row in lines]


def _with_whole(rows: QuerySet[Any]) -> QuerySet[Any]:
    """TaskQueues annotated with the sum of all priorities as `whole`."""
    every = Ticket.objects.order_by().annotate(every=Value(1)).values("every")
    whole = Coalesce(Subquery(every.values(whole=Sum("priority"))), 0.0)
    found: QuerySet[Any] = rows.annotate(whole=whole)
    return found


def _line(row: TaskQueue, waiting: tuple[int, datetime | None], whole: float) -> TaskQueueLine:
    ticket = getattr(row, "ticket", None)
    priority = ticket.priority if ticket else 0.0
    return TaskQueueLine(
        id=row.pk,
        needs=needs_of(row),
        waiting_jobs=waiting[0],
        oldest_at=waiting[1],
        priority=priority,
        share=priority / whole if whole else 0.0,
        created_at=row.created_at,
    )


def with_counts(rows: QuerySet[TaskQueue]) -> QuerySet[Any]:
    """TaskQueues with `waiting` and `oldest_at`, looked up one by one: for the rows of a page."""
    tallies = Tally.objects.filter(task_queue_id=OuterRef("pk")).order_by().values("task_queue_id")
    oldest = tallies.annotate(oldest=_KEYS["oldest"]).values("oldest")
    found: QuerySet[Any] = with_waiting_counts(rows).annotate(oldest_at=Subquery(oldest))
    return found


def counts_by_segment(chosen: QuerySet[TaskQueue]) -> dict[int, int]:
    """Number of chosen TaskQueues with waiting jobs, by CPU segment in seconds."""
    full = TaskQueue.objects.filter(pk__in=_with_jobs(chosen).values("task_queue_id"))
    rows = full.order_by("cpu_time_s").values_list("cpu_time_s").annotate(Count("pk"))
    return dict(rows)


@dataclass(frozen=True, slots=True)
class JobPriority:
    """The waiting jobs of one priority; `part` of the weight of all that wait beside them."""

    priority: int
    jobs: int
    weight: float
    part: float


@dataclass(frozen=True, slots=True)
class OldJob:
    """A job that waits."""

    job_id: int
    priority: int
    enqueued_at: datetime


@dataclass(frozen=True, slots=True)
class PriorityOrigin:
    """Derivation of a priority: the group's share, divided among its users, then by weights.

    `part` is what each of them has without correction by use. The sums are of priorities: of the
    TaskQueues that share that part (`pool`), of the group's, and of all.
    """

    group_share: float
    has_job_sharing: bool
    users: int
    part: float
    pool_task_queues: int
    pool_priority: float
    group_priority: float
    whole: float
    uses_feedback: bool


@dataclass(frozen=True, slots=True)
class TaskQueueDetail:
    """Everything about one TaskQueue."""

    line: TaskQueueLine
    origin: PriorityOrigin
    priorities: Sequence[JobPriority]
    oldest: Sequence[OldJob]


def find_task_queue_detail(user: User, task_queue_id: int, *, oldest: int = 10) -> TaskQueueDetail:
    """One TaskQueue, with so many of its oldest jobs. Four queries. Raises NotFound."""
    rows = _with_shares(_with_whole(with_counts(visible_task_queues(user))))
    row = rows.filter(pk=task_queue_id).first()
    if row is None:
        raise NotFound(f"There is no TaskQueue {task_queue_id}: it may be empty by now.")
    priorities = _job_priorities(row.pk)
    return TaskQueueDetail(
        line=_line(row, (row.waiting, row.oldest_at), row.whole),
        origin=_origin(row),
        priorities=priorities,
        oldest=_oldest_jobs(row.pk, [line.priority for line in priorities], oldest),
    )


def _job_priorities(task_queue_id: int) -> list[JobPriority]:
    rows = Tally.objects.filter(task_queue_id=task_queue_id).values("priority")
    rows = rows.annotate(waiting=Sum("jobs")).filter(waiting__gt=0).order_by("-priority")
    counts = dict(rows.values_list("priority", "waiting"))
    weights = {priority: job_weight(priority) for priority in counts}
    whole = sum(weights[priority] * jobs for priority, jobs in counts.items())
    return [
        JobPriority(priority, jobs, weights[priority], weights[priority] * jobs / whole)
        for priority, jobs in counts.items()
    ]


def _oldest_jobs(task_queue_id: int, priorities: Sequence[int], limit: int) -> list[OldJob]:
    """The oldest jobs, from the oldest of each priority: so an index has them in order."""
    of_each = [
        _by_age(task_queue_id, priority).values_list("job_id", "priority", "enqueued_at")[:limit]
        for priority in priorities
    ]
    if not of_each:
        return []
    found = sorted(of_each[0].union(*of_each[1:], all=True))
    return [OldJob(*values) for values in found[:limit]]


def _with_shares(rows: QuerySet[Any]) -> QuerySet[Any]:
    """With the policy in force as `policy`, and what `group` has, each None if there is no such."""
    policy = TaskQueuePolicy.objects.filter(pk=1)
    told = JSONObject(default_share="default_share", uses_feedback="uses_feedback")
    group = AccountingGroup.objects.filter(name=OuterRef("owner_group"))
    shares = JSONObject(share="share", has_job_sharing="has_job_sharing")
    found: QuerySet[Any] = rows.annotate(
        policy=Subquery(policy.values(told=told)), group=Subquery(group.values(told=shares))
    )
    return found


def _origin(row: Any) -> PriorityOrigin:
    policy, group = TaskQueuePolicy(**(row.policy or {})), row.group
    share = group["share"] if group else policy.default_share
    is_shared = bool(group) and group["has_job_sharing"]
    in_group = Q(owner_group=row.owner_group)
    pool = in_group if is_shared else Q(owner=row.owner)
    sums = TaskQueue.objects.filter(in_group).aggregate(
        users=Count("owner", distinct=True),
        pool_task_queues=Count("pk", filter=pool),
        pool_priority=Sum("ticket__priority", filter=pool, default=0.0),
        group_priority=Sum("ticket__priority", default=0.0),
    )
    return PriorityOrigin(
        group_share=share,
        has_job_sharing=is_shared,
        part=share if is_shared else share / max(1, sums["users"]),
        whole=row.whole,
        uses_feedback=policy.uses_feedback,
        **sums,
    )
