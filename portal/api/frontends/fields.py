"""Fields by which the API names frontends and queues."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from wms.accounting.models import Frontend
from wms.sites.models import Queue


class FrontendField(serializers.SlugRelatedField[Frontend]):
    """A frontend by its name."""

    def to_internal_value(self, data: Any) -> Frontend:
        """The frontend. No name has a null character, with which PostgreSQL cannot compare."""
        frontend: Frontend = super().to_internal_value(str(data).replace("\0", "?"))
        return frontend


@extend_schema_field({"type": "string", "nullable": True})
class QueueField(serializers.Field[Queue, Any, str, Any]):
    """A queue by its site's name and its own, as `SITE/QUEUE`."""

    def to_internal_value(self, data: Any) -> Queue:
        """The queue."""
        site, _, name = str(data).replace("\0", "?").partition("/")
        queue = Queue.objects.select_related("site").filter(site__name=site, name=name).first()
        if queue is None:
            raise serializers.ValidationError("There is no such queue: name SITE/QUEUE.")
        return queue

    def to_representation(self, value: Queue) -> str:
        """Its names."""
        return str(value)
