"""Endpoints of bulk operations: list, detail, preview, confirmation, items, stop, retry.

A retry is a new preview, of the objects that failed or that a stop left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import ListView, caller, refusals
from portal.api.bulk.shapes import (
    BulkItemSerializer,
    BulkOperationSerializer,
    BulkPreviewSerializer,
    StartBulkSerializer,
)
from portal.api.idempotency import once
from portal.api.pagination import NewestFirst
from portal.api.scopes import require_scopes_of_bulk
from portal.lists.bulk_filters import BulkFilter
from portal.lists.selection import by_filter, named, operation_of, operation_token, still_matching
from wms.bulk import services
from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.preview import preview_of
from wms.bulk.selectors import find_operation, items_of, visible_operations
from wms.bulk.services import Confirmation, Selection
from wms.bulk.states import Outcome
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.heavy import heavy_place
from wms.core.models import User

_PREVIEWED = OpenApiResponse(BulkPreviewSerializer, "First step: what it would do.")
_BEGUN = OpenApiResponse(BulkOperationSerializer, "Second step: it was confirmed.")


@extend_schema(responses={200: BulkOperationSerializer, **refusals(400)})
class BulkOperationList(ListView):
    """Your bulk operations, latest first; shifters and above see everybody's."""

    queryset = BulkOperation.objects.none()
    serializer_class = BulkOperationSerializer
    filterset_class = BulkFilter

    def get_queryset(self) -> QuerySet[BulkOperation]:
        """Return the operations that the caller may see."""
        return visible_operations(caller(self.request))

    @once()
    @extend_schema(
        operation_id="bulk_start",
        summary="Preview an action on many objects, or confirm such a preview",
        request=StartBulkSerializer,
        responses={201: _PREVIEWED, 202: _BEGUN, **refusals(400, 403, 404, 409, 429)},
    )
    def post(self, request: Request) -> Response:
        """Send `list`, `action`, `filter` or `ids`, and `dry_run`; then the `operation_token`.

        Confirming a preview again changes nothing, and answers with the operation as it is.
        """
        body = StartBulkSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given: dict[str, Any] = body.validated_data
        if "operation_token" in given:
            return _confirm(request, given)
        return _preview(request, given)


def _preview(request: Request, given: Mapping[str, Any]) -> Response:
    user = caller(request)
    if not given["dry_run"]:
        raise InvalidInput.of(
            "must be true: ask for a preview first, and confirm it by its operation_token",
            field="dry_run",
        )
    for name in ("list", "action"):
        if name not in given:
            raise InvalidInput.of("is required", field=name)
    require_scopes_of_bulk(request, given["list"], given["action"])
    with heavy_place(user):
        operation = services.freeze(
            _selection(user, given),
            action=given["action"],
            actor=Actor.person(user),
            reason=given.get("reason", ""),
            arguments=given.get("arguments"),
        )
        return _previewed(operation, user)


def _previewed(operation: BulkOperation, user: User) -> Response:
    found = preview_of(operation, user)
    preview = {
        "operation": operation,
        "operation_token": operation_token(operation),
        "total": found.total,
        "fitting": found.fitting,
        "foreign": found.foreign,
        "needs_expected_count": found.must_type,
        "states": [{"name": name, "count": count} for name, count in found.states.items()],
        "groups": [{"name": name, "count": count} for name, count in found.groups],
        "skipped": [{"name": why, "count": count} for why, count in found.skipped],
        "effects": found.effects,
        "samples": found.samples,
    }
    return Response(BulkPreviewSerializer(preview).data, status=status.HTTP_201_CREATED)


def _selection(user: User, given: Mapping[str, Any]) -> Selection:
    if ("filter" in given) == ("ids" in given):
        raise InvalidInput.of("give either a filter or ids", field="filter")
    if "ids" in given:
        return named(given["list"], given["ids"], user)
    return by_filter(given["list"], given["filter"], user, now=timezone.now())


def _confirm(request: Request, given: Mapping[str, Any]) -> Response:
    user = caller(request)
    if given["dry_run"]:
        raise InvalidInput.of("an operation_token begins the operation", field="dry_run")
    operation = find_operation(user, operation_of(given["operation_token"], user))
    require_scopes_of_bulk(request, operation.list_name, operation.action)
    count = given.get("expected_count")
    confirmation = Confirmation(
        seen=count,
        typed=count,
        reason=given.get("reason", ""),
        arguments=given.get("arguments"),
        accepts=given["accept_changes"],
    )
    begun = services.confirm(
        operation.pk, confirmation, actor=Actor.person(user), matching=still_matching(operation)
    )
    return Response(BulkOperationSerializer(begun).data, status=status.HTTP_202_ACCEPTED)


class BulkOperationDetail(APIView):
    """One bulk operation."""

    @extend_schema(responses={200: BulkOperationSerializer, **refusals(404)})
    def get(self, request: Request, operation_id: int) -> Response:
        """Progress of the operation."""
        operation = find_operation(caller(request), operation_id)
        return Response(BulkOperationSerializer(operation).data)


class ItemFilter(filters.FilterSet):
    """Objects by what became of them."""

    outcome = filters.ChoiceFilter(choices=Outcome.choices)

    class Meta:
        model = BulkItem
        fields = ("outcome",)


class _OldestFirst(NewestFirst):
    """In the order in which they are dealt with."""

    ordering = "id"


@extend_schema(responses={200: BulkItemSerializer, **refusals(400, 404)})
class BulkItemList(ListView):
    """The objects of a bulk operation, in the order in which they are dealt with."""

    queryset = BulkItem.objects.none()
    serializer_class = BulkItemSerializer
    filterset_class = ItemFilter
    pagination_class = _OldestFirst

    def get_queryset(self) -> QuerySet[BulkItem]:
        """Return the objects with their outcomes."""
        return items_of(find_operation(caller(self.request), self.kwargs["operation_id"]))


class StopBulkOperation(APIView):
    """Stop a bulk operation."""

    @extend_schema(
        summary="Begin nothing more of a bulk operation",
        request=None,
        responses={200: BulkOperationSerializer, **refusals(403, 404, 409)},
    )
    def post(self, request: Request, operation_id: int) -> Response:
        """Stop it; what has been changed stays so."""
        stopped = services.stop(operation_id, actor=Actor.person(caller(request)))
        return Response(BulkOperationSerializer(stopped).data)


class RetryBulkOperation(APIView):
    """Try again what failed."""

    @once()
    @extend_schema(
        summary="Preview the same for the objects that failed, and those that a stop left",
        request=None,
        parameters=[OpenApiParameter("operation_id", int, OpenApiParameter.PATH)],
        responses={201: _PREVIEWED, **refusals(403, 404, 409)},
    )
    def post(self, request: Request, operation_id: int) -> Response:
        """A new preview, which its operation_token confirms."""
        user = caller(request)
        # Who may not see it, or may not retry, is told so by the service.
        if operation := visible_operations(user).filter(pk=operation_id).first():
            require_scopes_of_bulk(request, operation.list_name, operation.action)
        return _previewed(services.retry(operation_id, actor=Actor.person(user)), user)
