"""Endpoint and serializers of use and waste by site, user, group, label, day or month."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.chosen_fields import FIELDS
from portal.shared.efficiency import DEFAULT_DAYS, MAX_DAYS, read_question
from wms.accounting.accounts import UseBy, UseLine


class CoreSecondsSerializer(serializers.Serializer[Any]):
    """Core-seconds by what became of them."""

    useful_s = serializers.FloatField()
    failed_s = serializers.FloatField()
    lost_s = serializers.FloatField()
    idle_s = serializers.FloatField()
    validation_s = serializers.FloatField()
    total_s = serializers.FloatField()
    wasted_s = serializers.FloatField()
    efficiency = serializers.FloatField(
        allow_null=True, help_text="The useful part, from 0 to 1; null of nothing."
    )


class UseSerializer(serializers.Serializer[UseLine]):
    """Use of one site, user, group, label, day or month."""

    name = serializers.CharField(allow_blank=True, help_text="Empty: in the name of no group.")
    spent = CoreSecondsSerializer()
    cpu_s = serializers.FloatField(help_text="CPU time of payloads.")
    wall_s = serializers.FloatField(help_text="Wall time of payloads, whatever their cores.")
    cpu_efficiency = serializers.FloatField(
        allow_null=True, help_text="CPU time by the core-seconds of attempts; null of nothing."
    )
    attempts = serializers.IntegerField()
    failed_attempts = serializers.IntegerField()
    lost_attempts = serializers.IntegerField()
    pilots = serializers.IntegerField()


class UseLineSerializer(UseSerializer):
    """The accounts of one site, user, group, label, day or month, and those before if compared."""

    before = UseSerializer(
        allow_null=True, help_text="The same of as many days before; null unless compared."
    )


class Efficiency(APIView):
    """Efficiency and waste."""

    @extend_schema(
        summary="What became of core-seconds",
        parameters=[
            OpenApiParameter("by", OpenApiTypes.STR, enum=list(UseBy), description="default: site"),
            OpenApiParameter(
                "days",
                OpenApiTypes.INT,
                description=f"The last days, `until` included: 1 to {MAX_DAYS}, "
                f"default {DEFAULT_DAYS}",
            ),
            OpenApiParameter("since", OpenApiTypes.DATE, description="First day, in UTC"),
            OpenApiParameter("until", OpenApiTypes.DATE, description="Last day; default: today"),
            OpenApiParameter("site", OpenApiTypes.STR, description="Only at this site"),
            OpenApiParameter("user", OpenApiTypes.STR, description="Only jobs of this user"),
            OpenApiParameter("group", OpenApiTypes.STR, description="Only in this group's name"),
            OpenApiParameter("label", OpenApiTypes.STR, description="Only jobs with this label"),
            OpenApiParameter(
                "compare",
                OpenApiTypes.STR,
                enum=["before"],
                description="Tells each line's use of as many days before too",
            ),
        ],
        responses={200: UseLineSerializer(many=True), **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Answer with a line for each; most wasted first, days and months latest first."""
        today = timezone.now().astimezone(UTC).date()
        given = {name: each for name, each in request.query_params.items() if name != FIELDS}
        question = read_question(given, today=today)
        answer = question.answer(caller(request), today=today)
        lines = [
            {**UseSerializer(line).data, "before": _before(line.name, answer.before)}
            for line in answer.lines
        ]
        return Response(lines)


def _before(name: str, before: Mapping[str, UseLine] | None) -> dict[str, Any] | None:
    """Accounts of the days before, of nothing too; None unless they are asked for."""
    if before is None:
        return None
    return dict(UseSerializer(before.get(name, UseLine(name))).data)
