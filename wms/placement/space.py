"""Allocations as people see and steer them: all that live, one by its id, released by hand.

How requests make, fill and release them is in `allocations`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import BigIntegerField, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from wms.accounting.walls import within_reach
from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.errors import NotFound, NotPermitted, ReasonRequired
from wms.core.models import Role, User
from wms.core.transitions import Applied
from wms.placement.allocations import look_again
from wms.placement.models import PlacementAllocation, PlacementAttempt
from wms.placement.policy import may_steer
from wms.placement.storages.selectors import allocations_within, visible_allocations

#: Of those whose time is over the release is written a little later.
_OVER = Q(released_at__isnull=False) | Q(expires_at__lte=Now())


def listed_allocations(user: User, now: datetime) -> QuerySet[PlacementAllocation]:
    """Live allocations that the user may see with the bytes `taken`, those that end first first."""
    return _shown(user).filter(released_at=None, expires_at__gt=now).order_by("expires_at", "pk")


def find_allocation(user: User, allocation_id: int) -> PlacementAllocation:
    """One allocation that the user may see, also one that is over. Raises NotFound."""
    found = _shown(user).filter(pk=allocation_id).first()
    if found is None:
        raise NotFound(f"There is no allocation {allocation_id}, or you may not see it.")
    return found


def _shown(user: User) -> QuerySet[PlacementAllocation]:
    attempts = PlacementAttempt.objects.filter(
        Q(exit_code=None) | Q(exit_code=0), allocation=OuterRef("pk")
    ).order_by()
    each = Coalesce("size_bytes", "held_bytes", Value(0))
    sums = attempts.values("allocation").annotate(all=Sum(each)).values("all")
    taken = Coalesce(Subquery(sums), 0, output_field=BigIntegerField())
    return visible_allocations(user).select_related("owner", "storage").annotate(taken=taken)


@transaction.atomic
def release_allocations(allocation_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Give space back before its time is over; the files in it stay.

    Those that are over are skipped. Raises NotFound, NotPermitted and ReasonRequired, in this
    order; then nothing is released.
    """
    named = within_reach(
        actor,
        PlacementAllocation.objects.filter(pk__in=allocation_ids),
        allocations_within(actor.user),
    )
    rows = list(named.order_by("pk").select_for_update(of=("self",)))
    missing = sorted(set(allocation_ids) - {each.pk for each in rows})
    if missing:
        raise NotFound(f"There is no allocation {', '.join(map(str, missing))}.")
    _require_steering(actor, rows)
    if not reason.strip():
        raise ReasonRequired(event="release")
    live = PlacementAllocation.objects.filter(pk__in=[each.pk for each in rows]).exclude(_OVER)
    changed = sorted(live.values_list("pk", flat=True))
    PlacementAllocation.objects.filter(pk__in=changed).update(released_at=Now())
    look_again(timezone.now())
    targets = [f"allocation {each.pk}, {each.name} at {each.host}" for each in rows]
    record_actions(
        "release allocation",
        targets=[text for text, each in zip(targets, rows, strict=True) if each.pk in changed],
        actor=actor,
        reason=reason,
    )
    return Applied(changed=changed, skipped=sorted(set(allocation_ids) - set(changed)))


def _require_steering(actor: Actor, allocations: Collection[PlacementAllocation]) -> None:
    if actor.is_system:
        return
    refused = [
        str(each.pk)
        for each in allocations
        if actor.user is None or not may_steer(actor.user, each.owner_id)
    ]
    if refused:
        raise NotPermitted(
            f"{actor.name} may not release allocation {', '.join(refused)}: it belongs to another "
            f"user, and this needs the role {Role.SHIFTER.label}."
        )
