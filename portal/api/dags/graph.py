"""Endpoints and serializers of a DAG's graph as arrays: node positions, arcs, states, changes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.shared.drawings import drawing_of, states_of
from wms.dags.joins.selectors import conditions_by_arc, partial_joins
from wms.dags.models import Dag
from wms.dags.reading.drawing import Drawing
from wms.dags.reading.drawing_states import DRAWN, changes_since, read_version
from wms.dags.reading.selectors import find_dag, kinds_but_jobs


class GraphConditionSerializer(serializers.Serializer[Any]):
    """Condition of one arc, which is named by the numbers of its ends."""

    parent = serializers.IntegerField()
    child = serializers.IntegerField()
    expression = serializers.CharField()
    holds = serializers.BooleanField(allow_null=True, help_text="Null until the parent has ended.")
    reason = serializers.CharField()


class GraphJoinSerializer(serializers.Serializer[Any]):
    """Join of a node that does not need all of its arcs: JOIN ANY, or JOIN n."""

    node = serializers.IntegerField()
    needed = serializers.IntegerField(help_text="So many arcs have to hold.")
    arcs = serializers.IntegerField()
    held = serializers.IntegerField(help_text="Arcs that hold.")
    ruled_out = serializers.IntegerField(help_text="Arcs whose conditions do not hold.")
    lost = serializers.IntegerField(help_text="Arcs from failures that nothing handles.")


class GraphSerializer(serializers.Serializer[Any]):
    """Columns with a number for each node, or for each arc; nodes are counted from 0."""

    version = serializers.CharField(help_text="Up to where the states are known.")
    states = serializers.ListField(child=serializers.CharField(), help_text="What codes mean.")
    ids = serializers.ListField(child=serializers.IntegerField())
    levels = serializers.ListField(child=serializers.IntegerField())
    places = serializers.ListField(child=serializers.IntegerField())
    codes = serializers.ListField(child=serializers.IntegerField(), help_text="Of the states.")
    parents = serializers.ListField(child=serializers.IntegerField(), help_text="Of each arc.")
    children = serializers.ListField(child=serializers.IntegerField(), help_text="Of each arc.")
    kinds = serializers.DictField(
        child=serializers.CharField(),
        help_text="What nodes are that are no jobs, by number: gates, inner DAGs, FINAL.",
    )
    conditions = GraphConditionSerializer(many=True)
    joins = GraphJoinSerializer(many=True)


class GraphChangesSerializer(serializers.Serializer[Any]):
    """The states that changed since a version, and perhaps some that did not."""

    version = serializers.CharField()
    changed = serializers.DictField(
        child=serializers.IntegerField(),
        allow_null=True,
        help_text="The code of each node by its number; null for too many: ask for the graph.",
    )


class DagGraph(APIView):
    """The nodes of a DAG by level and place, its arcs and conditions, and the nodes' states.

    With hundreds of thousands of nodes the answer has some megabytes.
    """

    @extend_schema(responses={200: GraphSerializer, **refusals(404)})
    def get(self, request: Request, dag_id: int) -> Response:
        """Whole graph."""
        dag = find_dag(caller(request), dag_id)
        drawing = drawing_of(dag)
        states = states_of(dag)
        return Response(
            {
                "version": str(states.version),
                "states": DRAWN,
                "ids": [drawing.first_id + offset for offset in drawing.offsets],
                "levels": drawing.levels.tolist(),
                "places": drawing.orders.tolist(),
                "codes": list(states.codes),
                "parents": drawing.parents.tolist(),
                "children": drawing.children.tolist(),
                "kinds": {drawing.index_of(pk): kind for pk, kind in kinds_but_jobs(dag).items()},
                "conditions": _conditions(dag, drawing),
                "joins": _joins(dag, drawing),
            }
        )


def _conditions(dag: Dag, drawing: Drawing) -> list[dict[str, Any]]:
    """Conditions of the arcs that have one, in the order of their parents."""
    return [
        {
            "parent": drawing.index_of(parent),
            "child": drawing.index_of(child),
            "expression": condition.expression,
            "holds": condition.holds,
            "reason": condition.reason,
        }
        for (parent, child), condition in conditions_by_arc(dag).items()
    ]


def _joins(dag: Dag, drawing: Drawing) -> list[dict[str, Any]]:
    return [
        {
            "node": drawing.index_of(pk),
            "needed": join.needed_count,
            "arcs": join.arc_count,
            "held": join.held_count,
            "ruled_out": join.ruled_out_count,
            "lost": join.lost_count,
        }
        for pk, join in partial_joins(dag).items()
    ]


class DagGraphChanges(APIView):
    """The states of nodes that changed since a version."""

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "since", OpenApiTypes.STR, required=True, description="A version as it was told."
            )
        ],
        responses={200: GraphChangesSerializer, **refusals(400, 404)},
    )
    def get(self, request: Request, dag_id: int) -> Response:
        """Differences since a version."""
        dag = find_dag(caller(request), dag_id)
        known = read_version(request.query_params.get("since", ""))
        if known is None:
            raise ValidationError({"since": "give the version from which on, as it was told"})
        changes = changes_since(dag, drawing_of(dag), known)
        return Response({"version": str(changes.version), "changed": changes.codes})
