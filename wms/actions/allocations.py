"""Kind allocation: space that is kept at a storage, and its release by hand."""

from __future__ import annotations

from django.db.models import Q

from wms.actions.actions import Action, InApi, OnPage
from wms.actions.kinds import Kind, actions, one_of_many
from wms.actions.obstacles import when
from wms.placement.models import PlacementAllocation
from wms.placement.policy import may_steer
from wms.placement.space import release_allocations
from wms.placement.storages.selectors import visible_allocations

ALLOCATIONS = Kind(
    name="allocations",
    noun="allocation",
    nouns="allocations",
    model=PlacementAllocation,
    visible=visible_allocations,
    permits=lambda user, allocation: may_steer(user, allocation.owner_id),
    actions=actions(
        Action(
            "release",
            "Release",
            [when(Q(released_at__isnull=False), "it is over")],
            one_of_many(release_allocations),
            page=OnPage(
                "Gives the space back; files in it stay. Transfers that name it find no room from "
                "now on, and a request that would release it fails.",
                "is released",
            ),
            api=InApi(
                "Give the space of an allocation back",
                "Release it; the files in it stay. Needs a reason.",
            ),
        ),
    ),
)
