"""Services for kept outputs of clusters: prolong their leases, permitted and audited."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.conf import conf
from wms.core.errors import Conflict, InvalidInput, ReasonRequired
from wms.core.transitions import Applied
from wms.jobs.clusters import lifecycle
from wms.jobs.clusters.services import locked_clusters
from wms.jobs.models import OutputLease
from wms.jobs.sandboxes.leases import latest_end, lease_of

_DAY_S = 86_400


@transaction.atomic
def prolong_outputs(
    cluster_ids: Collection[int], *, days: int, actor: Actor, reason: str
) -> Applied:
    """Keep the outputs of ended clusters for so many days from now.

    Skipped are clusters that have not ended, whose outputs are kept in any case; those whose
    outputs are kept longer, and those whose removal has begun. Raises NotFound, NotPermitted,
    ReasonRequired, InvalidInput.
    """
    locked_clusters(cluster_ids, actor)
    if not reason.strip():
        raise ReasonRequired("prolong")
    until = _checked_end(days, timezone.now())
    leases = OutputLease.objects.filter(
        pk__in=cluster_ids, kept_until__lt=until, removal_began_at=None
    )
    before = dict(
        leases.order_by("pk").select_for_update(of=("self",)).values_list("pk", "kept_until")
    )
    # Those that a sweep had locked may have begun to go meanwhile: the query has looked again.
    OutputLease.objects.filter(pk__in=before).update(kept_until=until)
    facts = {
        pk: {"kept_until": [was.isoformat(), until.isoformat()], "reason": reason.strip()}
        for pk, was in before.items()
    }
    lifecycle.note("prolong", facts, actor=actor)
    targets = [f"cluster {pk}" for pk in before]
    record_actions("prolong outputs", targets=targets, actor=actor, reason=reason)
    return Applied(sorted(before), sorted(set(cluster_ids).difference(before)))


@transaction.atomic
def prolong_outputs_of(cluster_id: int, *, days: int, actor: Actor, reason: str) -> OutputLease:
    """Keep the outputs of one cluster for so many days from now.

    Raises as `prolong_outputs`, and Conflict where that skips the cluster.
    """
    prolonged = prolong_outputs([cluster_id], days=days, actor=actor, reason=reason).changed
    lease = lease_of(cluster_id)
    if lease is None:
        raise Conflict(
            f"Cluster {cluster_id} has not ended: its outputs are kept, and their time begins then."
        )
    if not prolonged and lease.removal_began_at is not None:
        raise Conflict(
            f"The time of the outputs of cluster {cluster_id} was over at "
            f"{lease.kept_until:%Y-%m-%d %H:%M} UTC: they have been removed, or are being removed."
        )
    if not prolonged:
        raise Conflict(
            f"The outputs of cluster {cluster_id} are kept until "
            f"{lease.kept_until:%Y-%m-%d %H:%M} UTC, which is later."
        )
    return lease


def _checked_end(days: int, now: datetime) -> datetime:
    most = int(conf().outputs_kept_most_s / _DAY_S)
    if not 1 <= days <= most:
        raise InvalidInput.of(f"must be from 1 to {most}", field="days")
    return min(now + timedelta(days=days), latest_end(now))
