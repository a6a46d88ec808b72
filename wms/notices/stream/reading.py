"""Events of DAGs, clusters, jobs, pilots and sites as one stream, for who may see the objects.

Of jobs the stream has the changes that have a row of their own, such as all ends: neither the
first waiting, nor that a pilot took one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, Max, Model, Q, QuerySet

from wms.core.models import EventRecord, User
from wms.dags.models import DagEvent
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.reading.selectors import visible_dags
from wms.jobs.clusters.selectors import visible_clusters
from wms.jobs.models import ClusterEvent, JobEvent
from wms.jobs.selectors import visible_jobs
from wms.notices.stream.cursors import Place, Snapshot
from wms.notices.stream.sql import READ_SNAPSHOT, StoredNumber, written_by
from wms.pilots.models import PilotEvent
from wms.pilots.selectors import visible_pilots
from wms.sites.models import SiteEvent
from wms.sites.selectors import visible_sites

#: Most events of an answer.
MOST = 1000


@dataclass(frozen=True, slots=True)
class _Kind:
    """Kind of objects: its events, their column of the object, who may see it, and its name."""

    events: type[EventRecord]
    column: str
    visible: Callable[[User], QuerySet[Any]]
    name: str = "pk"


_KINDS: Mapping[str, _Kind] = {
    "cluster": _Kind(ClusterEvent, "cluster", visible_clusters),
    "dag": _Kind(DagEvent, "dag", visible_dags),
    "job": _Kind(JobEvent, "job", visible_jobs),
    "pilot": _Kind(PilotEvent, "pilot", visible_pilots, "uuid"),
    "site": _Kind(SiteEvent, "site", visible_sites, "name"),
}
KINDS = tuple(_KINDS)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Events that are asked for: by kind, by the objects, and by label; nothing means all.

    A DAG or a cluster comes with the ends of its jobs.
    """

    kinds: frozenset[str] = frozenset(KINDS)
    dag: int | None = None
    cluster: int | None = None
    label: str = ""

    def conditions(self) -> dict[str, Q]:
        """Condition on the events of each kind that is wanted."""
        found = dict.fromkeys(sorted(self.kinds), Q())
        if self.label:
            found = {kind: Q(**{f"{kind}__labels__contains": [self.label]})
                     for kind in found if kind in ("dag", "cluster")}  # fmt: skip
        if self.dag is not None:
            of_dag = {"dag": Q(dag=self.dag), "job": Q(job__in=jobs_of(self.dag))}
            found = {kind: found[kind] & of_dag[kind] for kind in found if kind in of_dag}
        if self.cluster is not None:
            of_cluster = {"cluster": Q(cluster=self.cluster), "job": Q(job__cluster=self.cluster)}
            found = {kind: found[kind] & of_cluster[kind] for kind in found if kind in of_cluster}
        return found


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """One event of the stream; `object` names the object as the API does."""

    id: int
    kind: str
    object: str
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

    Four queries for all kinds, and one for each kind that is wanted.
    """
    ids = _highest() if place.is_renewed(now) else None
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
        .annotate(written=written_by(snapshot.newest), named=F(f"{of.column}__{of.name}"))
        .filter(is_behind, written__lt=snapshot.oldest)
        .order_by("written", "pk")
        .values_list("written", "pk", "named", *_COLUMNS)[:most]
    )  # fmt: skip
    return [(row[0], kind, row[1], row[2:]) for row in rows]


def _told(_: int, kind: str, number: int, row: tuple[Any, ...]) -> StreamedEvent:
    named, *values = row
    return StreamedEvent(number, kind, str(named), *values)


def _snapshot() -> Snapshot:
    with connection.cursor() as cursor:
        cursor.execute(READ_SNAPSHOT)
        oldest, newest = cursor.fetchone()
    return Snapshot(oldest, newest)


def _highest() -> dict[str, int]:
    return {kind: _last(of.events) for kind, of in _KINDS.items()}


def _last(events: type[Model]) -> int:
    found = events._default_manager.aggregate(last=Max("pk"))["last"]
    return int(found or 0)
