"""Snapshot of pilots, free capacity and disk by entry, and of pilot limits: input of the director.

Also the pilots that limits shared by many queues leave an entry now, for the submitter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import BigIntegerField, Count, Max, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from matching.plurals import counted, pilots_are
from matching.pressure.capacity import ResourceVector
from matching.pressure.plan_values import UNBOUNDED, Bounds, Scopes
from wms.accounting.models import AccountingGroup, Frontend
from wms.pilots.models import Pilot
from wms.pilots.pressure.sql import COUNT_FREE_CAPACITY
from wms.pilots.pressure_models import PilotLimit
from wms.pilots.states import ALIVE, PilotState
from wms.sites.frontends.entries import EntryKey
from wms.sites.models import Queue, Site

#: Starts in this time make the start rate of a queue.
_RATE_WINDOW = timedelta(minutes=30)
#: The disk of pilots that have ended is remembered so long; then one pilot may look again.
_DISK_WINDOW = timedelta(hours=6)


#: Ids of a private pilot's owner and group.
Owner = tuple[int, int | None]


@dataclass(slots=True)
class QueuePilots:
    """Pilots of one frontend in one queue that have not finally ended.

    `queued` have not called in, of them `held` are held; `running` have, of them `busy` have a job.
    `free` counts what is free in running pilots that take jobs. Where each pilot is private to
    somebody else, `queued_of` and `free_of` count them by the ids of owner and group instead.
    """

    queued: int = 0
    held: int = 0
    running: int = 0
    busy: int = 0
    started: int = 0
    free: Counter[ResourceVector] = field(default_factory=Counter)
    queued_of: Counter[Owner] = field(default_factory=Counter)
    free_of: dict[Owner, Counter[ResourceVector]] = field(default_factory=dict)


def pilots_by_entry(now: datetime, *, times_s: Sequence[int]) -> dict[EntryKey, QueuePilots]:
    """Pilots of every entry that has any. `times_s` are those of jobs, in ascending order."""
    counts: dict[EntryKey, QueuePilots] = defaultdict(QueuePilots)
    # width_bucket refuses an empty list; no job needs a time of 0.
    parameters: dict[str, datetime | list[float]] = {
        "now": now,
        "lately": now - _RATE_WINDOW,
        "times_s": [float(each) for each in times_s] or [0.0],
    }
    with connection.cursor() as cursor:
        cursor.execute(COUNT_FREE_CAPACITY, parameters)
        for (
            queue_id,
            frontend_id,
            waits,
            is_held,
            is_busy,
            takes,
            *room,
            owner,
            group,
            n,
            new,
        ) in cursor:
            count, pilots = counts[queue_id, frontend_id], n
            count.started += new
            if waits:
                count.queued += pilots
                count.held += pilots if is_held else 0
                if owner is not None:
                    count.queued_of[owner, group] += pilots
                continue
            count.running += pilots
            count.busy += pilots if is_busy else 0
            cores, memory_mb, gpus, bucket = room
            if takes and cores > 0:
                time_s = times_s[bucket - 1] if bucket and times_s else 0
                vector = ResourceVector(cores, max(memory_mb, 0), max(gpus, 0), time_s)
                free = count.free
                if owner is not None:
                    free = count.free_of.setdefault((owner, group), Counter())
                free[vector] += pilots
    for queue_id, frontend_id, started in _ended_lately(now):
        counts[queue_id, frontend_id].started += started
    return counts


def _ended_lately(now: datetime) -> list[tuple[int, int | None, int]]:
    """Pilots of each entry that called in lately and have ended since."""
    since = now - _RATE_WINDOW
    ended = Pilot.objects.filter(ended_at__gt=since, registered_at__gt=since)
    return list(ended.order_by().values_list("queue_id", "frontend_id").annotate(Count("pk")))


def seen_disk_mb(now: datetime) -> dict[int, int]:
    """The most disk that pilots of each queue had, of those that run or have ended lately.

    A queue that says nothing of its disk is known by these; one without any is taken to have all.
    Two queries, by `pilot_by_queue_and_state` and `pilot_by_end`.
    """
    told = Cast(KeyTextTransform("disk_mb", "node"), BigIntegerField())
    most: dict[int, int] = {}
    for of_pilots in (
        Q(queue_id__in=Queue.objects.values("pk"), state=PilotState.RUNNING),
        Q(ended_at__gt=now - _DISK_WINDOW),
    ):
        seen = Pilot.objects.filter(of_pilots, node__has_key="disk_mb")
        for queue_id, disk_mb in seen.order_by().values_list("queue_id").annotate(most=Max(told)):
            most[queue_id] = max(disk_mb, most.get(queue_id, 0))
    return most


def frontend_scope(frontend: Frontend | None) -> str:
    """Key of a frontend's bounds among those of groups, whose names have no spaces."""
    return f"frontend {frontend.name}" if frontend else ""


def scopes() -> Scopes:
    """Limits on the pilots of all, of sites, groups and frontends. Four queries at most."""
    limits = list(PilotLimit.objects.select_related("site", "group", "frontend"))
    whole = next((row for row in limits if row.scope == PilotLimit.Scope.WHOLE), None)
    by_site = {row.site.name: row for row in limits if row.site}
    by_group = {row.group.name: row for row in limits if row.group}
    every_site = _of_all(limits, PilotLimit.Scope.SITE)
    every_group = _of_all(limits, PilotLimit.Scope.GROUP)
    if every_site:
        names = Site.objects.values_list("name", flat=True)
        by_site = dict.fromkeys(names, every_site) | by_site
    if every_group:
        group_names = AccountingGroup.objects.values_list("name", flat=True)
        by_group = dict.fromkeys(group_names, every_group) | by_group
    by_frontend = {frontend_scope(row.frontend): row for row in limits if row.frontend}
    if every_frontend := _of_all(limits, PilotLimit.Scope.FRONTEND):
        every = map(frontend_scope, Frontend.objects.all())
        by_frontend = dict.fromkeys(every, every_frontend) | by_frontend
    return Scopes(
        _bounds(whole, "limit of all pilots") if whole else Bounds("limit of all pilots"),
        {name: _bounds(row, "site limit") for name, row in by_site.items()},
        {name: _bounds(row, "group limit") for name, row in by_group.items()}
        | {name: _bounds(row, "frontend limit") for name, row in by_frontend.items()},
    )


def free_in_scopes(queue: Queue, frontend: Frontend | None) -> tuple[int, str]:
    """Pilots that limits shared with other entries leave a frontend now, and the narrowest limit.

    The planner divides the same places, but it looked at them some seconds ago, when pilots that
    another queue was promised before had not been made.
    """
    shared, alive = scopes(), Pilot.objects.filter(state__in=ALIVE)
    group = queue.owner_group.name if queue.owner_group else ""
    of_frontend = shared.groups.get(frontend_scope(frontend)) if frontend else None
    rooms = [
        *_rooms(of_frontend, alive.filter(frontend=frontend), queue),
        *_rooms(shared.groups.get(group), alive.filter(owner_group=queue.owner_group), queue),
        *_rooms(shared.sites.get(queue.site.name), alive.filter(queue__site=queue.site_id), queue),
        *_rooms(shared.whole, alive, queue),
    ]
    return min(rooms, default=(UNBOUNDED, ""))


def _rooms(
    bounds: Bounds | None, alive: QuerySet[Pilot], queue: Queue
) -> Iterator[tuple[int, str]]:
    if bounds is None:
        return
    if bounds.max_pilots < UNBOUNDED:
        pilots = alive.count()
        limit_reason = f"{bounds.name} {bounds.max_pilots}: {pilots_are(pilots, 'there')}"
        yield max(bounds.max_pilots - pilots, 0), limit_reason
    if bounds.max_cores < UNBOUNDED:
        cores = alive.aggregate(cores=Sum("queue__cores", default=0))["cores"]
        limit = counted(bounds.max_cores, "core", "cores")
        limit_reason = f"{bounds.name} {limit}: {counted(cores, 'is', 'are')} there"
        yield max(bounds.max_cores - cores, 0) // queue.cores, limit_reason


def _of_all(limits: Sequence[PilotLimit], scope: PilotLimit.Scope) -> PilotLimit | None:
    """Limit that holds for each scope of this kind."""
    unnamed = (row for row in limits if not (row.site or row.group or row.frontend))
    return next((row for row in unnamed if row.scope == scope), None)


def _bounds(row: PilotLimit, name: str) -> Bounds:
    def given(value: int | None) -> int:
        return UNBOUNDED if value is None else value

    return Bounds(
        name,
        max_pilots=given(row.max_pilots),
        curb_pilots=given(row.curb_pilots),
        max_cores=given(row.max_cores),
        max_idle=given(row.max_idle_pilots),
        curb_idle=given(row.curb_idle_pilots),
    )
