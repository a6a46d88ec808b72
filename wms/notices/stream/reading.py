"""Events of all that one follows as one stream, for who may see the objects.

Of jobs the stream has the changes that have a row of their own, such as all ends: neither the
first waiting, nor that a pilot took one. Of nodes it has all, but those of one DAG only: events of
nodes have no index but by their DAG.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import CharField, F, Q, QuerySet, Value
from django.db.models.expressions import Combinable

from wms.core.errors import NotFound
from wms.core.models import EventRecord, User
from wms.dags.models import DagEvent, Node, NodeEvent
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.reading.selectors import visible_dags
from wms.jobs.clusters.selectors import visible_clusters
from wms.jobs.models import ClusterEvent, JobEvent
from wms.jobs.selectors import visible_jobs
from wms.notices.stream.cursors import Place, Snapshot
from wms.notices.stream.sql import (
    FORGET_SESSIONS,
    READ_NUMBERS,
    READ_SNAPSHOT,
    StoredNumber,
    written_by,
)
from wms.pilots.models import PilotEvent
from wms.pilots.selectors import visible_pilots
from wms.placement.models import PlacementEvent
from wms.placement.selectors import visible_requests
from wms.schedules.models import ScheduleEvent
from wms.schedules.selectors import visible_schedules
from wms.sites.models import SiteEvent
from wms.sites.selectors import visible_sites

#: Most events of an answer.
MOST = 1000
_NONE = Value("", CharField())


@dataclass(frozen=True, slots=True)
class _Kind:
    """Kind of objects: its events, their column by which they are seen, and who may see that.

    `named` leads from an event to the object as the API names it, which is its `key`; `name` to its
    name for people.
    """

    events: type[EventRecord]
    column: str
    visible: Callable[[User], QuerySet[Any]]
    named: str
    key: str = "pk"
    name: Combinable = _NONE


_KINDS: Mapping[str, _Kind] = {
    "cluster": _Kind(ClusterEvent, "cluster", visible_clusters, "cluster_id"),
    "dag": _Kind(DagEvent, "dag", visible_dags, "dag_id"),
    "job": _Kind(JobEvent, "job", visible_jobs, "job_id"),
    "node": _Kind(NodeEvent, "dag", visible_dags, "node_id", name=F("node__name")),
    "pilot": _Kind(PilotEvent, "pilot", visible_pilots, "pilot__uuid", "uuid"),
    "placement": _Kind(PlacementEvent, "request", visible_requests, "request_id"),
    "schedule": _Kind(ScheduleEvent, "schedule", visible_schedules, "schedule_id"),
    "site": _Kind(SiteEvent, "site", visible_sites, "site__name", "name"),
}
KINDS = tuple(_KINDS)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Events that are asked for: by kind, by the objects of each kind, by label; nothing means all.

    DAGs come with their nodes and the ends of their jobs, clusters with these. Named nodes are
    those of the named DAGs, and come alone; without a DAG there are no events of nodes.
    """

    kinds: frozenset[str] = frozenset(KINDS)
    objects: Mapping[str, Collection[Any]] = field(default_factory=dict)
    label: str = ""

    def conditions(self) -> dict[str, Q]:
        """Condition on the events of each kind that is wanted."""
        found = dict.fromkeys(sorted(self.kinds), Q())
        if self.label:
            found = {kind: Q(**{f"{kind}__labels__contains": [self.label]})
                     for kind in found if kind in ("dag", "cluster")}  # fmt: skip
        if of_objects := self._of_objects():
            return {kind: found[kind] & of_objects[kind] for kind in found if kind in of_objects}
        found.pop("node", None)
        return found

    def _of_objects(self) -> dict[str, Q]:
        found = {kind: Q(**{f"{_KINDS[kind].named}__in": names})
                 for kind, names in self.objects.items() if names}  # fmt: skip
        of_dags = Q(dag__in=dags) if (dags := self.objects.get("dag")) else Q()
        if "node" in found:
            return {"node": found["node"] & of_dags}
        if dags:
            found["node"] = of_dags
            found["job"] = found.get("job", Q()) | Q(job__in=jobs_of(*dags))
        if clusters := self.objects.get("cluster"):
            found["job"] = found.get("job", Q()) | Q(job__cluster__in=clusters)
        return found


def find_all(user: User, wanted: Wanted) -> None:
    """See whether all objects are there. Raises NotFound; a query for each kind of objects."""
    for kind, names in wanted.objects.items():
        of = _KINDS[kind]
        if kind == "node":
            there = Node.objects.filter(dag__in=wanted.objects["dag"])
        else:
            there = of.visible(user).order_by()
        found = there.filter(**{f"{of.key}__in": names}).values_list(of.key, flat=True)
        if missing := set(names) - set(found):
            told = min(map(str, missing))
            raise NotFound(f"There is no {kind} {told}, or you may not see it.")


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """One event of the stream; `object` names the object as the API does.

    `name` is that of a node, of all others empty.
    """

    id: int
    kind: str
    object: str
    name: str
    event: str
    from_state: str
    to_state: str
    actor: str
    reason: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Batch:
    """Events in the order of their transactions, and the place behind them."""

    events: list[StreamedEvent]
    place: Place


def begin(now: datetime) -> Place:
    """The place behind everything that has happened."""
    ids = _highest()
    return Place.now(_snapshot(), ids, now)


def read(user: User, wanted: Wanted, place: Place, now: datetime, *, most: int = MOST) -> Batch:
    """The next events that the user may see, at most so many.

    Two queries, now and then a third, and one for each kind that is wanted.
    """
    is_whole = place.knows(_KINDS.keys())
    ids = _highest() if place.is_renewed(now) or not is_whole else None
    if ids is not None and not is_whole:
        place = place.with_all(ids)
    snapshot = _snapshot()
    found = [
        _of_kind(kind, condition, user, place, snapshot, most + 1)
        for kind, condition in wanted.conditions().items()
    ]
    merged = list(heapq.merge(*found))[: most + 1]
    events = [_told(*each) for each in merged[:most]]
    if len(merged) <= most:
        return Batch(events, place.at_end(snapshot, ids, now))
    return Batch(events, replace(place, position=merged[most - 1][:3], at=now.timestamp()))


_Row = tuple[int, str, int, tuple[Any, ...]]
_COLUMNS = ("event", "from_state", "to_state", "actor", "reason", "created_at")


def _of_kind(
    kind: str, condition: Q, user: User, place: Place, snapshot: Snapshot, most: int
) -> list[_Row]:
    of = _KINDS[kind]
    table = of.events._meta.db_table
    transaction, last_kind, number = place.position
    is_behind = Q(written__gt=transaction)
    if kind > last_kind:
        is_behind |= Q(written=transaction)
    elif kind == last_kind:
        is_behind |= Q(written=transaction, pk__gt=number)
    rows = (
        of.events._default_manager.filter(
            condition, pk__gt=place.floors.get(kind, 0),
            **{f"{of.column}__in": of.visible(user).order_by().values("pk")},
        )
        .annotate(stored=StoredNumber(table=table))
        .annotate(written=written_by(snapshot.newest), named=F(of.named), called=of.name)
        .filter(is_behind, written__lt=snapshot.oldest)
        .order_by("written", "pk")
        .values_list("written", "pk", "named", "called", *_COLUMNS)[:most]
    )  # fmt: skip
    return [(row[0], kind, row[1], row[2:]) for row in rows]


def _told(_: int, kind: str, number: int, row: tuple[Any, ...]) -> StreamedEvent:
    named, name, *values = row
    return StreamedEvent(number, kind, str(named), name, *values)


def _snapshot() -> Snapshot:
    with connection.cursor() as cursor:
        cursor.execute(FORGET_SESSIONS)
        cursor.execute(READ_SNAPSHOT)
        oldest, newest = cursor.fetchone()
    return Snapshot(oldest, newest)


def _highest() -> dict[str, int]:
    """The latest number of each kind. One query."""
    tables = [of.events._meta.db_table for of in _KINDS.values()]
    with connection.cursor() as cursor:
        cursor.execute(READ_NUMBERS, [tables])
        numbers = [number for (number,) in cursor.fetchall()]
    return dict(zip(_KINDS, numbers, strict=True))
