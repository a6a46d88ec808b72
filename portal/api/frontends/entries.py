"""Endpoints of entries of frontends at queues: list, make, read, change, delete."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.frontends.shapes import FrontendEntrySerializer
from portal.api.idempotency import once
from wms.core.actors import Actor
from wms.sites.frontends.entries import delete_entry, save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.sites.frontends.selectors import visible_entries


class FrontendEntryList(ListView):
    """Entries of frontends that you may see, the last made first."""

    queryset = FrontendEntry.objects.none()
    serializer_class = FrontendEntrySerializer

    def get_queryset(self) -> QuerySet[FrontendEntry]:
        """Everything that the caller may see."""
        return visible_entries(caller(self.request))

    @once()
    @extend_schema(
        summary="Give a frontend an entry at a queue",
        parameters=[WHY],
        responses={201: FrontendEntrySerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """It counts from the director's next cycle on."""
        body = FrontendEntrySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        entry = FrontendEntry(**body.validated_data)
        save_entry(entry, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(FrontendEntrySerializer(entry).data, status=status.HTTP_201_CREATED)


class FrontendEntryDetail(RetrieveAPIView[FrontendEntry]):
    """One entry of a frontend."""

    queryset = FrontendEntry.objects.none()
    serializer_class = FrontendEntrySerializer
    lookup_url_kwarg = "frontend_entry_id"

    def get_queryset(self) -> QuerySet[FrontendEntry]:
        """Everything that the caller may see."""
        return visible_entries(caller(self.request))

    @extend_schema(
        summary="Change an entry of a frontend",
        parameters=[WHY],
        request=FrontendEntrySerializer,
        responses={200: FrontendEntrySerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, frontend_entry_id: int) -> Response:
        """All of it; no pilot ends by it."""
        entry = self.get_object()
        body = FrontendEntrySerializer(entry, data=request.data)
        body.is_valid(raise_exception=True)
        for name, value in body.validated_data.items():
            setattr(entry, name, value)
        save_entry(entry, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(FrontendEntrySerializer(entry).data)

    @extend_schema(
        summary="Delete an entry of a frontend",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404)},
    )
    def delete(self, request: Request, frontend_entry_id: int) -> Response:
        """Pilots that wait there are taken back, those that run go on."""
        delete_entry(self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
