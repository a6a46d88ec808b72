"""Endpoint that compares two DAGs, and its serializers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.chosen_fields import FIELDS
from portal.api.shapes import NumbersByNameField
from portal.shared.dag_comparisons import Compared, compared, read_question
from wms.dags.reading.comparing import CHOICES, DIFFERENCES, MOST_LINES, Sums
from wms.dags.reading.selectors import find_dag
from wms.dags.states import NodeState


class SiteNodesSerializer(serializers.Serializer[Any]):
    """Number of nodes whose latest job was at a site."""

    site = serializers.CharField()
    nodes = serializers.IntegerField()


class SumsSerializer(serializers.Serializer[Any]):
    """Sums of one of two compared DAGs. Times are in seconds."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    state = serializers.CharField()
    nodes = NumbersByNameField(help_text="Nodes by state.")
    elapsed_s = serializers.FloatField(help_text="From its match to its end, or until now.")
    wall_s = serializers.FloatField(help_text="Wall time of the nodes' latest attempts.")
    queue_s = serializers.FloatField()
    core_hours = serializers.FloatField(help_text="Of all attempts that have ended.")
    failed_core_hours = serializers.FloatField()
    lost_core_hours = serializers.FloatField()
    sites = SiteNodesSerializer(many=True, help_text="Those with most nodes.")
    more_sites = serializers.IntegerField(help_text="How many more there are.")


class NodeSideSerializer(serializers.Serializer[Any]):
    """Node in one of the DAGs. Times are in seconds."""

    id = serializers.IntegerField()
    state = serializers.ChoiceField(choices=NodeState.choices)
    site = serializers.CharField(help_text="Of its latest job; empty before it ran.")
    tries = serializers.IntegerField(help_text="Its retries, and attempts of its latest job.")
    exit_code = serializers.IntegerField(allow_null=True)
    signal = serializers.IntegerField(allow_null=True)
    cause = serializers.CharField()
    queue_s = serializers.FloatField(
        allow_null=True, help_text="From the job's submission to the start of its latest attempt."
    )
    wall_s = serializers.FloatField(allow_null=True, help_text="Of the latest attempt.")


class ComparedNodeSerializer(serializers.Serializer[Any]):
    """Nodes of one name in both DAGs."""

    name = serializers.CharField()
    here = NodeSideSerializer(allow_null=True)
    there = NodeSideSerializer(allow_null=True)
    slower_s = serializers.FloatField(allow_null=True, help_text="How much longer it ran here.")
    differences = serializers.ListField(child=serializers.ChoiceField(choices=list(DIFFERENCES)))


class ChangedDescriptionSerializer(serializers.Serializer[Any]):
    """Submit description that is not the same in both, or stands in one alone."""

    name = serializers.CharField()
    is_here = serializers.BooleanField()
    is_there = serializers.BooleanField()


class ComparisonSerializer(serializers.Serializer[Any]):
    """Comparison of two DAGs: sums, counts, and a page of nodes."""

    here = SumsSerializer()
    there = SumsSerializer()
    counts = NumbersByNameField(help_text="Nodes by kind of difference.")
    descriptions = ChangedDescriptionSerializer(many=True)
    are_descriptions_cut = serializers.BooleanField()
    total = serializers.IntegerField(help_text="Nodes that were chosen.")
    next_offset = serializers.IntegerField(
        allow_null=True, help_text="Where the next page begins; null on the last one."
    )
    results = ComparedNodeSerializer(many=True)


class CompareDag(APIView):
    """Comparison of a DAG with another."""

    @extend_schema(
        operation_id="dags_compare",
        summary="Compare a DAG with another",
        parameters=[
            OpenApiParameter("with", OpenApiTypes.INT64, required=True, description="Other DAG."),
            OpenApiParameter(
                "differs", str, enum=list(CHOICES), description="Which nodes; by default all."
            ),
            OpenApiParameter("offset", int, description="Nodes that are passed by."),
            OpenApiParameter("page_size", int, description=f"At most {MOST_LINES}; 100."),
        ],
        responses={200: ComparisonSerializer, **refusals(400, 404, 429)},
    )
    def get(self, request: Request, dag_id: int) -> Response:
        """Nodes by name: differences first, and the largest slow-downs first."""
        user = caller(request)
        here = find_dag(user, dag_id)
        question = read_question(request.query_params.dict(), known=frozenset({FIELDS}))
        found = compared(user, here, question)
        value, passed = found.comparison, question.offset + len(found.comparison.lines)
        has_more = bool(value.lines) and passed < value.total
        body = {
            "here": _sums(found, "here"),
            "there": _sums(found, "there"),
            "counts": value.counts,
            "descriptions": value.descriptions,
            "are_descriptions_cut": value.are_descriptions_cut,
            "total": value.total,
            "next_offset": passed if has_more else None,
            "results": value.lines,
        }
        return Response(ComparisonSerializer(body).data)


def _sums(found: Compared, side: str) -> dict[str, Any]:
    dag, sums = getattr(found, side), getattr(found.comparison, side)
    assert isinstance(sums, Sums)
    spent = sums.use.spent
    return {
        "id": dag.pk,
        "name": dag.name,
        "state": dag.state,
        "nodes": sums.states.every,
        "elapsed_s": sums.elapsed_s,
        "wall_s": sums.wall_s,
        "queue_s": sums.queue_s,
        "core_hours": sums.use.core_hours,
        "failed_core_hours": spent.failed_s / 3600,
        "lost_core_hours": spent.lost_s / 3600,
        "sites": [{"site": site, "nodes": nodes} for site, nodes in sums.sites],
        "more_sites": sums.more_sites,
    }
