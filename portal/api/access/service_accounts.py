"""Endpoints and serializer of service accounts: list, make, read, change; for administrators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.limits.shapes import GroupField
from portal.api.shapes import StrictSerializer
from wms.accounting.models import AccountingGroup
from wms.accounting.service_accounts import (
    find_service_account,
    save_service_account,
    visible_service_accounts,
)
from wms.core.actors import Actor
from wms.core.models import Role, ServiceAccount

_ROLES = [(role.value, role.label) for role in Role if role != Role.ADMIN]


class ServiceAccountSerializer(StrictSerializer, serializers.ModelSerializer[ServiceAccount]):
    """Account of a program: without password and login, it has tokens only."""

    username = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(_ROLES, required=False, default=Role.USER.value)
    groups = GroupField(
        "name", queryset=AccountingGroup.objects.all(), many=True, required=False, default=list,
        source="accounting_groups",
        help_text="Accounting groups of which it is a member; none: it is the default frontend's.",
    )  # fmt: skip
    email = serializers.EmailField(
        required=False, default="", allow_blank=True, max_length=254, help_text="Whom to ask."
    )
    is_active = serializers.BooleanField(required=False, default=True)
    created_at = serializers.DateTimeField(source="date_joined", read_only=True)
    last_used_at = serializers.DateTimeField(
        read_only=True, allow_null=True, default=None,
        help_text="When one of its tokens was used last; null: never.",
    )  # fmt: skip

    class Meta:
        model = ServiceAccount
        fields = [
            "id", "username", "role", "groups", "email", "is_active", "created_at", "last_used_at",
        ]  # fmt: skip
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []


def _store(request: Request, account: ServiceAccount, values: dict[str, Any]) -> ServiceAccount:
    groups = values.pop("accounting_groups")
    for name, value in values.items():
        setattr(account, name, value)
    actor = Actor.person(caller(request))
    save_service_account(account, groups=groups, actor=actor, reason=why_of(request))
    return find_service_account(caller(request), account.pk)


class ServiceAccountList(ListView):
    """All service accounts, the last made first."""

    queryset = ServiceAccount.objects.none()
    serializer_class = ServiceAccountSerializer

    def get_queryset(self) -> QuerySet[ServiceAccount]:
        """Everything that the caller may see."""
        return visible_service_accounts(caller(self.request))

    @once()
    @extend_schema(
        summary="Make a service account",
        parameters=[WHY],
        responses={201: ServiceAccountSerializer, **refusals(400, 403, 409)},
    )
    def post(self, request: Request) -> Response:
        """It can do nothing before it has a token."""
        body = ServiceAccountSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        made = _store(request, ServiceAccount(), body.validated_data)
        return Response(ServiceAccountSerializer(made).data, status=status.HTTP_201_CREATED)


class ServiceAccountDetail(RetrieveAPIView[ServiceAccount]):
    """One service account."""

    queryset = ServiceAccount.objects.none()
    serializer_class = ServiceAccountSerializer
    lookup_url_kwarg = "account_id"

    def get_queryset(self) -> QuerySet[ServiceAccount]:
        """Everything that the caller may see."""
        return visible_service_accounts(caller(self.request))

    @extend_schema(
        summary="Change a service account",
        parameters=[WHY],
        request=ServiceAccountSerializer,
        responses={200: ServiceAccountSerializer, **refusals(400, 403, 404, 409)},
    )
    def put(self, request: Request, account_id: int) -> Response:
        """All of it, but for its name, which stays. Its tokens end with `is_active`."""
        account = self.get_object()
        body = ServiceAccountSerializer(account, data=request.data)
        body.is_valid(raise_exception=True)
        return Response(
            ServiceAccountSerializer(_store(request, account, body.validated_data)).data
        )
