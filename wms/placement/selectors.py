"""Selectors of placement requests that a user may see: list, one by its id; ends of batches.

Also how many of everybody are under way.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from wms.accounting.walls import seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.jobs.policy import in_workspaces
from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.states import ALIVE, RequestState


def visible_requests(user: User) -> QuerySet[PlacementRequest]:
    """The requests that the user may read: those of the user's frontends."""
    return seen_by(user, PlacementRequest.objects.all(), in_workspaces)


def listed_requests(user: User) -> QuerySet[PlacementRequest]:
    """Visible requests with the columns of a list, latest first."""
    return (
        visible_requests(user)
        .select_related("owner", "source_storage", "destination_storage")
        .defer("attributes")
        .order_by("-pk")
    )


def find_request(user: User, request_id: int) -> PlacementRequest:
    """One visible request with its owner and storages. Raises NotFound."""
    requests = visible_requests(user).select_related(
        "owner", "source_storage", "destination_storage"
    )
    request = requests.filter(pk=request_id).first()
    if request is None:
        raise NotFound(f"There is no placement request {request_id}, or you may not see it.")
    return request


def count_under_way() -> dict[str, int]:
    """Number of everybody's requests in each state that is no end. One query, by an index."""
    rows = PlacementRequest.objects.filter(state__in=sorted(ALIVE)).order_by()
    counts = dict(rows.values_list("state").annotate(Count("pk")))
    return {state: counts.get(state, 0) for state in sorted(ALIVE)}


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """Exit code of the requests of a text: 0 if all are done, else as the first that is not."""

    exit_code: int = 0
    reason: str = ""
    is_removed: bool = False


def ends_of_batches(leader_ids: Collection[int]) -> dict[int, BatchEnd]:
    """Ends of batches, by the ids of their leaders; two queries at most."""
    if not leader_ids:
        return {}
    ids = PlacementRequest.objects.filter(pk__in=leader_ids).values_list("pk", flat=True)
    ends = {pk: BatchEnd() for pk in ids}
    undone = (
        PlacementRequest.objects.filter(Q(pk__in=leader_ids) | Q(leader__in=leader_ids))
        .exclude(state=RequestState.COMPLETED)
        .order_by("pk")
        .only("state", "state_reason", "leader_id", "attempt_number")
    )
    first: dict[int, PlacementRequest] = {}
    for request in undone:
        first.setdefault(request.leader_id or request.pk, request)
    codes = dict(
        PlacementAttempt.objects.filter(request__in=first.values())
        .order_by("number")
        .values_list("request_id", "exit_code")
    )
    for leader_id, request in first.items():
        is_removed = request.state == RequestState.REMOVED
        code = codes.get(request.pk) or 1
        ends[leader_id] = BatchEnd(code, request.state_reason, is_removed)
    return ends
