"""Endpoints of negotiation cycles: list, and one with its matches and whom it left over."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import ListView, caller, refusals
from portal.api.negotiation.shapes import (
    CycleDetailSerializer,
    CycleMatchSerializer,
    CycleSerializer,
    LeftOverSerializer,
)
from wms.dags.models import NegotiationCycle
from wms.dags.negotiation.records import find_cycle, left_over_of, matches_of, visible_cycles

_MOST_MATCHES = 1000


class CycleFilter(filters.FilterSet):
    """Filter of cycles by whether any DAG asked for a site."""

    busy = filters.BooleanFilter(
        method="of_busy",
        label="true: those in which DAGs asked for sites; false: the others",
    )  # fmt: skip

    class Meta:
        model = NegotiationCycle
        fields: list[str] = []

    def of_busy(self, cycles: QuerySet[Any], name: str, value: bool) -> QuerySet[Any]:
        """Cycles with requests, or without."""
        return cycles.filter(requests__gt=0) if value else cycles.filter(requests=0)


class CycleList(ListView):
    """Negotiation cycles of the last 30 days, latest first."""

    queryset = NegotiationCycle.objects.none()
    serializer_class = CycleSerializer
    filterset_class = CycleFilter

    def get_queryset(self) -> QuerySet[NegotiationCycle]:
        """Everything that the caller may see."""
        return visible_cycles(caller(self.request))


class CycleDetail(APIView):
    """One negotiation cycle."""

    @extend_schema(
        summary="Read a negotiation cycle",
        responses={200: CycleDetailSerializer, **refusals(404)},
    )
    def get(self, request: Request, cycle_id: int) -> Response:
        """Answer with what it did, its matches, and why other DAGs were left over."""
        user = caller(request)
        cycle = find_cycle(user, cycle_id)
        groups = [
            {"reason": each.reason, "count": each.count, "dags": [dag.pk for dag in each.dags]}
            for each in left_over_of(user, cycle)
        ]
        matches = matches_of(user, cycle)[:_MOST_MATCHES]
        told = {
            **CycleSerializer(cycle).data,
            "match_list": CycleMatchSerializer(matches, many=True).data,
            "left_over": LeftOverSerializer(groups, many=True).data,
        }
        return Response(told)
