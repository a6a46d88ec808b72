"""Endpoint of the links between storages: success, rate, what waits, and the last error of each."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller
from wms.placement.links import links_seen_by


class LinkSerializer(serializers.Serializer[Any]):
    """Transfers from one storage, or host that is in none, to another."""

    source = serializers.CharField()
    destination = serializers.CharField()
    attempts = serializers.IntegerField(help_text="That ended within the period.")
    successes = serializers.IntegerField()
    success_rate = serializers.FloatField(allow_null=True, help_text="From 0 to 1.")
    bytes_per_s = serializers.FloatField(allow_null=True, help_text="Mean of those that succeeded.")
    running = serializers.IntegerField(help_text="Requests under way now.")
    waiting = serializers.IntegerField(help_text="Requests that wait now.")
    last_error = serializers.CharField(allow_blank=True)
    last_error_at = serializers.DateTimeField(allow_null=True)
    last_error_request = serializers.IntegerField(allow_null=True)


class LinksSerializer(serializers.Serializer[Any]):
    """All links of transfers that the caller may see."""

    since = serializers.DateTimeField(help_text="When the period began.")
    is_cut = serializers.BooleanField(
        help_text="Whether there were more attempts or requests than are counted."
    )
    links = LinkSerializer(many=True)


class PlacementLinks(APIView):
    """Links between storages."""

    @extend_schema(summary="Links between storages: how transfers go", responses=LinksSerializer)
    def get(self, request: Request) -> Response:
        """Links by name of their ends."""
        return Response(LinksSerializer(links_seen_by(caller(request), timezone.now())).data)
