"""Endpoints of DAGs: submit, check, list, detail, events, files, exports, rescues, matches.

A match is a stay of the DAG at a site.
"""

from __future__ import annotations

from dataclasses import asdict

from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import AcceptsAnything, ListView, caller, refusals
from portal.api.dags import shapes
from portal.api.dags.submissions import SubmittedDagSerializer, read_submission
from portal.api.downloads import CONTENT, send_blob
from portal.api.idempotency import IDEMPOTENCY_KEY, created
from portal.api.problems import CONTENT_TYPE, warnings_and_statistics
from portal.api.uploads import TakesFiles
from portal.lists.filters import DagFilter
from portal.middleware.download_slots import sent_from_a_slot
from portal.shared.dag_exports import send_export
from wms.core.actors import Actor
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import require_role
from wms.dags.exports.catalogue import EXPORTS, export_name
from wms.dags.models import Dag, DagEvent, MatchRecord, Rescue
from wms.dags.reading import selectors
from wms.dags.reading.run_selectors import rescues_of
from wms.dags.submission.submit import check_submission, submit_dag_once
from wms.jobs.models import WorkspaceFile
from wms.jobs.selectors import files_of_workspace, find_workspace_file

_REFUSED = {(400, CONTENT_TYPE): shapes.FaultyDagSerializer, **refusals(403, 413, 429)}


def _read_whole(request: Request) -> None:
    """Read the whole body first, so that a slow sender occupies no worker."""
    _ = request.data


class DagList(TakesFiles, ListView):
    """DAGs, newest first."""

    queryset = Dag.objects.none()
    serializer_class = shapes.DagSerializer
    filterset_class = DagFilter

    def get_queryset(self) -> QuerySet[Dag]:
        """Everything that the caller may see."""
        return selectors.listed_dags(caller(self.request))

    @extend_schema(
        summary="Submit a DAG",
        request={"multipart/form-data": shapes.SubmissionSerializer},
        parameters=[IDEMPOTENCY_KEY],
        responses={
            201: SubmittedDagSerializer,
            200: SubmittedDagSerializer,
            **_REFUSED,
            **refusals(409),
        },
    )
    def post(self, request: Request) -> Response:
        """Store a DAG with its files, or refuse it with every fault; then nothing is stored."""
        user = caller(request)
        # Before anything is unpacked.
        require_role(Actor.person(user), Role.USER, "submit DAGs")
        _read_whole(request)
        with heavy_place(user):
            submitted = submit_dag_once(
                read_submission(request), owner=user, actor=Actor.person(user)
            )
        body = SubmittedDagSerializer(selectors.find_dag(user, submitted.dag.pk)).data
        at = reverse("api:dag", args=[submitted.dag.pk])
        return created(body, at=at, is_new=submitted.is_new)


class CheckDag(TakesFiles):
    """Check a DAG."""

    @extend_schema(
        operation_id="dags_check",
        summary="Check a DAG; nothing is stored",
        request={"multipart/form-data": shapes.SubmissionSerializer},
        responses={200: shapes.CheckSerializer, **refusals(400, 403, 413, 429)},
    )
    def post(self, request: Request) -> Response:
        """All faults and warnings, and the DAG's shape."""
        user = caller(request)
        require_role(Actor.person(user), Role.USER, "check DAGs")
        _read_whole(request)
        with heavy_place(user):
            checked = check_submission(read_submission(request), owner=user)
        findings = [asdict(finding) for finding in checked.findings]
        return Response(
            {"is_faultless": not findings, "findings": findings, **warnings_and_statistics(checked)}
        )


class DagDetail(RetrieveAPIView[Dag]):
    """One DAG with its ad and its match."""

    queryset = Dag.objects.none()
    serializer_class = shapes.DagDetailSerializer
    lookup_url_kwarg = "dag_id"

    def get_queryset(self) -> QuerySet[Dag]:
        """Everything that the caller may see."""
        return selectors.detailed_dags(caller(self.request))


class DagEventList(ListView):
    """Events of a DAG as a whole, newest first."""

    queryset = DagEvent.objects.none()
    serializer_class = shapes.DagEventSerializer

    def get_queryset(self) -> QuerySet[DagEvent]:
        """The DAG's events."""
        return selectors.find_dag(caller(self.request), self.kwargs["dag_id"]).events.all()


class DagFileList(ListView):
    """The files of a DAG: what was submitted and what its jobs sent back."""

    queryset = WorkspaceFile.objects.none()
    serializer_class = shapes.WorkspaceFileSerializer

    def get_queryset(self) -> QuerySet[WorkspaceFile]:
        """The files of the DAG's workspace."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return files_of_workspace(dag.workspace_id)


class DagFile(APIView):
    """One file of a DAG."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Download a file of a DAG",
        responses={**CONTENT, **refusals(404)},
    )
    def get(self, request: Request, dag_id: int, path: str) -> HttpResponseBase:
        """Send the content as it is, to be saved and not shown."""
        dag = selectors.find_dag(caller(request), dag_id)
        file = find_workspace_file(dag.workspace_id, path)
        return send_blob(request, file.blob, name=file.path)


class RescueList(ListView):
    """The rescues and save points that were written in a DAG's workspace, latest first."""

    queryset = Rescue.objects.none()
    serializer_class = shapes.RescueSerializer

    def get_queryset(self) -> QuerySet[Rescue]:
        """Files of the DAG; each can be downloaded by its path."""
        return rescues_of(selectors.find_dag(caller(self.request), self.kwargs["dag_id"]))


class ExportList(APIView):
    """The files that can be made of a DAG."""

    @extend_schema(
        operation_id="dags_exports_list",
        responses={200: shapes.ExportSerializer(many=True), **refusals(404)},
    )
    def get(self, request: Request, dag_id: int) -> Response:
        """Name them."""
        dag = selectors.find_dag(caller(request), dag_id)
        return Response(
            [
                {
                    "kind": kind,
                    "title": each.title,
                    "name": export_name(dag, kind),
                    "content_type": each.content_type,
                }
                for kind, each in EXPORTS.items()
            ]
        )


class Export(APIView):
    """A file that is made of a DAG now."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Download a file that is made of a DAG now",
        parameters=[
            OpenApiParameter("kind", OpenApiTypes.STR, OpenApiParameter.PATH, enum=list(EXPORTS))
        ],
        responses={
            (200, "text/plain"): OpenApiTypes.STR,
            (200, "text/vnd.graphviz"): OpenApiTypes.STR,
            (200, "application/json"): OpenApiTypes.STR,
            **refusals(404, 429),
        },
    )
    def get(self, request: Request, dag_id: int, kind: str) -> StreamingHttpResponse:
        """Send it while it is made."""
        user = caller(request)
        dag = selectors.find_dag(user, dag_id)
        return sent_from_a_slot(user, lambda: send_export(dag, kind))


class MatchList(ListView):
    """The stays of a DAG at sites, latest first."""

    queryset = MatchRecord.objects.none()
    serializer_class = shapes.MatchRecordSerializer

    def get_queryset(self) -> QuerySet[MatchRecord]:
        """The DAG's matches with the names of the sites."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return selectors.matches_of(dag)
