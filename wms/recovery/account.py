"""Account of what is open after a return of the database: what goes on, what may be done twice.

It is read from the rows as they are now, so that it can be asked for again and again, until
nothing is in doubt any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet

from wms.core.actors import Actor
from wms.core.restoration_models import Restoration
from wms.core.storage.copying import GrowingRows
from wms.core.storage.owners import StoreOfOthers, owner_of, this_installation
from wms.core.storage.protocol import ObjectLost, ReadableStore, StoreFailed
from wms.dags.models import Dag
from wms.dags.states import DAG_TERMINAL
from wms.jobs.clusters.states import CLUSTER_ALIVE
from wms.jobs.models import Attempt, Blob, Cluster, Job
from wms.jobs.output.streams import STREAM_EXTENTS
from wms.jobs.states import WITH_PILOT, JobState
from wms.jobs.uploads.selectors import UPLOAD_EXTENTS
from wms.pilots.models import Pilot
from wms.pilots.states import PENDING, PilotState
from wms.placement.models import PlacementRequest
from wms.placement.states import ALIVE as PLACEMENT_ALIVE
from wms.recovery.lost_contents import LostContents, hold_for_lost_contents
from wms.recovery.returning import latest_return, tell_jobs
from wms.schedules.models import Schedule

#: So many of each are told by their ids.
MOST_TOLD: Final = 1000
#: Of so many growing files the store is asked whether they are there.
_MOST_ASKED: Final = 10_000
_WAITING = (JobState.RECEIVED, JobState.WAITING)


@dataclass(frozen=True, slots=True)
class Some:
    """Count of rows, and the ids of the first of them."""

    count: int
    ids: tuple[int, ...]

    @classmethod
    def of(cls, rows: QuerySet[Any], column: str = "pk") -> Some:
        """Count and first ids of a query, by a column."""
        ids = tuple(rows.order_by(column).values_list(column, flat=True)[:MOST_TOLD])
        return cls(len(ids) if len(ids) < MOST_TOLD else rows.count(), ids)


@dataclass(frozen=True, slots=True)
class Doubts:
    """What was open when the database went back, by what is known of it since.

    Jobs: `in_hand` have pilots that were heard since, which run them still, or end and let them run
    again; those of `silent` pilots were not, and run again when their pilots are given up; `again`
    lost their attempts since; `waiting` had no pilot then, and may have been run by one that is not
    known here. DAGs, clusters and requests for placements that were under way go on from where they
    were. `schedules` had times meanwhile, for which they may have submitted DAGs.
    """

    in_hand: Some
    silent: Some
    again: Some
    waiting: Some
    draining_pilots: Some
    pending_pilots: Some
    dags: Some
    clusters: Some
    placements: Some
    schedules: Some


@dataclass(frozen=True, slots=True)
class Account:
    """Account of a return, if there was one, and of contents and growing files that are lost."""

    restoration: Restoration | None
    told_jobs: int
    doubts: Doubts | None
    contents: LostContents
    #: Attempts of which output that came before their ends is lost.
    streams: Some
    uploads: Some

    def as_json(self) -> Mapping[str, Any]:
        """The account as values of JSON."""
        row = self.restoration
        return {
            "back_to": row.back_to.isoformat() if row else None,
            "restored_at": row.restored_at.isoformat() if row else None,
            "origin": row.origin if row else None,
            "told_jobs": self.told_jobs,
            "doubts": asdict(self.doubts) if self.doubts else None,
            "contents": asdict(self.contents),
            "streams": asdict(self.streams),
            "uploads": asdict(self.uploads),
        }


def reconcile(store: ReadableStore, *, actor: Actor) -> Account:
    """Tell jobs of the latest return, hold what needs lost contents, and account for the rest.

    Services may run meanwhile: nothing is locked for longer than a batch takes. Raises StoreFailed
    for a store that is not this installation's: all would be lost there.
    """
    _require_own(store)
    restoration = latest_return()
    return Account(
        restoration=restoration,
        told_jobs=tell_jobs(restoration, actor=actor) if restoration else 0,
        doubts=_doubts(restoration) if restoration else None,
        contents=hold_for_lost_contents(store, actor=actor),
        streams=_lost(store, STREAM_EXTENTS, Q(attempt__outcome=""), "attempt_id"),
        uploads=_lost(store, UPLOAD_EXTENTS, Q(), "pk"),
    )


def _require_own(store: ReadableStore) -> None:
    owner = owner_of(store)
    if owner is None and Blob.objects.filter(unnamed_since=None).exists():
        raise StoreFailed(
            f"{store.name} has no mark of an installation, and rows name contents: is it the right "
            "one, and mounted?"
        )
    if owner is not None and owner.id != this_installation().id:
        raise StoreOfOthers(owner)


def _doubts(restoration: Restoration) -> Doubts:
    back_to, since = restoration.back_to, restoration.restored_at
    before = Q(created_at__lte=back_to)
    attempts = Attempt.objects.filter(outcome="", matched_at__lte=back_to)
    attempts = attempts.filter(job__state__in=WITH_PILOT)
    heard = Pilot.objects.filter(heartbeat_at__gte=since).values("pk")
    lost = Attempt.objects.filter(outcome=Attempt.Outcome.LOST, ended_at__gte=since)
    # What waits since then was not drawn by a pilot that is known here.
    waiting = Job.objects.filter(before, state__in=_WAITING, state_since__lte=back_to)
    alive = Pilot.objects.filter(before)
    return Doubts(
        in_hand=Some.of(attempts.filter(pilot_id__in=heard), "job_id"),
        silent=Some.of(attempts.exclude(pilot_id__in=heard), "job_id"),
        again=Some.of(lost.filter(matched_at__lte=back_to), "job_id"),
        waiting=Some.of(waiting),
        draining_pilots=Some.of(
            alive.filter(state__in=(PilotState.RUNNING, PilotState.STALLED)).exclude(
                drain_reason=""
            )
        ),
        pending_pilots=Some.of(alive.filter(state__in=PENDING)),
        dags=Some.of(Dag.objects.filter(before).exclude(state__in=DAG_TERMINAL)),
        clusters=Some.of(Cluster.objects.filter(before, state__in=CLUSTER_ALIVE)),
        placements=Some.of(PlacementRequest.objects.filter(before, state__in=PLACEMENT_ALIVE)),
        schedules=Some.of(_schedules(back_to, since)),
    )


def _schedules(back_to: datetime, since: datetime) -> QuerySet[Schedule]:
    """Schedules that had a time meanwhile: it is still due, or was dealt with here again."""
    between = Q(runs__planned_at__gt=back_to, runs__planned_at__lte=since)
    return Schedule.objects.filter(between | Q(next_at__lte=since)).distinct()


def _lost(store: ReadableStore, growing: GrowingRows, which: Q, column: str) -> Some:
    """Growing files of which the store has not the last byte that counts, by a column."""
    found = []
    for row in growing.rows().filter(which).order_by("pk")[:_MOST_ASKED]:
        extent = growing.extent(row)
        if not extent.size_bytes:
            continue
        try:
            is_there = bool(store.read_grown(extent.file, extent.size_bytes - 1, 1))
        except ObjectLost:
            is_there = False
        if not is_there:
            found.append(getattr(row, column))
    return Some(len(found), tuple(found[:MOST_TOLD]))
