"""Endpoints of followed DAGs, which an HTCondor elsewhere runs: begin, position in the log, pieces.

Whoever sends the log asks how far it was read, and goes on there: a piece that is sent twice adds
nothing, and a gap is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.dags import shapes
from portal.api.dags.submissions import ORIGIN_FIELDS, check_parts, sent_origin
from portal.api.idempotency import IDEMPOTENCY_KEY, created, sent_key
from portal.api.problems import CONTENT_TYPE
from portal.api.trials.shapes import SentFilesSerializer
from portal.api.uploads import TakesFiles
from portal.middleware.uploads import uploads
from portal.shared.dag_submissions import SubmissionParts, submission_of
from wms.core.actors import Actor
from wms.core.errors import TooLarge
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import require_role
from wms.dags.follow.bad_events import DEFAULT
from wms.dags.follow.runs import FollowRequest, follow_run
from wms.dags.follow.selectors import find_followed_log
from wms.dags.follow.services import MAX_CHUNK_BYTES, ingest_chunk
from wms.dags.models import FollowedLog
from wms.dags.states import DAG_TERMINAL

_FILES = ("dag", "file", "archive")
_TEXTS = ("log", "rescue_number", "allow_events", "time_zone")


class FollowTextsSerializer(serializers.Serializer[Any]):
    """The texts of a request to follow a DAG."""

    log = serializers.CharField(max_length=1024, help_text="Name of its job event log, for people.")
    rescue_number = serializers.IntegerField(
        required=False, min_value=1, max_value=999, help_text="The rescue that the run began from."
    )
    allow_events = serializers.IntegerField(
        default=DEFAULT, min_value=0, max_value=127, help_text="As DAGMAN_ALLOW_EVENTS."
    )
    time_zone = serializers.CharField(
        default="UTC", max_length=64, help_text="Of times in the log that do not tell theirs."
    )


class FollowSerializer(SentFilesSerializer, FollowTextsSerializer):
    """The parts of a DAG to be followed, as multipart/form-data."""


class FollowedLogSerializer(serializers.ModelSerializer[FollowedLog]):
    """Position in the log of a followed DAG up to which it was read."""

    dag = serializers.IntegerField(source="dag_id", read_only=True)
    offset = serializers.IntegerField(
        source="byte_offset", read_only=True, help_text="Where the next piece begins."
    )
    dag_state = serializers.CharField(source="dag.state", read_only=True)
    is_over = serializers.SerializerMethodField(help_text="Nothing more of the log is read.")
    warnings = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="The latest ones."
    )

    class Meta:
        model = FollowedLog
        fields = [
            "dag", "name", "offset", "event_count", "dag_state", "is_over", "fault",
            "warning_count", "warnings", "last_event_at", "taken_at",
        ]  # fmt: skip

    def get_is_over(self, log: FollowedLog) -> bool:
        """Whether the DAG has ended."""
        return log.dag.state in DAG_TERMINAL


class FollowDag(TakesFiles):
    """Follow a DAG that is run elsewhere."""

    @extend_schema(
        operation_id="dags_follow",
        summary="Follow a DAG that an HTCondor elsewhere runs",
        request={"multipart/form-data": FollowSerializer},
        parameters=[IDEMPOTENCY_KEY],
        responses={
            201: FollowedLogSerializer,
            200: FollowedLogSerializer,
            (400, CONTENT_TYPE): shapes.FaultyDagSerializer,
            **refusals(403, 409, 413, 429),
        },
    )
    def post(self, request: Request) -> Response:
        """Store the DAG, which only its log moves; pieces of that are sent to `followed-log`."""
        user = caller(request)
        require_role(Actor.person(user), Role.USER, "follow DAGs")
        # The whole body first, so that a slow sender occupies no place.
        _ = request.data
        check_parts(request, files=_FILES, texts=("dag", *_TEXTS, *ORIGIN_FIELDS))
        texts = FollowTextsSerializer(
            data={n: request.POST[n] for n in _TEXTS if n in request.POST}
        )
        texts.is_valid(raise_exception=True)
        given = texts.validated_data
        sent = request._request
        with heavy_place(user):
            submission = submission_of(
                SubmissionParts(
                    dags=uploads(sent, "dag"),
                    named_dags=request.POST.getlist("dag"),
                    files=uploads(sent, "file"),
                    archives=uploads(sent, "archive"),
                    origin=sent_origin(request),
                )
            )
            submitted = follow_run(
                FollowRequest(
                    dag_files=tuple(submission.dag_files),
                    files=submission.all_files,
                    log_name=given["log"],
                    origin=submission.origin,
                    rescue_number=given.get("rescue_number"),
                    allow_events=given["allow_events"],
                    time_zone=given["time_zone"],
                    idempotency_key=sent_key(request),
                ),
                owner=user,
                actor=Actor.person(user),
                now=timezone.now(),
            )
        log = FollowedLogSerializer(submitted.dag.followed_log).data
        at = reverse("api:dag", args=[submitted.dag.pk])
        return created(log, at=at, is_new=submitted.is_new)


class PieceOfLog(BaseParser):
    """Parser of a piece of a log: bytes, as many as are taken at once."""

    media_type = "application/octet-stream"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return the bytes. Raises TooLarge."""
        content: bytes = stream.read(MAX_CHUNK_BYTES + 1)
        if len(content) > MAX_CHUNK_BYTES:
            raise TooLarge(f"The piece is larger than {MAX_CHUNK_BYTES} bytes.")
        return content


class _Offset(serializers.Serializer[Any]):
    """The query string of a piece."""

    offset = serializers.IntegerField(
        min_value=0, max_value=2**63 - 1, help_text="The byte of the log at which it begins."
    )


class FollowedLogOfDag(APIView):
    """The log of a followed DAG."""

    parser_classes = (PieceOfLog,)

    @extend_schema(responses={200: FollowedLogSerializer, **refusals(404)})
    def get(self, request: Request, dag_id: int) -> Response:
        """Position up to which it was read, and what was odd in it."""
        return Response(FollowedLogSerializer(find_followed_log(caller(request), dag_id)).data)

    @extend_schema(
        operation_id="dags_followed_log_append",
        summary="Send a piece of the log of a followed DAG",
        request={"application/octet-stream": OpenApiTypes.BINARY},
        parameters=[_Offset],
        responses={200: FollowedLogSerializer, **refusals(400, 403, 404, 409, 413, 429)},
    )
    def post(self, request: Request, dag_id: int) -> Response:
        """Take in what is new of it, complete events only; at most 1 MiB at once.

        The next piece begins at the `offset` of the answer. One behind it is refused (409).
        """
        query = _Offset(data=request.query_params)
        query.is_valid(raise_exception=True)
        user, piece = caller(request), request.data
        with heavy_place(user):
            ingest_chunk(
                dag_id,
                piece if isinstance(piece, bytes) else b"",
                offset=query.validated_data["offset"],
                actor=Actor.person(user),
                now=timezone.now(),
            )
        return self.get(request, dag_id)
