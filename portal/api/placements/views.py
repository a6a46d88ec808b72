"""Endpoints of placement requests: submission, list, detail, and the action remove."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.base import ListView, caller, refusals
from portal.api.idempotency import IDEMPOTENCY_KEY, created, sent_key
from portal.api.parsing import StorableJson
from portal.api.placements.shapes import (
    PlacementDetailSerializer,
    PlacementRequestSerializer,
    PlacementSubmissionSerializer,
    SubmittedPlacementsSerializer,
)
from portal.api.uploads import TextBody
from portal.lists.filters import PlacementFilter
from wms.core.actors import Actor
from wms.core.errors import Conflict
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import require_role
from wms.core.transitions import Applied
from wms.dags.reading.node_selectors import nodes_of_requests
from wms.placement.models import PlacementRequest
from wms.placement.selectors import find_request, listed_requests
from wms.placement.services import MAX_TEXT_BYTES, check_requests, submit_requests


class RequestText(TextBody):
    """Parser of ads sent as text."""

    media_type = "text/plain"
    name = "text"
    most_bytes = MAX_TEXT_BYTES
    location = {"field": "requests"}


class PlacementList(ListView):
    """Requests to place data, newest first."""

    parser_classes = (StorableJson, RequestText)
    queryset = PlacementRequest.objects.none()
    serializer_class = PlacementRequestSerializer
    filterset_class = PlacementFilter

    def get_queryset(self) -> QuerySet[PlacementRequest]:
        """Everything that the caller may see."""
        return listed_requests(caller(self.request))

    @extend_schema(
        operation_id="placements_submit",
        summary="Submit requests to place data; all of them, or none",
        parameters=[IDEMPOTENCY_KEY],
        request={
            "application/json": PlacementSubmissionSerializer,
            "text/plain": OpenApiTypes.STR,
        },
        responses={
            200: SubmittedPlacementsSerializer,
            201: SubmittedPlacementsSerializer,
            **refusals(400, 403, 409, 413, 429),
        },
    )
    def post(self, request: Request) -> Response:
        """Store the requests of the text; every fault is told with its attribute and line."""
        user = caller(request)
        require_role(Actor.person(user), Role.USER, "submit placement requests")
        data = {"requests": request.data} if isinstance(request.data, str) else request.data
        body = PlacementSubmissionSerializer(data=data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        with heavy_place(user):
            if given["only_check"]:
                count = len(check_requests(given["requests"]))
                return Response({"ids": [], "count": count})
            done = submit_requests(
                given["requests"],
                actor=Actor.person(user),
                owner=user,
                group=given["group"],
                idempotency_key=sent_key(request),
            )
        at = reverse("api:placement", args=[done.ids[0]])
        return created({"ids": done.ids, "count": len(done.ids)}, at=at, is_new=done.is_new)


class PlacementDetail(APIView):
    """One request with its attempts and events."""

    @extend_schema(responses={200: PlacementDetailSerializer, **refusals(404)})
    def get(self, request: Request, request_id: int) -> Response:
        """Request with its attempts and events."""
        return Response(_detailed(find_request(caller(request), request_id)))


class PlacementAction(ActionView):
    """One change of one request."""

    shape = PlacementDetailSerializer
    operations = "placement_requests"

    def answer(self, request: Request, which: int, done: Applied) -> Any:
        """The request. Raises Conflict where nothing was done."""
        found = find_request(caller(request), which)
        if not done.changed:
            raise Conflict(f"Placement request {which} is {found.state}: nothing was done.")
        return _detailed(found)


def _detailed(found: PlacementRequest) -> Any:
    node = nodes_of_requests([found.pk]).get(found.pk)
    return PlacementDetailSerializer(found, context={"node": node}).data
