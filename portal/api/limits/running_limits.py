"""Endpoints of running limits, which bound jobs of a kind: list, make, read, change, delete."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.limits.shapes import RunningLimitSerializer
from wms.core.actors import Actor
from wms.jobs.limits import delete_limit, save_limit, visible_limits
from wms.jobs.models import RunningLimit


def _answer(request: Request, limit: RunningLimit) -> dict[str, object]:
    """The stored limit with what runs now."""
    stored = visible_limits(caller(request)).get(pk=limit.pk)
    payload: dict[str, object] = RunningLimitSerializer(stored).data
    return payload


class RunningLimitList(ListView):
    """All running limits, the last made first, with what runs now."""

    queryset = RunningLimit.objects.none()
    serializer_class = RunningLimitSerializer

    def get_queryset(self) -> QuerySet[RunningLimit]:
        """Everything that the caller may see."""
        return visible_limits(caller(self.request))

    @once()
    @extend_schema(
        summary="Set a running limit",
        parameters=[WHY],
        responses={201: RunningLimitSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """It counts from the next claim on, and stops nothing that runs."""
        body = RunningLimitSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        limit = RunningLimit(**body.validated_data)
        save_limit(limit, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(_answer(request, limit), status=status.HTTP_201_CREATED)


class RunningLimitDetail(RetrieveAPIView[RunningLimit]):
    """One running limit."""

    queryset = RunningLimit.objects.none()
    serializer_class = RunningLimitSerializer
    lookup_url_kwarg = "limit_id"

    def get_queryset(self) -> QuerySet[RunningLimit]:
        """Everything that the caller may see."""
        return visible_limits(caller(self.request))

    @extend_schema(
        summary="Set a running limit anew",
        parameters=[WHY],
        request=RunningLimitSerializer,
        responses={200: RunningLimitSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, limit_id: int) -> Response:
        """All of it: what is not given is no condition any more."""
        limit = self.get_object()
        body = RunningLimitSerializer(limit, data=request.data)
        body.is_valid(raise_exception=True)
        for name, value in body.validated_data.items():
            setattr(limit, name, value)
        save_limit(limit, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(_answer(request, limit))

    @extend_schema(
        summary="Delete a running limit",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404)},
    )
    def delete(self, request: Request, limit_id: int) -> Response:
        """Its kind of jobs is free then."""
        delete_limit(self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
