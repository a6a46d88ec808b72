"""Endpoints of placement requests (file transfers): list, detail, and the action remove."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.base import ListView, caller, refusals
from portal.api.placements.shapes import PlacementDetailSerializer, PlacementRequestSerializer
from portal.lists.filters import PlacementFilter
from wms.core.errors import Conflict
from wms.core.transitions import Applied
from wms.dags.reading.node_selectors import nodes_of_requests
from wms.placement.models import PlacementRequest
from wms.placement.selectors import find_request, listed_requests


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
        """Request with its attempts and events."""
        return Response(_detailed(find_request(caller(request), request_id)))


class PlacementAction(ActionView):
    """One change of one request."""

    shape = PlacementDetailSerializer
    operations = "placement_requests"

    def answer(self, request: Request, which: int, done: Applied) -> Any:
        """The request. Raises Conflict if it has ended."""
        found = find_request(caller(request), which)
        if not done.changed:
            raise Conflict(f"Placement request {which} is {found.state}: it has ended.")
        return _detailed(found)


def _detailed(found: PlacementRequest) -> Any:
    node = nodes_of_requests([found.pk]).get(found.pk)
    return PlacementDetailSerializer(found, context={"node": node}).data
