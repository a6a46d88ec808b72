"""Contents that rows name and the store has lost: who needs them, and their holds.

What needs one is held with a cause, before a pilot or the engine meets the gap and it fails. Who
has brought the content back releases it. What is held for something else stays so.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from django.db import transaction

from matching.plurals import counted
from wms.core.actors import Actor
from wms.core.storage.protocol import ReadableStore
from wms.dags import operations as dags
from wms.dags.models import Dag
from wms.dags.states import DagCause, DagState
from wms.jobs import operations as jobs
from wms.jobs.clusters import lifecycle as clusters
from wms.jobs.clusters.states import ClusterCause, ClusterState
from wms.jobs.content.unnamed_contents import each_missing, naming_relations
from wms.jobs.models import Cluster, Job, WorkspaceFile
from wms.jobs.models.jobs import DESCRIBED_COLUMNS
from wms.jobs.states import JobCause, JobState

_AT_ONCE: Final = 1000
#: So many contents and files are told by name.
_MOST_TOLD: Final = 100
_NAMES_IN_A_REASON: Final = 5
_WAITING: Final = (JobState.RECEIVED, JobState.WAITING)
_LIVE_DAGS: Final = (DagState.IDLE, DagState.RUNNING, DagState.HALTED)


@dataclass(slots=True)
class LostContents:
    """Account of contents that are lost, and of what was held for them now."""

    count: int = 0
    sha256s: list[str] = field(default_factory=list)
    #: How many rows name them, by the kind of row.
    named_by: Counter[str] = field(default_factory=Counter)
    held_jobs: list[int] = field(default_factory=list)
    held_dags: list[int] = field(default_factory=list)
    held_clusters: list[int] = field(default_factory=list)


def hold_for_lost_contents(store: ReadableStore, *, actor: Actor) -> LostContents:
    """Hold what needs contents that the store has lost; it can be repeated at any time."""
    found = LostContents()
    missing = each_missing(store)
    while batch := list(islice(missing, _AT_ONCE)):
        found.count += len(batch)
        found.sha256s += batch[: _MOST_TOLD - len(found.sha256s)]
        for relation in naming_relations():
            rows = relation.related_model._base_manager
            count = rows.filter(**{f"{relation.field.name}__in": batch}).count()
            if count:
                found.named_by[relation.related_model.__name__] += count
        _hold_all(batch, found, actor=actor)
    return found


def _hold_all(batch: Sequence[str], found: LostContents, *, actor: Actor) -> None:
    paths: dict[int, set[str]] = defaultdict(set)
    files = WorkspaceFile.objects.filter(blob__in=batch)
    for workspace_id, path in files.values_list("workspace", "path").iterator():
        paths[workspace_id].add(path)
    found.held_clusters += _hold_clusters(batch, actor=actor)
    if paths:
        found.held_dags += _hold_dags(paths, actor=actor)
        found.held_jobs += _hold_jobs(paths, actor=actor)


def _reason(paths: set[str]) -> str:
    names = ", ".join(sorted(paths)[:_NAMES_IN_A_REASON])
    more = ", ..." if len(paths) > _NAMES_IN_A_REASON else ""
    return f"the store has lost {counted(len(paths), 'file', 'files')} of it: {names}{more}"


@transaction.atomic
def _hold_dags(paths: Mapping[int, set[str]], *, actor: Actor) -> list[int]:
    """Hold outer DAGs whose workspaces lack files; the inner ones are held with them."""
    found = Dag.objects.filter(
        workspace__in=paths, state__in=_LIVE_DAGS, parent_node=None, is_followed=False
    )
    held: list[int] = []
    for pk, workspace_id in (
        found.order_by("pk").select_for_update(of=("self",)).values_list("pk", "workspace")
    ):
        applied = dags.hold(
            [pk], actor=actor, reason=_reason(paths[workspace_id]), cause=DagCause.SUBMISSION
        )
        held += applied.changed
    return held


def _hold_jobs(paths: Mapping[int, set[str]], *, actor: Actor) -> list[int]:
    """Hold jobs that wait and read such a file; those that have a pilot have got theirs."""
    by_reason: dict[str, list[int]] = defaultdict(list)
    waiting = Job.objects.filter(state__in=_WAITING, workspace__in=paths)
    rows = waiting.select_related("description").only("workspace", *DESCRIBED_COLUMNS)
    for job in rows.order_by("pk").iterator(chunk_size=_AT_ONCE):
        if lacked := paths[job.workspace_id].intersection(_read_by(job)):
            by_reason[_reason(lacked)].append(job.pk)
    held: list[int] = []
    for reason, ids in by_reason.items():
        applied = jobs.hold_jobs(ids, actor=actor, reason=reason, cause=JobCause.INPUTS)
        held += applied.changed
    return sorted(held)


def _read_by(job: Job) -> Iterator[str]:
    """Paths of the workspace that a job's pilot fetches."""
    yield job.executable
    yield from (posixpath.join(job.directory, name) for name in job.input_files)


def _hold_clusters(batch: Sequence[str], *, actor: Actor) -> list[int]:
    """Hold clusters whose jobs cannot be made any more: their description or selection is lost."""
    active = Cluster.objects.filter(state=ClusterState.ACTIVE)
    ids = set(active.filter(description__in=batch).values_list("pk", flat=True))
    ids |= set(active.filter(selection__in=batch).values_list("pk", flat=True))
    applied = clusters.apply(
        "hold", sorted(ids), actor=actor, cause=ClusterCause.MATERIALISER,
        reason="the store has lost what its jobs are made of", look_at=None,
    )  # fmt: skip
    return list(applied.changed)
