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
from wms.dags.reading.drawing_states import DRAWN, changes_since, read_version
from wms.dags.reading.selectors import find_dag


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


class GraphChangesSerializer(serializers.Serializer[Any]):
    """The states that changed since a version, and perhaps some that did not."""

    version = serializers.CharField()
    changed = serializers.DictField(
        child=serializers.IntegerField(),
        allow_null=True,
        help_text="The code of each node by its number; null for too many: ask for the graph.",
    )


class DagGraph(APIView):
    """The nodes of a DAG by level and place, its arcs, and the states of the nodes.

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
            }
        )


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
