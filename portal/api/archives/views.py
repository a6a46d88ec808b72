"""Endpoints of archives: of a DAG, list and detail of kept ones, their files, members, removal."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.archives import shapes
from portal.api.base import AcceptsAnything, ListView, caller, refusals
from portal.api.downloads import CONTENT, send_blob
from portal.lists.archive_filter import ArchiveFilter
from portal.shared.archive_downloads import archive_name, send_archive_of_dag, send_member
from wms.archives.models import ArchivedDag
from wms.archives.reading import opened_file
from wms.archives.selectors import find_archive, listed_archives
from wms.dags.reading.selectors import find_dag

_BYTES = {(200, "application/octet-stream"): OpenApiTypes.BINARY}


class DagArchive(APIView):
    """The archive of a DAG that has ended."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Download the archive of a DAG",
        responses={(200, "application/zip"): OpenApiTypes.BINARY, **refusals(404, 409, 429)},
    )
    def get(self, request: Request, dag_id: int) -> StreamingHttpResponse:
        """Send a ZIP while it is made, with the DAGs inside of it; its last member is the manifest.

        409 while anything of the DAG goes on, and for a DAG inside of another one.
        """
        user = caller(request)
        return send_archive_of_dag(user, find_dag(user, dag_id))


class ArchiveList(ListView):
    """Kept archives of DAGs that the caller may see, latest first."""

    queryset = ArchivedDag.objects.none()
    serializer_class = shapes.ArchiveSerializer
    filterset_class = ArchiveFilter

    def get_queryset(self) -> QuerySet[ArchivedDag]:
        """Return the archives that the caller may see."""
        return listed_archives(caller(self.request))


class ArchiveDetail(APIView):
    """One kept archive."""

    @extend_schema(responses={200: shapes.ArchiveDetailSerializer, **refusals(404)})
    def get(self, request: Request, archive_id: int) -> Response:
        """Facts of its manifest."""
        found = find_archive(caller(request), archive_id)
        shown = shapes.ArchiveDetailSerializer(found, context={"request": request})
        return Response(shown.data)


class ArchiveFile(APIView):
    """The file of a kept archive."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(summary="Download a kept archive", responses={**CONTENT, **refusals(404)})
    def get(self, request: Request, archive_id: int) -> HttpResponseBase:
        """Send the file as it was imported."""
        found = find_archive(caller(request), archive_id)
        return send_blob(request, found.blob, name=archive_name(found))


class ArchiveMemberList(APIView):
    """The members of a kept archive."""

    @extend_schema(
        operation_id="archives_members_list",
        responses={200: shapes.MemberSerializer(many=True), **refusals(404)},
    )
    def get(self, request: Request, archive_id: int) -> Response:
        """Names, sizes and numbers of rows, in the order of the file."""
        with opened_file(find_archive(caller(request), archive_id)) as file:
            return Response(shapes.MemberSerializer(file.manifest.members, many=True).data)


class ArchiveMember(APIView):
    """A member of a kept archive."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Download a member of a kept archive", responses={**_BYTES, **refusals(404, 429)}
    )
    def get(self, request: Request, archive_id: int, path: str) -> StreamingHttpResponse:
        """Send it unpacked: rows as lines of JSON, a log, or a file of the DAG."""
        user = caller(request)
        return send_member(user, find_archive(user, archive_id), path)


class ArchiveAction(ActionView):
    """One action on one kept archive; the answer is what it was."""

    shape = shapes.ArchiveSerializer
    operations = "archives"

    def check(self, request: Request, which: int) -> None:
        """Read it while it is there. Raises NotFound."""
        self._was = find_archive(caller(request), which)

    def answer(self, request: Request, which: int, done: Any) -> Any:
        """The archive as it was."""
        return self.shape(self._was, context={"request": request}).data
