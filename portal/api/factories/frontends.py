"""Endpoints and serializers of remote frontends, for which this installation is a factory."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.factories.views import TokenSerializer
from portal.api.frontends.fields import FrontendField
from portal.api.idempotency import once
from portal.api.shapes import StrictSerializer, TextsByNameField
from wms.accounting.models import Frontend
from wms.core.actors import Actor
from wms.pilots.factories.callers import renew_caller_token, revoke_caller_token
from wms.pilots.factories.selectors import find_remote_frontend, visible_remote_frontends
from wms.pilots.factories.services import delete_remote_frontend, save_remote_frontend
from wms.pilots.factory_models import RemoteFrontend


class RemoteFrontendSerializer(StrictSerializer, serializers.ModelSerializer[RemoteFrontend]):
    """Remote frontend: another installation, which has the jobs of a frontend."""

    frontend = FrontendField("name", queryset=Frontend.objects.all())
    url = serializers.CharField(
        max_length=200, required=False, allow_blank=True, default="",
        help_text="Address of its portal, where this installation calls it; empty: it calls.",
    )  # fmt: skip
    factory_name = serializers.CharField(
        max_length=64, required=False, allow_blank=True, default="",
        help_text="What it calls this installation; with an address only.",
    )  # fmt: skip
    is_enabled = serializers.BooleanField(required=False, default=True)
    refused = TextsByNameField(
        read_only=True, help_text="Entries of ours that it does not use, with the reason."
    )

    class Meta:
        model = RemoteFrontend
        fields = [
            "frontend", "url", "factory_name", "is_enabled", "called_at", "answered_at",
            "lease_until", "failures", "next_at", "error", "refused", "token_at", "refused_at",
            "refused_reason",
        ]  # fmt: skip
        read_only_fields = [
            "called_at", "answered_at", "lease_until", "failures", "next_at", "error", "token_at",
            "refused_at", "refused_reason",
        ]  # fmt: skip
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []


class RemoteFrontendList(ListView):
    """All remote frontends, the last made first."""

    queryset = RemoteFrontend.objects.none()
    serializer_class = RemoteFrontendSerializer

    def get_queryset(self) -> QuerySet[RemoteFrontend]:
        """Everything that the caller may see."""
        return visible_remote_frontends(caller(self.request))

    @once()
    @extend_schema(
        summary="Become the factory of a remote frontend",
        parameters=[WHY],
        responses={201: RemoteFrontendSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """One with an address is called within seconds, with a token that is a file on this side.

        One that calls needs a token, which is made next.
        """
        body = RemoteFrontendSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        remote = RemoteFrontend(**body.validated_data)
        save_remote_frontend(remote, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(RemoteFrontendSerializer(remote).data, status=status.HTTP_201_CREATED)


class RemoteFrontendDetail(RetrieveAPIView[RemoteFrontend]):
    """One remote frontend: when it answered last, and what is wrong."""

    queryset = RemoteFrontend.objects.none()
    serializer_class = RemoteFrontendSerializer
    lookup_field = "frontend__name"
    lookup_url_kwarg = "frontend"

    def get_queryset(self) -> QuerySet[RemoteFrontend]:
        """Everything that the caller may see."""
        return visible_remote_frontends(caller(self.request))

    @extend_schema(
        summary="Change a remote frontend",
        parameters=[WHY],
        request=RemoteFrontendSerializer,
        responses={200: RemoteFrontendSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, frontend: str) -> Response:
        """All of it; the frontend stays the same."""
        remote = self.get_object()
        body = RemoteFrontendSerializer(remote, data=request.data)
        body.is_valid(raise_exception=True)
        for name, value in body.validated_data.items():
            setattr(remote, name, value)
        save_remote_frontend(remote, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(RemoteFrontendSerializer(remote).data)

    @extend_schema(
        summary="Delete a remote frontend",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404, 409)},
    )
    def delete(self, request: Request, frontend: str) -> Response:
        """One that has orders here is refused: switch it off instead."""
        delete_remote_frontend(
            self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class RemoteFrontendToken(APIView):
    """Token of a remote frontend that calls, made anew or revoked."""

    @extend_schema(
        summary="Make a new token of a remote frontend",
        parameters=[WHY],
        request=None,
        responses={200: TokenSerializer, **refusals(400, 403, 404, 409)},
    )
    def post(self, request: Request, frontend: str) -> Response:
        """The old one is worth nothing from now on. It needs a reason."""
        row = find_remote_frontend(caller(request), frontend)
        token = renew_caller_token(row, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(TokenSerializer({"token": token}).data)

    @extend_schema(
        summary="Revoke the token of a remote frontend",
        parameters=[WHY],
        responses={204: None, **refusals(400, 403, 404)},
    )
    def delete(self, request: Request, frontend: str) -> Response:
        """Its calls are refused from now on. It needs a reason."""
        row = find_remote_frontend(caller(request), frontend)
        revoke_caller_token(row, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
