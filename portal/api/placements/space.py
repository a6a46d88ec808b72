"""Endpoints and serializers of allocations of space: those that live, and their release."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request

from portal.api.actions import ActionView
from portal.api.base import ListView, caller
from wms.core.errors import Conflict
from wms.core.transitions import Applied
from wms.placement.models import PlacementAllocation
from wms.placement.space import find_allocation, listed_allocations


class AllocationSerializer(serializers.ModelSerializer[PlacementAllocation]):
    """Space that is kept at a storage until a time."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    storage = serializers.CharField(
        source="storage.name", default=None, read_only=True, allow_null=True
    )
    taken_bytes = serializers.IntegerField(
        source="taken", read_only=True, help_text="By files, and by transfers that run."
    )

    class Meta:
        model = PlacementAllocation
        fields = [
            "id", "name", "owner", "storage", "host", "size_bytes", "taken_bytes", "created_at",
            "expires_at", "released_at",
        ]  # fmt: skip


class AllocationList(ListView):
    """Allocations that live, those made last first."""

    queryset = PlacementAllocation.objects.none()
    serializer_class = AllocationSerializer

    def get_queryset(self) -> QuerySet[PlacementAllocation]:
        """Everything that the caller may see."""
        return listed_allocations(caller(self.request), timezone.now()).order_by("-pk")


class AllocationAction(ActionView):
    """One change of one allocation."""

    shape = AllocationSerializer

    def answer(self, request: Request, which: int, done: Applied) -> Any:
        """The allocation. Raises Conflict where nothing was done."""
        found = find_allocation(caller(request), which)
        if not done.changed:
            raise Conflict(f"Allocation {which} is over: nothing was done.")
        return AllocationSerializer(found).data
