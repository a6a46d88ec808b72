"""Endpoints of concurrency limits: list with their use, make, change, delete."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.accounting.shapes import LimitSerializer
from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.pagination import ByName
from wms.accounting.models import ConcurrencyLimit
from wms.accounting.selectors import visible_limits
from wms.accounting.services import delete_limit, save_limit
from wms.core.actors import Actor
from wms.dags.negotiation.usage import uses_by_limit


class _ByLimitName(ByName):
    """Limits, whose names may contain a star."""

    position = re.compile(r"[a-z0-9_.*]{1,64}")


class LimitList(ListView):
    """All concurrency limits by name, with what the running DAGs take of them."""

    queryset = ConcurrencyLimit.objects.none()
    serializer_class = LimitSerializer
    pagination_class = _ByLimitName

    def get_queryset(self) -> QuerySet[ConcurrencyLimit]:
        """Everything that the caller may see."""
        return visible_limits(caller(self.request))

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer with a page; what is used is looked up once."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(_lines(request, page or []))

    @once()
    @extend_schema(
        summary="Set a concurrency limit",
        parameters=[WHY],
        responses={201: LimitSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """A limit of new matches; what is matched stays."""
        return Response(_saved(request, ConcurrencyLimit()), status=status.HTTP_201_CREATED)


class LimitDetail(RetrieveAPIView[ConcurrencyLimit]):
    """One concurrency limit."""

    queryset = ConcurrencyLimit.objects.none()
    serializer_class = LimitSerializer
    lookup_field = "name"
    lookup_url_kwarg = "limit"

    def get_queryset(self) -> QuerySet[ConcurrencyLimit]:
        """Everything that the caller may see."""
        return visible_limits(caller(self.request))

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer with the limit and what is used of it."""
        return Response(_lines(request, [self.get_object()])[0])

    @extend_schema(
        summary="Set a concurrency limit anew",
        parameters=[WHY],
        request=LimitSerializer,
        responses={200: LimitSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, limit: str) -> Response:
        """All of it; the name stays the same."""
        return Response(_saved(request, self.get_object()))

    @extend_schema(
        summary="Delete a concurrency limit",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404)},
    )
    def delete(self, request: Request, limit: str) -> Response:
        """Removal of a limit: what it named is free then."""
        delete_limit(self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _lines(request: Request, limits: Sequence[ConcurrencyLimit]) -> list[Any]:
    uses = uses_by_limit(caller(request))
    return list(LimitSerializer(limits, many=True, context={"uses": uses}).data)


def _saved(request: Request, limit: ConcurrencyLimit) -> Any:
    """The limit as it is stored now, with its use."""
    body = LimitSerializer(limit, data=request.data)
    body.is_valid(raise_exception=True)
    for name, value in body.validated_data.items():
        setattr(limit, name, value)
    save_limit(limit, actor=Actor.person(caller(request)), reason=why_of(request))
    return _lines(request, [limit])[0]
