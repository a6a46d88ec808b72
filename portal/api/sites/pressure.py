"""Endpoints and serializers of pilot pressure on a queue: requests now and in the last day.

Also whether its batch system answers, for whom private pilots are needed, and its test pilots.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.actions import ActionView
from portal.api.base import ListView, caller, refusals
from portal.api.pilots.shapes import PilotDetailSerializer
from wms.pilots.connection_models import ConnectionTest
from wms.pilots.models import Pilot
from wms.pilots.pressure.selectors import (
    OwnerLine,
    Pressure,
    find_pressure,
    owner_lines,
    records_of,
)
from wms.pilots.pressure_models import ElementContact, PressureRecord, PressureRequest
from wms.pilots.selectors import find_pilot
from wms.sites.selectors import find_queue


def _frontend() -> serializers.CharField:
    return serializers.CharField(
        source="frontend.name",
        default=None,
        allow_null=True,
        help_text="Null for the default frontend.",
    )


class RequestSerializer(serializers.ModelSerializer[PressureRequest]):
    """Request for pilots of a queue, of all frontends together, and the result of its last turn."""

    reasons = serializers.ListField(
        child=serializers.CharField(), help_text="What cut wanted down to granted."
    )
    turn_reasons = serializers.ListField(
        child=serializers.CharField(), help_text="What cut granted down to submitted."
    )

    class Meta:
        model = PressureRequest
        fields = [
            "waiting_jobs", "wanted", "granted", "ceiling", "reasons", "updated_at", "lease_until",
            "submitted", "turn_reasons", "served_at",
        ]  # fmt: skip


class RequestOfFrontendSerializer(RequestSerializer):
    """Request of one frontend for pilots of a queue, and the result of its last turn."""

    frontend = _frontend()

    class Meta(RequestSerializer.Meta):
        fields = ["frontend", *RequestSerializer.Meta.fields]


class ContactSerializer(serializers.ModelSerializer[ElementContact]):
    """A kind of question that the batch system does not answer as it should."""

    credential = serializers.CharField(
        source="credential.name",
        default=None,
        allow_null=True,
        help_text="What it was shown; null: what the queue's settings name.",
    )

    class Meta:
        model = ElementContact
        fields = ["kind", "credential", "failures", "failing_since", "reason", "next_at"]


class OwnerLineSerializer(serializers.Serializer[OwnerLine]):
    """An owner of private pilots at a queue whose pilots have several."""

    owner = serializers.CharField()
    group = serializers.CharField(allow_blank=True, help_text="Empty for none.")
    is_shared = serializers.BooleanField(help_text="They take the jobs of all its members.")
    needed = serializers.IntegerField(help_text="Pilots that should wait.")
    draws = serializers.FloatField(help_text="Part of the draws, in per cent.")
    queued = serializers.IntegerField()
    running = serializers.IntegerField()


class ConnectionTestSerializer(serializers.ModelSerializer[ConnectionTest]):
    """A test of the connection to a batch system; without an outcome it is under way, or lost."""

    is_lost = serializers.BooleanField(help_text="Whether no end is to be expected any more.")

    class Meta:
        model = ConnectionTest
        fields = [
            "asked_at", "asked_by", "ended_at", "is_lost", "outcome", "detail", "took_s", "total",
            "free",
        ]  # fmt: skip


class PressureSerializer(serializers.Serializer[Pressure]):
    """The pressure on a queue now."""

    site = serializers.CharField(source="queue.site.name")
    queue = serializers.CharField(source="queue.name")
    request = RequestSerializer(
        allow_null=True, help_text="Null before the director has looked at the queue."
    )
    requests = RequestOfFrontendSerializer(many=True, help_text="That of each frontend.")
    troubles = ContactSerializer(many=True)
    connection_test = ConnectionTestSerializer(
        source="connection", allow_null=True, help_text="The last one; null if there was none."
    )
    owners = serializers.SerializerMethodField(
        help_text="Where each pilot is private to somebody else: for whom they are."
    )

    @extend_schema_field(OwnerLineSerializer(many=True))
    def get_owners(self, pressure: Pressure) -> list[dict[str, Any]]:
        """Owners by need, most first; none where pilots have one owner or none."""
        user = caller(self.context["request"])
        lines: list[dict[str, Any]] = OwnerLineSerializer(
            owner_lines(user, pressure), many=True
        ).data
        return lines


class RecordSerializer(serializers.ModelSerializer[PressureRecord]):
    """Request of a frontend at one time; submitted and removed count since the one before."""

    frontend = _frontend()
    reasons = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = PressureRecord
        fields = [
            "at", "frontend", "waiting_jobs", "wanted", "granted", "ceiling", "submitted",
            "removed", "reasons",
        ]  # fmt: skip


class QueuePressure(GenericAPIView[Any]):
    """Request for pilots of a queue now, pilots submitted, and each limit that reduced it."""

    serializer_class = PressureSerializer

    @extend_schema(
        summary="The pressure of pilots on a queue",
        responses={200: PressureSerializer, **refusals(404)},
    )
    def get(self, request: Request, name: str, queue: str) -> Response:
        """The latest request of the director and the latest turn of the submitter."""
        pressure = find_pressure(caller(request), name, queue)
        return Response(self.get_serializer(pressure).data)


class QueueAction(ActionView):
    """One deed at a queue: a new test pilot, or a test of the connection."""

    shape = PilotDetailSerializer
    status = status.HTTP_201_CREATED

    def named(self, request: Request, **which: Any) -> int:
        """The queue's id."""
        return find_queue(caller(request), which["name"], which["queue"]).pk

    def answer(self, request: Request, which: int, done: Pilot) -> Any:
        """The pilot."""
        return self.shape(find_pilot(caller(request), done.uuid)).data


class QueuePressureHistory(ListView):
    """Requests for pilots of a queue in the last day, one a minute, newest first."""

    queryset = PressureRecord.objects.none()
    serializer_class = RecordSerializer

    def get_queryset(self) -> QuerySet[PressureRecord]:
        """The queue's records."""
        user = caller(self.request)
        pressure = find_pressure(user, self.kwargs["name"], self.kwargs["queue"])
        return records_of(user, pressure.queue)
