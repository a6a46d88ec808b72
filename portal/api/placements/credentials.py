"""Endpoints and serializers of a caller's credentials for transfers: list, set, delete."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.shapes import StrictSerializer
from wms.core.actors import Actor
from wms.placement.credential_models import PlacementCredential
from wms.placement.credentials import (
    NewCredential,
    delete_credential,
    own_credentials,
    set_credential,
)


class PlacementCredentialSerializer(serializers.ModelSerializer[PlacementCredential]):
    """A credential of the caller; what is secret is never shown."""

    endpoint = serializers.CharField(source="__str__", read_only=True)

    class Meta:
        model = PlacementCredential
        fields = ["id", "endpoint", "kind", "user", "created_at", "replaced_at"]
        extra_kwargs = {
            "kind": {"read_only": True},
            "user": {"read_only": True},
            "replaced_at": {"read_only": True},
        }


class NewPlacementCredentialSerializer(StrictSerializer, serializers.Serializer[Any]):
    """Credential that is set for an endpoint: user with a password or a key, or a token."""

    endpoint = serializers.CharField(
        max_length=300, help_text="Such as davs://storage.example.org:8443."
    )
    user = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)
    password = serializers.CharField(
        required=False, default="", allow_blank=True, write_only=True, trim_whitespace=False,
        max_length=8192,
    )  # fmt: skip
    token = serializers.CharField(
        required=False, default="", allow_blank=True, write_only=True, max_length=8192
    )
    key = serializers.CharField(
        required=False, default="", allow_blank=True, write_only=True, max_length=65536,
        help_text="The private SSH key of the user, without a passphrase: of sftp and scp.",
    )  # fmt: skip


class PlacementCredentialList(ListView):
    """The caller's credentials for transfers."""

    queryset = PlacementCredential.objects.none()
    serializer_class = PlacementCredentialSerializer

    def get_queryset(self) -> QuerySet[PlacementCredential]:
        """The caller's own."""
        return own_credentials(caller(self.request)).order_by("-pk")

    @once()
    @extend_schema(
        summary="Set the credential that your transfers show to an endpoint",
        parameters=[WHY],
        request=NewPlacementCredentialSerializer,
        responses={
            200: PlacementCredentialSerializer,
            201: PlacementCredentialSerializer,
            **refusals(400, 403),
        },
    )
    @sensitive_variables()
    def post(self, request: Request) -> Response:
        """It takes the place of the one that is stored for this endpoint (200), if any."""
        body = NewPlacementCredentialSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller(request)
        stored, is_new = set_credential(
            NewCredential(**body.validated_data),
            owner=user,
            actor=Actor.person(user),
            reason=why_of(request),
        )
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(PlacementCredentialSerializer(stored).data, status=code)


class PlacementCredentialDetail(APIView):
    """One credential of the caller."""

    @extend_schema(
        summary="Delete a credential for transfers",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404)},
    )
    def delete(self, request: Request, placement_credential_id: int) -> Response:
        """Transfers that begin later have none for its endpoint."""
        user = caller(request)
        delete_credential(
            placement_credential_id, owner=user, actor=Actor.person(user), reason=why_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)
