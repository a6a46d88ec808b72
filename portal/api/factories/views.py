"""Endpoints and serializers of remote factories, and of their tokens."""

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
from portal.api.idempotency import once
from portal.api.shapes import ObjectField, StrictSerializer
from wms.core.actors import Actor
from wms.factories.models import FactoryEntry, RemoteFactory
from wms.factories.selectors import find_factory, visible_factories
from wms.factories.services import (
    create_factory,
    delete_factory,
    renew_token,
    revoke_token,
    save_factory,
)


class FactoryEntrySerializer(serializers.ModelSerializer[FactoryEntry]):
    """Entry of a factory as it was advertised last; `refusal` tells why it is not used here."""

    facts = ObjectField(help_text="Attributes of its pilots, and counts of those it has of ours.")

    class Meta:
        model = FactoryEntry
        fields = ["name", "is_open", "reason", "refusal", "facts", "seen_at"]


class FactorySerializer(StrictSerializer, serializers.ModelSerializer[RemoteFactory]):
    """Remote factory: another installation, which submits pilots for this one."""

    description = serializers.CharField(
        max_length=10_000, allow_blank=True, required=False, default=""
    )
    is_enabled = serializers.BooleanField(required=False, default=True)
    url = serializers.CharField(
        max_length=200, required=False, allow_blank=True, default="",
        help_text="Address of its portal, where this installation calls it; empty: it calls.",
    )  # fmt: skip
    frontend_name = serializers.CharField(
        max_length=64, required=False, allow_blank=True, default="",
        help_text="What it calls this installation; with an address only.",
    )  # fmt: skip
    sites = serializers.ListField(
        child=serializers.CharField(max_length=64), required=False, default=list, max_length=1000,
        help_text="Names of the sites that it may serve; none: all.",
    )  # fmt: skip
    entries = FactoryEntrySerializer(many=True, read_only=True)

    class Meta:
        model = RemoteFactory
        fields = [
            "name", "description", "is_enabled", "url", "frontend_name", "sites", "token_at",
            "seen_at", "refused_at", "refused_reason", "called_at", "failures", "next_at", "error",
            "entries",
        ]  # fmt: skip
        read_only_fields = [
            "token_at", "seen_at", "refused_at", "refused_reason", "called_at", "failures",
            "next_at", "error",
        ]  # fmt: skip
        # The domain tells what is wrong with the whole, with its field.
        extra_kwargs = {"name": {"validators": []}}


class TokenSerializer(serializers.Serializer[Any]):
    """Token of one who calls, told this once."""

    token = serializers.CharField()


class NewFactorySerializer(serializers.Serializer[Any]):
    """A factory that was made, with its token, which is told this once."""

    factory = FactorySerializer()
    token = serializers.CharField(
        allow_null=True,
        help_text="Empty where this installation calls the factory, null where an equal request "
        "made it before.",
    )


class FactoryList(ListView):
    """All remote factories, the last made first."""

    queryset = RemoteFactory.objects.none()
    serializer_class = FactorySerializer

    def get_queryset(self) -> QuerySet[RemoteFactory]:
        """Everything that the caller may see."""
        return visible_factories(caller(self.request))

    @once(hides=["token"])
    @extend_schema(
        summary="Make a remote factory",
        parameters=[WHY],
        responses={201: NewFactorySerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """The answer has its token, which is stored as a hash only."""
        body = FactorySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        factory = RemoteFactory(**body.validated_data)
        token = create_factory(factory, actor=Actor.person(caller(request)), reason=why_of(request))
        made = {"factory": factory, "token": token}
        return Response(NewFactorySerializer(made).data, status=status.HTTP_201_CREATED)


class FactoryDetail(RetrieveAPIView[RemoteFactory]):
    """One remote factory, with its entries."""

    queryset = RemoteFactory.objects.none()
    serializer_class = FactorySerializer
    lookup_field = "name"
    lookup_url_kwarg = "factory"

    def get_queryset(self) -> QuerySet[RemoteFactory]:
        """Everything that the caller may see."""
        return visible_factories(caller(self.request))

    @extend_schema(
        summary="Change a remote factory",
        parameters=[WHY],
        request=FactorySerializer,
        responses={200: FactorySerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, factory: str) -> Response:
        """All of it, but for its name, which stays, and its token."""
        row = self.get_object()
        body = FactorySerializer(row, data=request.data)
        body.is_valid(raise_exception=True)
        for name, value in body.validated_data.items():
            setattr(row, name, value)
        save_factory(row, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(FactorySerializer(row).data)

    @extend_schema(
        summary="Delete a remote factory",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404, 409)},
    )
    def delete(self, request: Request, factory: str) -> Response:
        """One of which pilots are ordered is refused: switch it off instead."""
        delete_factory(
            self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class FactoryToken(APIView):
    """Token of a remote factory, made anew or revoked."""

    @extend_schema(
        summary="Make a new token of a remote factory",
        parameters=[WHY],
        request=None,
        responses={200: TokenSerializer, **refusals(400, 403, 404, 409)},
    )
    def post(self, request: Request, factory: str) -> Response:
        """The old one is worth nothing from now on. It needs a reason."""
        row = find_factory(caller(request), factory)
        token = renew_token(row, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(TokenSerializer({"token": token}).data)

    @extend_schema(
        summary="Revoke the token of a remote factory",
        parameters=[WHY],
        responses={204: None, **refusals(400, 403, 404)},
    )
    def delete(self, request: Request, factory: str) -> Response:
        """Its calls are refused from now on. It needs a reason."""
        row = find_factory(caller(request), factory)
        revoke_token(row, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
