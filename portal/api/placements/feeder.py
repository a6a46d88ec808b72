"""Endpoint of the feeder: how it is set, its last run, and when the next one begins."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from wms.core.actors import Actor
from wms.core.models import Role
from wms.core.policy import require_role
from wms.placement.feeding.models import Feeder
from wms.placement.feeding.selectors import feeder_status


class FeederSerializer(serializers.Serializer[Any]):
    """Program that submits placements where few are left."""

    program = serializers.CharField(allow_null=True, help_text="Its path; null where none is set.")
    below = serializers.IntegerField(
        allow_null=True, help_text="It is run where fewer requests wait or run."
    )
    is_running = serializers.BooleanField()
    runs = serializers.IntegerField(source="row.runs", help_text="How many have begun.")
    failures = serializers.IntegerField(
        source="row.failures", help_text="How many of the latest failed in a row."
    )
    active = serializers.IntegerField(
        source="row.active",
        allow_null=True,
        help_text="Requests that waited or ran when the latest run began.",
    )
    started_at = serializers.DateTimeField(
        source="row.started_at", allow_null=True, help_text="Of the latest run, as what follows."
    )
    ended_at = serializers.DateTimeField(source="row.ended_at", allow_null=True)
    exit_code = serializers.IntegerField(source="row.exit_code", allow_null=True)
    failure = serializers.CharField(
        source="row.failure", help_text="Why it was not started or was stopped."
    )
    output = serializers.CharField(source="row.output", help_text="The last lines that it said.")
    next_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the next run begins if the queue stays low; null: when this one ends, or "
        "as soon as the queue is low.",
    )


#: State where no feeder is set.
_NONE = {"program": None, "below": None, "is_running": False, "next_at": None, "row": Feeder()}


class PlacementFeeder(APIView):
    """The feeder of the installation."""

    @extend_schema(
        summary="Feeder of placements: settings, last run, next run",
        responses={200: FeederSerializer, **refusals(403)},
    )
    def get(self, request: Request) -> Response:
        """Answer for operators, since nobody knows what it says."""
        require_role(Actor.person(caller(request)), Role.OPERATOR, "see the feeder")
        return Response(FeederSerializer(feeder_status() or _NONE).data)
