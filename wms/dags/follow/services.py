"""Services on followed DAGs, which an external HTCondor runs: begin, read log chunks.

A chunk of the job event log moves the nodes, and may end the DAG, as failed where the log makes no
sense. A chunk may be sent again: bytes that were applied are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import transaction
from django.db.models import Q

from wms.accounting.walls import Walls, within_reach
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from wms.dags import lifecycle
from wms.dags.engine.node_features import features_of
from wms.dags.engine.round import Round
from wms.dags.follow.bad_events import DEFAULT, EventAction, EventCounts, check_at_end
from wms.dags.follow.event_log import LogEvent, NotAnEventLog, ParsedLog, read_events
from wms.dags.follow.projection import (
    ClusterKey,
    ClusterView,
    FollowedNode,
    Projection,
    cluster_key,
)
from wms.dags.follow.step_application import apply_steps, conclude, start_roots
from wms.dags.models import Dag, FollowedCluster, FollowedLog, FollowedProcess, Node
from wms.dags.policy import require_steering
from wms.dags.states import DAG_TERMINAL, Binding, DagCause, DagState, DagStatus

#: Limit of bytes in a chunk, and so of an event.
MAX_CHUNK_BYTES = 1024 * 1024
_MAX_WARNINGS = 20
_FAILURE = 1
_CLUSTER_FIELDS = (
    "submitted", "running", "held", "ended", "failed", "code", "reason", "is_growing", "is_closed",
    "node",
)  # fmt: skip
_PROCESS_FIELDS = ("phase", "submits", "executes", "ends", "aborts", "posts")


@dataclass(frozen=True, slots=True)
class LogProgress:
    """Progress after a chunk of a log: offset of the next chunk, and state of the DAG."""

    offset: int
    events: int
    dag_state: str
    fault: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the DAG has ended and its log needs no more reading."""
        return self.dag_state in DAG_TERMINAL


@transaction.atomic
def follow_log(
    dag_id: int,
    *,
    name: str,
    actor: Actor,
    now: datetime,
    allow_events: int = DEFAULT,
    time_zone: str = "UTC",
) -> FollowedLog:
    """Follow an idle DAG by the log of this name; its nodes are never submitted here.

    Called in the transaction that stores the DAG, so that it is not matched before. Raises
    NotFound, NotPermitted, Conflict, InvalidInput.
    """
    _zone(time_zone)
    if not 0 <= allow_events < 128:
        raise InvalidInput.of("must be from 0 to 127", field="allow_events")
    dag = _locked(dag_id, actor)
    if dag.state != DagState.IDLE or dag.is_followed:
        raise Conflict(f"DAG {dag.pk} is {dag.state}: only one that has not begun can be followed.")
    if dag.has_joins:
        raise Conflict(f"DAG {dag.pk} has conditions or joins, which no other engine knows.")
    lifecycle.apply_to_dags(
        "begin",
        [dag.pk],
        actor=actor,
        reason=f"followed by {name}",
        is_followed=True,
        binding=Binding.SITE,
    )
    dag.refresh_from_db()
    with Round(dag, now, actor) as round_:
        start_roots(round_)
    record_action("follow DAG", target=f"DAG {dag.pk}", actor=actor, facts={"log": name})
    return FollowedLog.objects.create(
        dag=dag, name=name, allow_events=allow_events, time_zone=time_zone
    )


@transaction.atomic
def ingest_chunk(
    dag_id: int, chunk: bytes, *, offset: int, actor: Actor, now: datetime
) -> LogProgress:
    """Apply a chunk of the log that starts at byte `offset`, and return the progress.

    Bytes that were applied before are skipped, so a chunk may be sent again. Only complete events
    count; the next chunk starts at the returned offset. An impossible event ends the DAG as failed.
    Raises NotFound, NotPermitted, TooLarge, InvalidInput, and Conflict for a gap before the chunk
    or a DAG that does not run.
    """
    dag = _locked(dag_id, actor)
    log = FollowedLog.objects.filter(dag=dag).first()
    if log is None:
        raise NotFound(f"DAG {dag_id} is not followed by a log.")
    if len(chunk) > MAX_CHUNK_BYTES:
        raise TooLarge(f"The piece is larger than {MAX_CHUNK_BYTES} bytes.")
    fresh = _new_bytes(log, chunk, offset)
    if dag.state in DAG_TERMINAL or not fresh:
        return LogProgress(log.byte_offset, 0, dag.state, log.fault)
    if dag.state != DagState.RUNNING:
        raise Conflict(f"DAG {dag.pk} is {dag.state}: release it first.")
    reading = _read(log, fresh, now)
    if reading.used == 0 and len(fresh) == MAX_CHUNK_BYTES:
        raise Conflict(f"No event ends within {MAX_CHUNK_BYTES} bytes.")
    with Round(dag, now, actor) as round_:
        projection = _project(dag, log, reading.events)
        fault = apply_steps(round_, projection.steps) or projection.fault
        _store(log, projection, reading, fault, now)
        _finish_round(round_, projection, fault)
    dag.refresh_from_db(fields=["state"])
    if dag.state in DAG_TERMINAL:
        _check_unended_jobs(log)
    return LogProgress(log.byte_offset, len(reading.events), dag.state, fault)


def _new_bytes(log: FollowedLog, chunk: bytes, offset: int) -> bytes:
    if offset < 0:
        raise InvalidInput.of("must not be negative", field="offset")
    if offset > log.byte_offset:
        raise Conflict(
            f"The piece begins at byte {offset}, but only {log.byte_offset} bytes were taken in."
        )
    return chunk[log.byte_offset - offset :]


def _read(log: FollowedLog, data: bytes, now: datetime) -> ParsedLog:
    try:
        return read_events(data, now=now, zone=_zone(log.time_zone))
    except NotAnEventLog as error:
        raise InvalidInput.of(str(error), file=log.name) from error


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput.of(f"there is no time zone {name!r}", field="time_zone") from error


def _locked(dag_id: int, actor: Actor) -> Dag:
    dag = (
        within_reach(actor, Dag.objects.filter(pk=dag_id), Walls.by_group)
        .select_related("owner", "site", "workspace")
        .select_for_update(of=("self",))
        .first()
    )
    if dag is None:
        raise NotFound(f"There is no DAG {dag_id}.")
    require_steering(actor, [dag])
    return dag


def _project(dag: Dag, log: FollowedLog, events: list[LogEvent]) -> Projection:
    """Projection of the events onto the stored rows of their clusters and nodes."""
    clusters = _clusters(log, events)
    projection = Projection(
        nodes=_nodes(dag, events, clusters.values()),
        clusters=clusters,
        allow=log.allow_events,
        is_aside=dag.is_ending,
    )
    for event in events:
        if not projection.apply(event):
            break
    return projection


def _clusters(log: FollowedLog, events: list[LogEvent]) -> dict[ClusterKey, ClusterView]:
    keys = {cluster_key(event) for event in events if event.cluster >= 0}
    numbers = {cluster for cluster, _ in keys if cluster}
    noops = {part for cluster, part in keys if not cluster}
    of_events = Q(cluster__in=numbers) | Q(cluster=0, part__in=noops)
    rows = {row.pk: row for row in FollowedCluster.objects.filter(of_events, log=log)}
    views = {(row.cluster, row.part): ClusterView(row) for row in rows.values()}
    numbers = {event.process for event in events}
    for process in FollowedProcess.objects.filter(cluster__in=rows, process__in=numbers):
        row = rows[process.cluster_id]
        views[row.cluster, row.part].processes[process.process] = process
    return views


def _nodes(
    dag: Dag, events: list[LogEvent], clusters: Iterable[ClusterView]
) -> dict[str, FollowedNode]:
    names = {event.node_name for event in events} - {""}
    ids = {view.row.node_id for view in clusters if view.row.node_id is not None}
    rows = Node.objects.filter(Q(name__in=names) | Q(pk__in=ids), dag=dag)
    return {
        row.name: FollowedNode(
            id=row.pk,
            name=row.name,
            kind=row.kind,
            state=row.state,
            features=features_of(row.features),
            max_retries=row.max_retries,
            retry_number=row.retry_number,
        )
        for row in rows
    }


def _store(
    log: FollowedLog, projection: Projection, reading: ParsedLog, fault: str, now: datetime
) -> None:
    views = projection.clusters.values()
    for view in views:
        view.row.log = log
    _save(FollowedCluster, [view.row for view in views], _CLUSTER_FIELDS)
    _save(
        FollowedProcess, [row for view in views for row in view.processes.values()], _PROCESS_FIELDS
    )
    _warn(log, [*reading.faults, *projection.warnings])
    log.byte_offset += reading.used
    log.event_count += len(reading.events)
    log.fault = fault
    log.taken_at = now
    if reading.events:
        log.last_event_at = reading.events[-1].time
    log.save()


def _warn(log: FollowedLog, warnings: list[str]) -> None:
    log.warning_count += len(warnings)
    log.warnings = [*log.warnings, *warnings][-_MAX_WARNINGS:]


def _check_unended_jobs(log: FollowedLog) -> None:
    """Warn of jobs without an end in the log of a DAG that has ended."""
    rows = FollowedProcess.objects.filter(cluster__log=log, submits__gt=0, ends=0, aborts=0)
    number = rows.count()
    if (
        number
        and check_at_end(EventCounts(submits=1), log.allow_events).action is EventAction.ERROR
    ):
        _warn(log, [f"{number} jobs were submitted and have never ended"])
        log.save(update_fields=["warning_count", "warnings"])


def _save(
    model: type[FollowedCluster] | type[FollowedProcess],
    rows: list[FollowedCluster] | list[FollowedProcess],
    names: tuple[str, ...],
) -> None:
    manager = model._default_manager
    new = [row for row in rows if row.pk is None]
    known = [row for row in rows if row.pk is not None]
    manager.bulk_create(new, batch_size=1000)  # type: ignore[arg-type]
    manager.bulk_update(known, names, batch_size=500)  # type: ignore[arg-type]


def _finish_round(round_: Round, projection: Projection, fault: str) -> None:
    """End the DAG if its nodes have ended, or as failed with the fault of its log."""
    dag = round_.dag
    if not fault:
        conclude(round_, projection.abort)
        return
    with round_.handed_over():
        lifecycle.apply_to_dags(
            "fail",
            [dag.pk],
            actor=round_.actor,
            reason=f"the log of the run makes no sense: {fault}",
            cause=DagCause.LOG,
            status=DagStatus.ERROR,
            exit_code=_FAILURE,
            ended_at=round_.now,
            ending_event="",
        )
