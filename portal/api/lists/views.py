"""Endpoints of list exports (CSV, JSON) and of saved filters."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import AcceptsAnything, caller, refusals
from portal.api.idempotency import once
from portal.api.lists.shapes import (
    FilterChangeSerializer,
    SavedFilterSerializer,
    SaveFilterSerializer,
)
from portal.lists.exports import send_list
from portal.lists.registry import LISTS, find_list
from portal.middleware.download_slots import sent_from_a_slot
from portal.personal.models import SavedFilter
from portal.personal.selectors import find_filter, visible_filters
from portal.personal.services import change_filter, remove_filter, save_filter
from wms.core.actors import Actor


class ExportOfList(APIView):
    """A list as a file: the filters of the list, and which columns."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        operation_id="lists_export",
        parameters=[
            OpenApiParameter("list_name", str, OpenApiParameter.PATH, enum=list(LISTS)),
            OpenApiParameter("form", str, OpenApiParameter.PATH, enum=["csv", "json"]),
            OpenApiParameter(
                "columns", str, description="Names of columns, with commas; else the usual ones."
            ),
        ],
        responses={
            (200, "text/csv"): OpenApiTypes.STR,
            (200, "application/json"): OpenApiResponse(OpenApiTypes.OBJECT),
            **refusals(400, 404, 429),
        },
    )
    def get(self, request: Request, list_name: str, form: str) -> StreamingHttpResponse:
        """Send all lines, or the first 100,000 and say so; other parameters are its filters."""
        kind, user, now = find_list(list_name), caller(request), timezone.now()
        return sent_from_a_slot(
            user, lambda: send_list(kind, form, request.query_params, user, now=now)
        )


class SavedFilterList(GenericAPIView[SavedFilter]):
    """Your saved filters, and those that others share."""

    queryset = SavedFilter.objects.none()
    serializer_class = SavedFilterSerializer
    pagination_class = None

    @extend_schema(responses={200: SavedFilterSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """All of them, by list and name."""
        seen = visible_filters(caller(request))
        return Response(SavedFilterSerializer(seen, many=True).data)

    @once()
    @extend_schema(
        summary="Save a filter",
        request=SaveFilterSerializer,
        responses={201: SavedFilterSerializer, **refusals(400, 403, 404, 429)},
    )
    def post(self, request: Request) -> Response:
        """Store a filter; one of yours of the same list and name is replaced."""
        body = SaveFilterSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given: dict[str, Any] = body.validated_data
        saved = save_filter(
            given["list"],
            name=given["name"],
            parameters=given["parameters"],
            is_shared=given["is_shared"],
            actor=Actor.person(caller(request)),
        )
        return Response(SavedFilterSerializer(saved).data, status=status.HTTP_201_CREATED)


class SavedFilterDetail(APIView):
    """One saved filter."""

    @extend_schema(responses={200: SavedFilterSerializer, **refusals(404)})
    def get(self, request: Request, filter_id: int) -> Response:
        """Saved filter with all of its fields."""
        return Response(SavedFilterSerializer(find_filter(caller(request), filter_id)).data)

    @extend_schema(
        summary="Rename or share a saved filter",
        request=FilterChangeSerializer,
        responses={200: SavedFilterSerializer, **refusals(400, 403, 404, 409)},
    )
    def put(self, request: Request, filter_id: int) -> Response:
        """Change what is named; the rest stays as it is."""
        body = FilterChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        saved = change_filter(filter_id, actor=Actor.person(caller(request)), **body.validated_data)
        return Response(SavedFilterSerializer(saved).data)

    @extend_schema(responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, filter_id: int) -> Response:
        """Forget it."""
        remove_filter(filter_id, actor=Actor.person(caller(request)))
        return Response(status=status.HTTP_204_NO_CONTENT)
