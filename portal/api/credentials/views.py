"""Endpoints of credentials of frontends: list, make, read, change, delete; for operators only."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.credentials.shapes import CredentialSerializer
from portal.api.idempotency import once
from wms.core.actors import Actor
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.selectors import visible_credentials
from wms.pilots.credentials.services import delete_credential, save_credential


def _answer(request: Request, credential: Credential) -> dict[str, object]:
    stored = visible_credentials(caller(request)).get(pk=credential.pk)
    payload: dict[str, object] = CredentialSerializer(stored).data
    return payload


class CredentialList(ListView):
    """All credentials of frontends, the last made first; nothing of what is secret."""

    queryset = Credential.objects.none()
    serializer_class = CredentialSerializer

    def get_queryset(self) -> QuerySet[Credential]:
        """Everything that the caller may see."""
        return visible_credentials(caller(self.request))

    @once()
    @extend_schema(
        summary="Give a frontend a credential",
        parameters=[WHY],
        responses={201: CredentialSerializer, **refusals(400, 403)},
    )
    @sensitive_variables()
    def post(self, request: Request) -> Response:
        """Its pilots are submitted with it from the next turn on."""
        body = CredentialSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        credential = _with(Credential(), body.validated_data)
        save_credential(credential, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(_answer(request, credential), status=status.HTTP_201_CREATED)


class CredentialDetail(RetrieveAPIView[Credential]):
    """One credential of a frontend; nothing of what is secret."""

    queryset = Credential.objects.none()
    serializer_class = CredentialSerializer
    lookup_url_kwarg = "credential_id"

    def get_queryset(self) -> QuerySet[Credential]:
        """Everything that the caller may see."""
        return visible_credentials(caller(self.request))

    @extend_schema(
        summary="Set a credential anew",
        parameters=[WHY],
        request=CredentialSerializer,
        responses={200: CredentialSerializer, **refusals(400, 403, 404)},
    )
    @sensitive_variables()
    def put(self, request: Request, credential_id: int) -> Response:
        """All of it; without a secret the one that is stored stays."""
        credential = self.get_object()
        body = CredentialSerializer(credential, data=request.data)
        body.is_valid(raise_exception=True)
        _with(credential, body.validated_data)
        save_credential(credential, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(_answer(request, credential))

    @extend_schema(
        summary="Delete a credential",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404, 409)},
    )
    def delete(self, request: Request, credential_id: int) -> Response:
        """Not while pilots that have not ended were submitted with it."""
        delete_credential(
            self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


@sensitive_variables()
def _with(credential: Credential, values: dict[str, Any]) -> Credential:
    for name, value in values.items():
        setattr(credential, name, value)
    return credential
