"""Endpoints of uploads that resume: begin, list, how far one is, append, cancel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.db.models import QuerySet
from django.http import HttpRequest, UnreadablePostError
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.resumable_uploads.headers import (
    COMPLETE,
    LENGTH,
    LIMIT,
    OFFSET,
    headers_of,
    limits,
    read_piece_headers,
)
from portal.api.resumable_uploads.shapes import NewUploadSerializer, UploadSerializer
from portal.api.uploads import refuse_large_body
from portal.lists.upload_filter import UploadFilter
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.jobs.models import ResumableUpload
from wms.jobs.uploads.operations import MAX_PIECE_BYTES
from wms.jobs.uploads.selectors import find_upload, own_uploads
from wms.jobs.uploads.services import append_pieces, begin_upload, cancel_upload

#: What the IETF's document calls a piece.
_PARTIAL = "application/partial-upload"
_OCTETS = "application/octet-stream"
_MEANINGS = {
    OFFSET: "Bytes that are here.",
    COMPLETE: "?1 when submissions can take it.",
    LENGTH: "Size of the whole content.",
    LIMIT: "Largest piece, as max-append-size.",
}
_TOLD = [
    OpenApiParameter(
        name, OpenApiTypes.STR, OpenApiParameter.HEADER, response=[200, 201], description=meaning
    )
    for name, meaning in _MEANINGS.items()
]
_TOLD_OF_ALL = [
    OpenApiParameter(
        LIMIT, OpenApiTypes.STR, OpenApiParameter.HEADER, response=[200],
        description=_MEANINGS[LIMIT],
    )
]  # fmt: skip
_SENT = [
    OpenApiParameter(
        OFFSET, OpenApiTypes.INT, OpenApiParameter.HEADER, required=True,
        description="Byte at which the piece begins; as many are here.",
    ),
    OpenApiParameter(
        COMPLETE, OpenApiTypes.STR, OpenApiParameter.HEADER, enum=["?0", "?1"],
        description="Whether it is the last piece; one that cannot be is refused.",
    ),
]  # fmt: skip


class Piece(BaseParser):
    """Parser of a piece of a file, which leaves it to the view to read it."""

    media_type = _PARTIAL

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> IO[Any]:
        """Return the stream."""
        return stream


class PieceOfOctets(Piece):
    """The same, as most programs call it."""

    media_type = _OCTETS


class UploadList(ListView):
    """Your uploads that are under way or wait for a submission, latest first."""

    queryset = ResumableUpload.objects.none()
    serializer_class = UploadSerializer
    filterset_class = UploadFilter

    def get_queryset(self) -> QuerySet[ResumableUpload]:
        """The caller's own."""
        return own_uploads(caller(self.request), now=timezone.now())

    @extend_schema(parameters=_TOLD_OF_ALL)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """`sha256` finds where to go on with a file."""
        answer = super().get(request, *args, **kwargs)
        for name, value in limits().items():
            answer[name] = value
        return answer

    @once()
    @extend_schema(
        summary="Begin the upload of a file, which can be resumed",
        request=NewUploadSerializer,
        parameters=_TOLD,
        responses={
            201: UploadSerializer,
            200: OpenApiResponse(UploadSerializer, "The portal has this content from you."),
            **refusals(400, 403, 409),
        },
    )
    def post(self, request: Request) -> Response:
        """Make an upload of this size and SHA-256; it is complete where you sent the same before.

        Of contents that others have nothing is told.
        """
        body = NewUploadSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller(request)
        begun = begin_upload(
            **body.validated_data, owner=user, actor=Actor.person(user), now=timezone.now()
        )
        code = status.HTTP_201_CREATED if begun.is_new else status.HTTP_200_OK
        answer = _answer(begun.upload, request, code)
        # A plain text: servers take no subclass of it.
        answer["Location"] = str(answer.data["url"])
        return answer


class UploadDetail(APIView):
    """One upload of the caller."""

    parser_classes = (Piece, PieceOfOctets)

    @extend_schema(parameters=_TOLD, responses={200: UploadSerializer, **refusals(404)})
    def get(self, request: Request, upload_id: int) -> Response:
        """How far it is; HEAD tells it by headers alone."""
        upload = find_upload(caller(request), upload_id, now=timezone.now())
        return _answer(upload, request)

    @extend_schema(
        operation_id="uploads_append",
        summary="Append a piece to an upload",
        request={_PARTIAL: OpenApiTypes.BINARY, _OCTETS: OpenApiTypes.BINARY},
        parameters=[*_SENT, *_TOLD],
        responses={200: UploadSerializer, **refusals(400, 403, 404, 409, 413)},
    )
    def patch(self, request: Request, upload_id: int) -> Response:
        """Take what follows the bytes that are here; what came counts even if the rest does not.

        Elsewhere it is refused (409), and `expected_offset` tells where to go on. With the last
        byte the content is checked: another one than was announced is refused, and the upload
        removed.
        """
        sent, user = read_piece_headers(request), caller(request)
        refuse_large_body(request._request, limit_bytes=conf().max_upload_bytes)
        upload = find_upload(user, upload_id, now=timezone.now())
        sent.check_end(upload.size_bytes)
        stream = request.data if sent.length else None
        upload = append_pieces(
            upload_id,
            _pieces(stream) if stream else (),
            length=sent.length,
            offset=sent.offset,
            owner=user,
            actor=Actor.person(user),
            now=timezone.now(),
        )
        return _answer(upload, request)

    @extend_schema(
        summary="Cancel an upload",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404)},
    )
    def delete(self, request: Request, upload_id: int) -> Response:
        """Forget it with what is here of it; submissions that took it keep the content."""
        user = caller(request)
        cancel_upload(
            upload_id,
            owner=user,
            actor=Actor.person(user),
            now=timezone.now(),
            reason=why_of(request),
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


def _pieces(stream: HttpRequest) -> Iterator[bytes]:
    """Pieces of a body as they come; a sender that breaks off ends it, and reads no answer."""
    while True:
        try:
            piece = stream.read(MAX_PIECE_BYTES)
        except UnreadablePostError:
            return
        if not piece:
            return
        yield piece


def _answer(upload: ResumableUpload, request: Request, code: int = status.HTTP_200_OK) -> Response:
    body = UploadSerializer(upload, context={"request": request}).data
    return Response(body, status=code, headers=headers_of(upload))
