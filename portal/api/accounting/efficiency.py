"""Endpoint and serializers of efficiency and waste in core-seconds by site, user or day."""

from __future__ import annotations

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
from portal.shared.efficiency import DEFAULT_DAYS, MAX_DAYS, read_question
from wms.accounting.core_seconds import UseBy, UseLine


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


class UseLineSerializer(serializers.Serializer[UseLine]):
    """The accounts of one site, user or day."""

    name = serializers.CharField()
    spent = CoreSecondsSerializer()
    attempts = serializers.IntegerField()
    pilots = serializers.IntegerField()


class Efficiency(APIView):
    """Efficiency and waste."""

    @extend_schema(
        summary="What became of core-seconds",
        parameters=[
            OpenApiParameter("by", OpenApiTypes.STR, enum=list(UseBy), description="default: site"),
            OpenApiParameter(
                "days",
                OpenApiTypes.INT,
                description=f"The last days, today (UTC) included: 1 to {MAX_DAYS}, "
                f"default {DEFAULT_DAYS}",
            ),
            OpenApiParameter("site", OpenApiTypes.STR, description="Only of this site"),
        ],
        responses={200: UseLineSerializer(many=True), **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Answer with a line for each site, user or day; most wasted first, days latest first."""
        question = read_question(request.query_params.dict())
        lines = question.answer(caller(request), today=timezone.now().astimezone(UTC).date())
        return Response(UseLineSerializer(lines, many=True).data)
