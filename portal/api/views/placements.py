"""Endpoints of placement requests: list, detail, remove."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.shapes.common import ReasonSerializer
from portal.api.shapes.placements import PlacementDetailSerializer, PlacementRequestSerializer
from portal.api.views.base import ListView, caller, refusals
from portal.lists.filters import PlacementFilter
from wms.core.actors import Actor
from wms.core.errors import Conflict
from wms.dags.reading.node_selectors import nodes_of_requests
from wms.placement.models import PlacementRequest
from wms.placement.selectors import find_request, listed_requests
from wms.placement.services import remove_requests


class PlacementList(ListView):
    """Requests to place data, newest first."""

    queryset = PlacementRequest.objects.none()
    serializer_class = PlacementRequestSerializer
    filterset_class = PlacementFilter

    def get_queryset(self) -> QuerySet[PlacementRequest]:
        """Everything that the caller may see."""
        return listed_requests(caller(self.request))


class PlacementDetail(APIView):
    """One request with its attempts and events."""

    @extend_schema(responses={200: PlacementDetailSerializer, **refusals(404)})
    def get(self, request: Request, request_id: int) -> Response:
        """Tell all of it."""
        return _answer(find_request(caller(request), request_id))


class RemovePlacement(APIView):
    """Remove a request."""

    @extend_schema(
        operation_id="placement_requests_remove",
        summary="End a request for good, and stop its transfer",
        request=ReasonSerializer,
        responses={200: PlacementDetailSerializer, **refusals(400, 403, 404, 409)},
    )
    def post(self, request: Request, request_id: int) -> Response:
        """Remove it; its node fails then. Needs a reason."""
        body = ReasonSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller(request)
        found = find_request(user, request_id)
        applied = remove_requests(
            [request_id], actor=Actor.person(user), reason=body.validated_data["reason"]
        )
        if not applied.changed:
            raise Conflict(f"Placement request {request_id} is {found.state}: it has ended.")
        return _answer(find_request(user, request_id))


def _answer(found: PlacementRequest) -> Response:
    node = nodes_of_requests([found.pk]).get(found.pk)
    return Response(PlacementDetailSerializer(found, context={"node": node}).data)
