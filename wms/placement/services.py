"""Service that removes placement requests, permitted and audited."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from wms.accounting.walls import within_reach
from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.errors import NotFound
from wms.core.transitions import Applied
from wms.jobs.policy import in_workspaces
from wms.placement import operations
from wms.placement.models import PlacementRequest
from wms.placement.policy import require_steering


@transaction.atomic
def remove_requests(request_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End requests for good; a transfer that runs is stopped within seconds.

    Those that have ended are skipped. Raises NotFound, NotPermitted and ReasonRequired, in this
    order; then nothing is removed.
    """
    named = within_reach(actor, PlacementRequest.objects.filter(pk__in=request_ids), in_workspaces)
    requests = list(named.order_by("pk").select_for_update(of=("self",)))
    missing = sorted(set(request_ids) - {request.pk for request in requests})
    if missing:
        raise NotFound(f"There is no placement request {', '.join(map(str, missing))}.")
    require_steering(actor, requests)
    applied = operations.remove_requests(request_ids, actor=actor, reason=reason)
    targets = [f"placement request {request_id}" for request_id in applied.changed]
    record_actions("remove placement request", targets=targets, actor=actor, reason=reason)
    return applied
