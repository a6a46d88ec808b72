"""Endpoints of shared limits on nodes of several DAGs: list, make, read, change, delete."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.limits.shapes import SharedLimitSerializer
from wms.core.actors import Actor
from wms.dags.models import SharedLimit
from wms.dags.services.shared_limits import (
    delete_shared_limit,
    save_shared_limit,
    visible_shared_limits,
)


def _answer(request: Request, limit: SharedLimit) -> dict[str, object]:
    """The stored limit with what is submitted now."""
    stored = visible_shared_limits(caller(request)).get(pk=limit.pk)
    payload: dict[str, object] = SharedLimitSerializer(stored).data
    return payload


class SharedLimitList(ListView):
    """All limits that DAGs share, the last made first, with what is submitted now."""

    queryset = SharedLimit.objects.none()
    serializer_class = SharedLimitSerializer

    def get_queryset(self) -> QuerySet[SharedLimit]:
        """Everything that the caller may see."""
        return visible_shared_limits(caller(self.request))

    @once()
    @extend_schema(
        summary="Set a limit that DAGs share",
        parameters=[WHY],
        responses={201: SharedLimitSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """It counts from now on; what is submitted stays so."""
        body = SharedLimitSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        limit = SharedLimit(**body.validated_data)
        save_shared_limit(limit, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(_answer(request, limit), status=status.HTTP_201_CREATED)


class SharedLimitDetail(RetrieveAPIView[SharedLimit]):
    """One limit that DAGs share."""

    queryset = SharedLimit.objects.none()
    serializer_class = SharedLimitSerializer
    lookup_url_kwarg = "limit_id"

    def get_queryset(self) -> QuerySet[SharedLimit]:
        """Everything that the caller may see."""
        return visible_shared_limits(caller(self.request))

    @extend_schema(
        summary="Set a limit that DAGs share anew",
        parameters=[WHY],
        request=SharedLimitSerializer,
        responses={200: SharedLimitSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, limit_id: int) -> Response:
        """All of it: what is not given is no condition any more."""
        limit = self.get_object()
        body = SharedLimitSerializer(limit, data=request.data)
        body.is_valid(raise_exception=True)
        for name, value in body.validated_data.items():
            setattr(limit, name, value)
        save_shared_limit(limit, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(_answer(request, limit))

    @extend_schema(
        summary="Delete a limit that DAGs share",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404)},
    )
    def delete(self, request: Request, limit_id: int) -> Response:
        """Its nodes are free then."""
        delete_shared_limit(
            self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)
