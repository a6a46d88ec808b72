"""Endpoints of frontends: list, make, read, change, delete, and how their entries stand."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.frontends.shapes import EntryStandingSerializer, FrontendSerializer
from portal.api.idempotency import once
from portal.api.pagination import ByName
from wms.accounting.frontends import delete_frontend, save_frontend
from wms.accounting.models import Frontend
from wms.accounting.selectors import visible_frontends
from wms.core.actors import Actor
from wms.pilots.frontends.standing import find_any_frontend, standing_of


def _answer(request: Request, frontend: Frontend) -> dict[str, object]:
    stored = visible_frontends(caller(request)).get(pk=frontend.pk)
    payload: dict[str, object] = FrontendSerializer(stored).data
    return payload


class FrontendList(ListView):
    """Frontends that you may see, by name: your own; shifters see all."""

    queryset = Frontend.objects.none()
    serializer_class = FrontendSerializer
    pagination_class = ByName

    def get_queryset(self) -> QuerySet[Frontend]:
        """Everything that the caller may see."""
        return visible_frontends(caller(self.request))

    @once()
    @extend_schema(
        summary="Make a frontend",
        parameters=[WHY],
        responses={201: FrontendSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """It has pilots where it gets entries, for the jobs of groups that name it."""
        body = FrontendSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        frontend = Frontend(**body.validated_data)
        save_frontend(frontend, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(_answer(request, frontend), status=status.HTTP_201_CREATED)


class FrontendDetail(RetrieveAPIView[Frontend]):
    """One frontend, with its groups."""

    queryset = Frontend.objects.none()
    serializer_class = FrontendSerializer
    lookup_field = "name"
    lookup_url_kwarg = "frontend"

    def get_queryset(self) -> QuerySet[Frontend]:
        """Everything that the caller may see."""
        return visible_frontends(caller(self.request))

    @extend_schema(
        summary="Change a frontend",
        parameters=[WHY],
        request=FrontendSerializer,
        responses={200: FrontendSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, frontend: str) -> Response:
        """All of it; the name stays the same."""
        row = self.get_object()
        body = FrontendSerializer(row, data=request.data)
        body.is_valid(raise_exception=True)
        for name, value in body.validated_data.items():
            setattr(row, name, value)
        save_frontend(row, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(_answer(request, row))

    @extend_schema(
        summary="Delete a frontend",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404, 409)},
    )
    def delete(self, request: Request, frontend: str) -> Response:
        """One with groups, entries or pilots is refused: switch it off instead."""
        delete_frontend(
            self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class FrontendStandingList(APIView):
    """Standing of the entries of one frontend now."""

    @extend_schema(
        summary="Read how a frontend's entries stand",
        responses={200: EntryStandingSerializer(many=True), **refusals(404)},
    )
    def get(self, request: Request, frontend: str) -> Response:
        """Answer with all of them, by queue; `-` stands for the default frontend."""
        found = find_any_frontend(caller(request), frontend)
        entries = standing_of(found, timezone.now()).entries
        return Response(EntryStandingSerializer(entries, many=True).data)
