"""Services for placement requests: remove them."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.transitions import Applied
from wms.placement import operations
from wms.placement.models import PlacementRequest
from wms.placement.policy import require_steering
from wms.placement.states import TERMINAL


@transaction.atomic
def remove_requests(request_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End requests for good; a transfer that runs is stopped within seconds.

    Raises NotPermitted and ReasonRequired; then nothing is removed.
    """
    requests = PlacementRequest.objects.filter(pk__in=request_ids).exclude(state__in=TERMINAL)
    require_steering(actor, list(requests.order_by("pk").select_for_update(of=("self",))))
    applied = operations.remove_requests(request_ids, actor=actor, reason=reason)
    targets = [f"placement request {request_id}" for request_id in applied.changed]
    record_actions("remove placement request", targets=targets, actor=actor, reason=reason)
    return applied
