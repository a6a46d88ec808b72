"""Endpoints of the pilot pressure on queues, read-only."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.shapes import pressure as pressure_serializers
from portal.api.views.base import ListView, caller, refusals
from wms.pilots.pressure.selectors import find_pressure, records_of
from wms.pilots.pressure_models import PressureRecord


class QueuePressure(GenericAPIView[Any]):
    """What a queue is asked for now, what was submitted, and each reason that cut it down."""

    serializer_class = pressure_serializers.PressureSerializer

    @extend_schema(
        summary="The pressure of pilots on a queue",
        responses={200: pressure_serializers.PressureSerializer, **refusals(404)},
    )
    def get(self, request: Request, name: str, queue: str) -> Response:
        """The latest request of the director and the latest turn of the submitter."""
        pressure = find_pressure(caller(request), name, queue)
        return Response(self.get_serializer(pressure).data)


class QueuePressureHistory(ListView):
    """What a queue was asked for in the last day, one entry a minute, newest first."""

    queryset = PressureRecord.objects.none()
    serializer_class = pressure_serializers.RecordSerializer

    def get_queryset(self) -> QuerySet[PressureRecord]:
        """The queue's records."""
        pressure = find_pressure(caller(self.request), self.kwargs["name"], self.kwargs["queue"])
        return records_of(pressure.queue)
