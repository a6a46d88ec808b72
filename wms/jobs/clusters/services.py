"""Services for clusters: hold, release, remove, prioritise, label, change jobs or limits.

What they decide stands in the cluster's row at once, and no further job is made against it; the
materialiser brings it to the jobs that are there, in batches. Also locks clusters with the check of
permission, and checks changes of priority, sites and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from matching.task_queues.needs import MOST, BadNeeds, Needs
from wms.accounting.walls import Walls, within_reach
from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.errors import Conflict, Finding, InvalidInput, NotFound, ReasonRequired
from wms.core.labels import changed_labels, check_change
from wms.core.transitions import Applied
from wms.jobs.clusters import lifecycle
from wms.jobs.clusters.options import check_deadline, check_limit
from wms.jobs.clusters.states import CLUSTER_ALIVE, ClusterCause
from wms.jobs.models import Cluster
from wms.jobs.policy import require_steering
from wms.jobs.services import MAX_PRIORITY

_PERSON = ClusterCause.PERSON
_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "max_idle": check_limit, "max_materialize": check_limit, "deadline": check_deadline,
}  # fmt: skip


@transaction.atomic
def hold_clusters(cluster_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Hold clusters: no more jobs are made, those that wait are held, and others may end.

    Those that cannot be held in their state are skipped. Raises NotFound, NotPermitted,
    ReasonRequired.
    """
    return _move("hold", cluster_ids, actor=actor, reason=reason)


@transaction.atomic
def release_clusters(cluster_ids: Collection[int], *, actor: Actor, reason: str = "") -> Applied:
    """Release held clusters: the jobs that were held with them wait again.

    Jobs that were held for themselves stay so. Raises NotFound, NotPermitted.
    """
    return _move("release", cluster_ids, actor=actor, reason=reason)


@transaction.atomic
def remove_clusters(cluster_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End clusters for good: their jobs are killed, and of rows that are left none are made.

    Raises NotFound, NotPermitted, ReasonRequired.
    """
    return _move("remove", cluster_ids, actor=actor, reason=reason)


@transaction.atomic
def prioritise_clusters(
    cluster_ids: Collection[int], *, priority: int, actor: Actor, reason: str
) -> Applied:
    """Give the jobs of clusters another priority, those that wait and those that are yet to come.

    Ended clusters are skipped. Raises NotFound, NotPermitted, ReasonRequired, InvalidInput.
    """
    return change_clusters(cluster_ids, priority=priority, actor=actor, reason=reason)


@transaction.atomic
def change_clusters(
    cluster_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    priority: int | None = None,
    sites: Sequence[str] | None = None,
    banned_sites: Sequence[str] | None = None,
    memory_mb: int | None = None,
) -> Applied:
    """Change what is given for all jobs of clusters that have not ended, made or not.

    Of jobs that a pilot has it counts if they wait again. An empty list of sites is no condition.
    Ended clusters are skipped. Raises NotFound, NotPermitted, ReasonRequired, InvalidInput.
    """
    clusters = locked_clusters(cluster_ids, actor)
    if not reason.strip():
        raise ReasonRequired("change")
    changes = checked_changes(priority, sites, banned_sites, memory_mb)
    alive = [cluster for cluster in clusters if cluster.state in CLUSTER_ALIVE]
    facts = {}
    for cluster in alive:
        facts[cluster.pk] = {
            name: [cluster.overrides.get(name), value] for name, value in changes.items()
        } | {"reason": reason.strip()}
        cluster.overrides = {**cluster.overrides, **changes}
        cluster.pending_changes = {**(cluster.pending_changes or {}), **changes}
        cluster.pending_from = 0
    Cluster.objects.bulk_update(alive, ["overrides", "pending_changes", "pending_from"])
    return _noted(clusters, alive, facts, actor=actor, reason=reason)


@transaction.atomic
def relabel_clusters(
    cluster_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    add: Sequence[str] | None = None,
    remove: Sequence[str] | None = None,
) -> Applied:
    """Add labels to clusters and take others away, also of those that have ended.

    Raises NotFound, NotPermitted, ReasonRequired, InvalidInput.
    """
    clusters = locked_clusters(cluster_ids, actor)
    if not reason.strip():
        raise ReasonRequired("label")
    new, old = list(add or ()), list(remove or ())
    check_change(new, old)
    for cluster in clusters:
        cluster.labels = changed_labels(cluster.labels, add=new, remove=old)
    Cluster.objects.bulk_update(clusters, ["labels"], batch_size=500)
    ids = [cluster.pk for cluster in clusters]
    record_actions(
        "label cluster",
        targets=[f"cluster {pk}" for pk in ids],
        actor=actor,
        reason=reason,
        facts={"add": new, "remove": old},
    )
    return Applied(ids, [])


@transaction.atomic
def change_limits(
    cluster_id: int,
    *,
    actor: Actor,
    reason: str,
    max_idle: int | None = None,
    max_materialize: int | None = None,
    deadline: datetime | None = None,
) -> Cluster:
    """Change how far ahead jobs are made, and when the cluster is removed; None stays.

    Jobs that are there stay. Raises NotFound, NotPermitted, ReasonRequired, InvalidInput, and
    Conflict when the cluster has ended.
    """
    [cluster] = locked_clusters([cluster_id], actor)
    if not reason.strip():
        raise ReasonRequired("change")
    if cluster.state not in CLUSTER_ALIVE:
        raise Conflict(f"Cluster {cluster_id} has ended: it is {cluster.state}.")
    given = {"max_idle": max_idle, "max_materialize": max_materialize, "deadline": deadline}
    changes = {name: value for name, value in given.items() if value is not None}
    _check_limits(changes)
    told = {
        name: [_plain(getattr(cluster, name)), _plain(value)] for name, value in changes.items()
    }
    for name, value in changes.items():
        setattr(cluster, name, value)
    cluster.save(update_fields=list(changes))
    _noted([cluster], [cluster], {cluster.pk: {**told, "reason": reason.strip()}}, actor=actor,
           reason=reason)  # fmt: skip
    return cluster


def checked_changes(
    priority: int | None,
    sites: Sequence[str] | None,
    banned_sites: Sequence[str] | None,
    memory_mb: int | None,
) -> dict[str, Any]:
    """Those of the changes that are given, as they are stored. Raises InvalidInput."""
    if priority is not None and not 0 <= priority <= MAX_PRIORITY:
        raise InvalidInput.of(f"must be from 0 to {MAX_PRIORITY}", field="priority")
    if memory_mb is not None and not 0 <= memory_mb <= MOST["memory_mb"]:
        raise InvalidInput.of(f"must be from 0 to {MOST['memory_mb']}", field="memory_mb")
    given = {"sites": sites, "banned_sites": banned_sites}
    lists: dict[str, Any] = {
        name: list(value) for name, value in given.items() if value is not None
    }
    try:
        needs = Needs.of("", **lists)
    except BadNeeds as error:
        raise InvalidInput(
            [Finding(str(error), field=name) for name in error.fields or ("sites",)]
        ) from error
    changes: dict[str, Any] = {name: list(getattr(needs, name)) for name in lists}
    for name, number in (("priority", priority), ("memory_mb", memory_mb)):
        if number is not None:
            changes[name] = number
    if not changes:
        raise InvalidInput.of("nothing is to be changed")
    return changes


def locked_clusters(cluster_ids: Collection[int], actor: Actor) -> list[Cluster]:
    """The clusters, locked in the order of their ids. Raises NotFound and NotPermitted."""
    named = within_reach(actor, Cluster.objects.filter(pk__in=cluster_ids), Walls.by_group)
    clusters = list(named.order_by("pk").select_for_update(of=("self",)))
    missing = sorted(set(cluster_ids) - {cluster.pk for cluster in clusters})
    if missing:
        raise NotFound(f"There is no cluster {', '.join(map(str, missing))}.")
    for cluster in clusters:
        require_steering(actor, cluster)
    return clusters


def _move(event: str, cluster_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    locked_clusters(cluster_ids, actor)
    applied = lifecycle.apply(
        event, cluster_ids, actor=actor, reason=reason.strip(), cause=_PERSON,
        look_at=timezone.now(),
    )  # fmt: skip
    _announce(f"{event} cluster", applied, actor, reason)
    return applied


def _noted(
    clusters: Sequence[Cluster],
    changed: Sequence[Cluster],
    facts: Mapping[int, Mapping[str, Any]],
    *,
    actor: Actor,
    reason: str,
) -> Applied:
    lifecycle.note("change", facts, actor=actor)
    ids = [cluster.pk for cluster in changed]
    applied = Applied(ids, sorted({cluster.pk for cluster in clusters}.difference(ids)))
    _announce("change cluster", applied, actor, reason)
    return applied


def _announce(action: str, applied: Applied, actor: Actor, reason: str) -> None:
    lifecycle.wake_materialiser(*applied.changed)
    targets = [f"cluster {pk}" for pk in applied.changed]
    record_actions(action, targets=targets, actor=actor, reason=reason)


def _check_limits(changes: Mapping[str, Any]) -> None:
    if not changes:
        raise InvalidInput.of("nothing is to be changed")
    faults = []
    for name, value in changes.items():
        try:
            _CHECKS[name](value)
        except ValueError as error:
            faults.append(Finding(str(error), field=name))
    if faults:
        raise InvalidInput(faults)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
