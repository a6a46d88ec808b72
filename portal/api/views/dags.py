"""DAGs: submitted, listed, followed and steered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse, HttpRequest
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api import serializers
from portal.api.downloads import send_blob
from portal.api.pagination import InFileOrder
from portal.api.submissions import SubmittedDagSerializer, read_submission
from portal.api.uploads import PlainNamesUpload, refuse_large_body, use_plain_names
from portal.api.views.base import AcceptsAnything, ListView, caller, refusals
from portal.filters import DagFilter, NodeFilter
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Conflict
from wms.core.transitions import Applied
from wms.dags import selectors, services
from wms.dags.models import Dag, DagEvent, Node, NodeEvent
from wms.dags.submission import submit_dag
from wms.jobs.models import WorkspaceFile
from wms.jobs.selectors import files_of_workspace, find_workspace_file


class DagList(ListView):
    """DAGs, newest first."""

    queryset = Dag.objects.none()
    serializer_class = serializers.DagSerializer
    filterset_class = DagFilter
    parser_classes = (PlainNamesUpload,)

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Choose how files are read before anybody reads them."""
        use_plain_names(request)
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse what is too large by its announced length."""
        refuse_large_body(request._request, limit_bytes=conf().max_upload_bytes)
        super().initial(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Dag]:
        """Everything that the caller may see."""
        return selectors.listed_dags(caller(self.request))

    @extend_schema(
        summary="Submit a DAG",
        request={"multipart/form-data": serializers.SubmissionSerializer},
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="Sending the same key again returns the DAG that was stored first.",
            )
        ],
        responses={
            201: SubmittedDagSerializer,
            **refusals(400, 403, 413),
        },
    )
    def post(self, request: Request) -> Response:
        """Store a DAG with its files, or refuse it with every fault; then nothing is stored."""
        user = caller(request)
        dag = submit_dag(read_submission(request), owner=user, actor=Actor.person(user))
        body = SubmittedDagSerializer(selectors.find_dag(user, dag.pk)).data
        return Response(body, status=status.HTTP_201_CREATED)


class DagDetail(RetrieveAPIView[Dag]):
    """One DAG with its ad and its match."""

    queryset = Dag.objects.none()
    serializer_class = serializers.DagDetailSerializer
    lookup_url_kwarg = "dag_id"

    def get_queryset(self) -> QuerySet[Dag]:
        """Everything that the caller may see."""
        return selectors.detailed_dags(caller(self.request))


class NodeList(ListView):
    """The nodes of a DAG in the order of the DAG file."""

    queryset = Node.objects.none()
    serializer_class = serializers.NodeSerializer
    filterset_class = NodeFilter
    pagination_class = InFileOrder

    def get_queryset(self) -> QuerySet[Node]:
        """The nodes with the names of their parents."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return selectors.nodes_with_parents(dag)


class DagEventList(ListView):
    """What happened to a DAG as a whole, newest first."""

    queryset = DagEvent.objects.none()
    serializer_class = serializers.DagEventSerializer

    def get_queryset(self) -> QuerySet[DagEvent]:
        """The DAG's events."""
        return selectors.find_dag(caller(self.request), self.kwargs["dag_id"]).events.all()


class NodeEventList(ListView):
    """What happened to the nodes of a DAG, newest first."""

    queryset = NodeEvent.objects.none()
    serializer_class = serializers.NodeEventSerializer

    def get_queryset(self) -> QuerySet[NodeEvent]:
        """The nodes' events with the nodes' names."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return selectors.node_events(dag)


class DagFileList(ListView):
    """The files of a DAG: what was submitted and what its jobs sent back."""

    queryset = WorkspaceFile.objects.none()
    serializer_class = serializers.WorkspaceFileSerializer

    def get_queryset(self) -> QuerySet[WorkspaceFile]:
        """The files of the DAG's workspace."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return files_of_workspace(dag.workspace_id)


class DagFile(APIView):
    """One file of a DAG."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Download a file of a DAG",
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **refusals(404)},
    )
    def get(self, request: Request, dag_id: int, path: str) -> FileResponse:
        """Send the content as it is, to be saved and not shown."""
        dag = selectors.find_dag(caller(request), dag_id)
        file = find_workspace_file(dag.workspace_id, path)
        return send_blob(file.blob, name=file.path)


class Steering(APIView):
    """One change of one DAG, with a reason."""

    verb: str
    body_class: type[serializers.ReasonSerializer] = serializers.ReasonSerializer

    def steer(self, request: Request, dag_id: int, change: Callable[..., Applied]) -> Response:
        """Carry the change out and answer with the DAG. Raises Conflict if its state forbids it."""
        body = self.body_class(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller(request)
        applied = change([dag_id], actor=Actor.person(user), **body.validated_data)
        dag = selectors.find_dag(user, dag_id)
        if not applied.changed:
            raise Conflict(f"DAG {dag_id} is {dag.state}: it cannot be {self.verb}.")
        return Response(serializers.DagDetailSerializer(dag).data)


def steering_schema(
    summary: str, body: type[serializers.ReasonSerializer] = serializers.ReasonSerializer
) -> Callable[[Any], Any]:
    """Describe a change of one DAG."""
    return extend_schema(
        summary=summary,
        request=body,
        responses={
            200: serializers.DagDetailSerializer,
            **refusals(400, 403, 404, 409),
        },
    )


class HoldDag(Steering):
    """Hold a DAG."""

    verb = "held"

    @steering_schema("Let what runs finish and start nothing more")
    def post(self, request: Request, dag_id: int) -> Response:
        """Hold it; needs a reason."""
        return self.steer(request, dag_id, services.hold_dags)


class ReleaseDag(Steering):
    """Release a DAG."""

    verb = "released"

    @steering_schema("Let a held DAG go on")
    def post(self, request: Request, dag_id: int) -> Response:
        """Release it."""
        return self.steer(request, dag_id, services.release_dags)


class RemoveDag(Steering):
    """Remove a DAG."""

    verb = "removed"

    @steering_schema("End a DAG for good and kill its jobs")
    def post(self, request: Request, dag_id: int) -> Response:
        """Remove it; needs a reason."""
        return self.steer(request, dag_id, services.remove_dags)
