"""Making of a cluster's next jobs from the rows of its tables, within its limits.

Also the storage of its jobs and of its faulty rows, the numbers of its jobs (all, or those of a
rerun), and the renderer of a stored cluster. The caller locks the cluster's row, and saves it.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils import timezone

from wms.core.inbox import wake_readers
from wms.jobs.clusters.checking import identity_of, stored_description
from wms.jobs.clusters.lifecycle import MATERIALISER, NEW_JOBS_TOPIC
from wms.jobs.clusters.live_jobs import live
from wms.jobs.clusters.parameters.tables import stored_tables
from wms.jobs.clusters.rendering import ClusterRenderer, Overrides
from wms.jobs.clusters.states import TOPIC, ClusterState
from wms.jobs.content.blobs import open_blob
from wms.jobs.description.job_fields import text_length
from wms.jobs.description.needs import MAX_DIFFERENT_NEEDS
from wms.jobs.description.renderer_inputs import CannotRender
from wms.jobs.models import Cluster, ClusterFault
from wms.jobs.operations import submission
from wms.jobs.specs import JobSpec
from wms.taskqueues.models import TaskQueue

#: Rows of one turn, how long they may take, and how much text they may make.
BATCH = 2_000
LIMIT_S = 5.0
MOST_TEXT = 64 * 1024 * 1024
#: So long a cluster without room is left alone.
_PAUSE = timedelta(seconds=5)
#: Faulty rows that are kept with their reasons; all are counted.
MAX_KEPT_FAULTS = 1_000
#: A part of `max_idle` this small is not worth a turn while others still wait.
_LEAST_PART = 8
_TOO_DIFFERENT = f"its jobs wait with more than {MAX_DIFFERENT_NEEDS} different needs"


@dataclass(slots=True)
class _Rows:
    """Jobs made of rows, their numbers, and the faulty rows between them."""

    specs: list[JobSpec] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    faults: list[ClusterFault] = field(default_factory=list)

    @property
    def taken(self) -> int:
        """Number of rows."""
        return len(self.specs) + len(self.faults)


def make_next(cluster: Cluster) -> bool:
    """Make jobs of the next rows, if there is room; whether more could be made at once.

    The cluster's row is locked; its columns are set, to be saved by the caller.
    """
    cluster.look_at, cluster.delay_reason = None, ""
    if cluster.state != ClusterState.ACTIVE or not cluster.waiting_rows:
        return False
    room = _room(cluster)
    if not room:
        cluster.look_at = timezone.now() + _PAUSE
        return False
    wanted = min(room, BATCH)
    rows = _render(cluster, processes_of(cluster, cluster.next_process, wanted))
    _store(cluster, rows)
    is_more = bool(cluster.waiting_rows)
    cluster.look_at = timezone.now() if is_more else None
    return is_more and (rows.taken < wanted or room > BATCH)


def processes_of(cluster: Cluster, first: int, count: int) -> Sequence[int]:
    """Numbers of the cluster's jobs from a place in its order on."""
    end = min(first + count, cluster.size)
    if cluster.selection_id is None:
        return range(first, end)
    numbers = array("Q")
    with open_blob(cluster.selection_id) as stream:
        stream.seek(first * numbers.itemsize)
        numbers.frombytes(stream.read((end - first) * numbers.itemsize))
    return numbers


def _room(cluster: Cluster) -> int:
    now = live(cluster.pk)
    room = max(0, min(cluster.max_idle - now.idle, cluster.max_materialize - now.total))
    if now.idle and room < min(cluster.waiting_rows, max(1, cluster.max_idle // _LEAST_PART)):
        return 0
    if room and _is_too_different(cluster):
        cluster.delay_reason = _TOO_DIFFERENT
        return 0
    return room


def _is_too_different(cluster: Cluster) -> bool:
    group = cluster.accounting_group.name if cluster.accounting_group else ""
    queues = TaskQueue.objects.filter(owner_id=cluster.owner_id, owner_group=group)
    return queues.count() > MAX_DIFFERENT_NEEDS


def renderer_of(cluster: Cluster) -> ClusterRenderer:
    """Renderer of a stored cluster. Raises CannotRender, and NotFound for a lost content."""
    with open_blob(cluster.description_id) as stream:
        description = stored_description(cluster.language, stream.read())
    group = cluster.accounting_group.name if cluster.accounting_group else ""
    return ClusterRenderer(
        description,
        identity_of(cluster.owner.get_username(), group, cluster.name),
        cluster_id=cluster.pk,
        name=cluster.name,
        overrides=Overrides.of(cluster.overrides),
    )


def _render(cluster: Cluster, processes: Sequence[int]) -> _Rows:
    """Jobs of these rows; of the first of them if they take long."""
    rows, text, began_s = _Rows(), 0, time.monotonic()
    renderer = renderer_of(cluster)
    with stored_tables(cluster) as tables:
        for place, row in tables.read(processes):
            try:
                spec = renderer.job(place, row, tables)
            except CannotRender as error:
                reason = f"row {place.row}: {error}"[:1000].replace("\0", "")
                fault = ClusterFault(cluster=cluster, process=place.process, reason=reason)
                rows.faults.append(fault)
            else:
                rows.specs.append(spec)
                rows.processes.append(place.process)
                text += text_length(spec)
            if text > MOST_TEXT or time.monotonic() - began_s > LIMIT_S:
                break
    return rows


def _store(cluster: Cluster, rows: _Rows) -> None:
    kept = max(0, MAX_KEPT_FAULTS - cluster.faulty_count)
    ClusterFault.objects.bulk_create(rows.faults[:kept])
    store_jobs(cluster, rows.specs, rows.processes)
    cluster.faulty_count += len(rows.faults)
    cluster.next_process += rows.taken


def store_jobs(cluster: Cluster, specs: Sequence[JobSpec], processes: Sequence[int]) -> None:
    """Store jobs of a cluster under these numbers."""
    if not specs:
        return
    with submission(
        owner=cluster.owner,
        workspace=cluster.workspace,
        actor=MATERIALISER,
        topic=TOPIC,
        topic_key=cluster.pk,
        expected=len(specs),
        cluster_id=cluster.pk,
    ) as add:
        add(specs, processes)
    wake_readers([NEW_JOBS_TOPIC])
