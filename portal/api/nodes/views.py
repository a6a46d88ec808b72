"""Endpoints of DAG nodes: list, detail, events, jobs, script runs with output, and actions.

Actions change nodes that are named: rerun, mark as done or failed, change their rules.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.base import AcceptsAnything, ListView, caller, refusals, wants_all
from portal.api.downloads import CONTENT, send_blob
from portal.api.jobs.shapes import JobSerializer
from portal.api.log_responses import PLACE_PARAMETERS, send_part
from portal.api.nodes import shapes
from portal.api.pagination import InFileOrder
from portal.lists.filters import NodeFilter, ScriptRunFilter
from portal.shared.readable_logs import log_of_script
from wms.core.errors import NotFound
from wms.core.transitions import Applied
from wms.dags.models import Node, NodeEvent, ScriptRun
from wms.dags.reading import node_selectors, selectors
from wms.dags.reading.obstacles import obstacles_of
from wms.jobs.models import Job


class NodeList(ListView):
    """The nodes of a DAG in the order of the DAG file."""

    queryset = Node.objects.none()
    serializer_class = shapes.NodeSerializer
    filterset_class = NodeFilter
    pagination_class = InFileOrder

    def get_queryset(self) -> QuerySet[Node]:
        """The nodes with the names of their parents."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return selectors.nodes_with_parents(dag)


class NodeDetail(APIView):
    """One node with its rules, and what it waits for."""

    @extend_schema(responses={200: shapes.NodeDetailSerializer, **refusals(404)})
    def get(self, request: Request, dag_id: int, node_id: int) -> Response:
        """Node with all of its fields."""
        node = node_selectors.find_node(caller(request), dag_id, node_id)
        context = {"obstacles": obstacles_of(node, now=timezone.now())}
        return Response(shapes.NodeDetailSerializer(node, context=context).data)


class _OfNode(ListView):
    """A list that belongs to one node."""

    def node(self) -> Node:
        """The node of the address."""
        return node_selectors.find_node(
            caller(self.request), self.kwargs["dag_id"], self.kwargs["node_id"]
        )


class OneNodesEventList(_OfNode):
    """Events of a node, newest first."""

    queryset = NodeEvent.objects.none()
    serializer_class = shapes.NodeEventSerializer

    def get_queryset(self) -> QuerySet[NodeEvent]:
        """The node's events."""
        return node_selectors.events_of_node(self.node()).select_related("node")


class OneNodesJobList(_OfNode):
    """The jobs of all attempts of a node, newest first."""

    queryset = Job.objects.none()
    serializer_class = JobSerializer

    def get_queryset(self) -> QuerySet[Job]:
        """Jobs of all attempts."""
        return node_selectors.jobs_of_node(self.node())


class NodeEventList(ListView):
    """Events of the nodes of a DAG, newest first."""

    queryset = NodeEvent.objects.none()
    serializer_class = shapes.NodeEventSerializer

    def get_queryset(self) -> QuerySet[NodeEvent]:
        """The nodes' events with the nodes' names."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return selectors.node_events(dag)


class ScriptRunList(ListView):
    """The runs of the scripts of a DAG's nodes, newest first."""

    queryset = ScriptRun.objects.none()
    serializer_class = shapes.ScriptRunSerializer
    filterset_class = ScriptRunFilter

    def get_queryset(self) -> QuerySet[ScriptRun]:
        """The runs with the nodes' names."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return node_selectors.script_runs_of_dag(dag)


class ScriptOutput(APIView):
    """Output of a run of a script."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="What a run of a script printed: all of it, or a part",
        parameters=PLACE_PARAMETERS,
        responses={
            (200, "text/plain"): OpenApiTypes.STR,
            **CONTENT,
            **refusals(400, 404),
        },
    )
    def get(self, request: Request, dag_id: int, run_id: int) -> HttpResponseBase:
        """Send stdout and stderr as they came; with `tail` or `offset` a part of them as text."""
        run = node_selectors.find_script_run(caller(request), dag_id, run_id)
        log = log_of_script(run)
        if log.missing or run.output is None:
            raise NotFound(log.missing)
        if wants_all(request) or not {"tail", "offset"} & set(request.query_params):
            return send_blob(request, run.output, name=log.file_name)
        return send_part(request, log)


class NodesAction(ActionView):
    """A change of nodes that are named."""

    shape = shapes.ChangedNodesSerializer
    operations = "dags_nodes"

    def answer(self, request: Request, which: int, done: Applied) -> Any:
        """Response with the number of changed nodes."""
        dag = selectors.find_dag(caller(request), which)
        counts = {"changed": len(done.changed), "skipped": len(done.skipped), "state": dag.state}
        return self.shape(counts).data
