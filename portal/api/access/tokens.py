"""Endpoints and serializers of API tokens: list, make, read, revoke."""

from __future__ import annotations

from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import ListView, caller, refusals
from portal.api.idempotency import once
from portal.api.shapes import InstantField, ReasonSerializer, StrictSerializer
from portal.identity.foreign_tokens import ForeignToken
from wms.accounting.limited_tokens import issue_limited_token
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted
from wms.core.models import ApiToken, Role, Scope, User
from wms.core.policy import has_role
from wms.core.tokens import (
    find_token,
    require_scopes,
    revoke_tokens,
    visible_tokens,
)


class ApiTokenSerializer(serializers.ModelSerializer[ApiToken]):
    """Token of the API; of what is secret nothing."""

    user = serializers.CharField(source="user.username", read_only=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices), read_only=True)
    is_service = serializers.BooleanField(
        source="user.is_service", read_only=True, help_text="Whether its user is a service."
    )
    frontend = serializers.CharField(
        source="limit", read_only=True, allow_null=True,
        help_text="The frontend that it is limited to; null: it is not.",
    )  # fmt: skip
    last_used_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="To the minute; null: never."
    )
    last_used_from = serializers.CharField(
        read_only=True, allow_null=True, help_text="The address of the client."
    )

    class Meta:
        model = ApiToken
        fields = [
            "id", "prefix", "name", "user", "is_service", "scopes", "frontend", "created_at",
            "expires_at", "last_used_at", "last_used_from", "revoked_at",
        ]  # fmt: skip
        read_only_fields = fields


class MakeTokenSerializer(StrictSerializer):
    """Body of a request for a token."""

    name = serializers.CharField(max_length=100, help_text="What it is for.")
    user = serializers.CharField(
        max_length=150, required=False, allow_null=True, default=None,
        help_text="Whose it is to be, for administrators; null: the caller's.",
    )  # fmt: skip
    scopes = serializers.ListField(
        child=serializers.ChoiceField(Scope.choices), required=False, allow_null=True,
        default=None, max_length=20, help_text="null: all.",
    )  # fmt: skip
    frontend = serializers.CharField(
        max_length=64, required=False, allow_null=True, default=None,
        help_text="The frontend that it is limited to, for good: one that its user is in; null: "
        "it is not limited.",
    )  # fmt: skip
    expires_at = InstantField(
        required=False, allow_null=True, default=None, help_text="null: never."
    )


class NewTokenSerializer(ApiTokenSerializer):
    """A token that was made, with its text, which is told this once."""

    token = serializers.CharField(
        allow_null=True, help_text="null where an equal request made it before."
    )

    class Meta(ApiTokenSerializer.Meta):
        fields = [*ApiTokenSerializer.Meta.fields, "token"]
        read_only_fields = ApiTokenSerializer.Meta.fields


class TokenFilter(filters.FilterSet):
    """Filter of the list of tokens."""

    user = filters.CharFilter(field_name="user__username", label="The name of their user.")
    is_service = filters.BooleanFilter(
        field_name="user__is_service", label="Whether their users are services."
    )
    frontend = filters.CharFilter(
        field_name="frontend_name", label="The frontend that they are limited to."
    )
    is_revoked = filters.BooleanFilter(
        field_name="revoked_at", lookup_expr="isnull", exclude=True, label="Whether they are."
    )

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = ()


class TokenList(ListView):
    """The caller's tokens, the last made first; administrators see those of all."""

    queryset = ApiToken.objects.none()
    serializer_class = ApiTokenSerializer
    filterset_class = TokenFilter

    def get_queryset(self) -> QuerySet[ApiToken]:
        """Everything that the caller may see."""
        return visible_tokens(caller(self.request))

    @once(hides=["token"])
    @extend_schema(
        summary="Make a token",
        request=MakeTokenSerializer,
        responses={201: NewTokenSerializer, **refusals(400, 403)},
    )
    @sensitive_variables()
    def post(self, request: Request) -> Response:
        """The answer has its text, which is stored as a hash only.

        A token that makes another one has its scopes; unless it is for a service, it ends no later.
        One that is limited to a frontend makes none.
        """
        body = MakeTokenSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given: dict[str, Any] = body.validated_data
        user = _user_for(caller(request), given.pop("user"))
        _check_no_more(request.auth, user, given)
        limit = given.pop("frontend") or ""
        actor = Actor.person(caller(request))
        issued = issue_limited_token(user, frontend=limit, actor=actor, **given)
        row = find_token(caller(request), issued.row.pk)
        row.token = issued.text  # type: ignore[attr-defined]
        return Response(NewTokenSerializer(row).data, status=status.HTTP_201_CREATED)


def _user_for(asking: User, name: str | None) -> User:
    if name is None or name == asking.get_username():
        return asking
    if not has_role(asking, Role.ADMIN):
        raise NotPermitted(
            f"{asking.get_username()} may not make tokens for others: this needs the role "
            f"{Role.ADMIN.label}."
        )
    found = User.objects.filter(username=name.replace("\0", "?"), is_active=True).first()
    if found is None:
        raise InvalidInput.of(f"there is no active account {name}", field="user")
    return found


def _check_no_more(made_by: object, user: User, given: dict[str, Any]) -> None:
    """Raise unless the new token is good for no more, and no longer, than the one that makes it."""
    if not isinstance(made_by, ApiToken | ForeignToken):
        return
    require_scopes(made_by, Scope.values if given["scopes"] is None else given["scopes"])
    end, asked = made_by.expires_at, given["expires_at"]
    if not user.is_service and end is not None and (asked is None or asked > end):
        message = f"must be {end:%Y-%m-%dT%H:%M:%SZ} at the latest, when the token ends by which "
        raise InvalidInput.of(f"{message}it is asked for", field="expires_at")


class TokenDetail(RetrieveAPIView[ApiToken]):
    """One token; nothing of what is secret."""

    queryset = ApiToken.objects.none()
    serializer_class = ApiTokenSerializer
    lookup_url_kwarg = "token_id"

    def get_queryset(self) -> QuerySet[ApiToken]:
        """Everything that the caller may see."""
        return visible_tokens(caller(self.request))


class RevokeToken(APIView):
    """End of a token's validity."""

    @extend_schema(
        summary="Revoke a token",
        request=ReasonSerializer,
        responses={200: ApiTokenSerializer, **refusals(400, 403, 404)},
    )
    def post(self, request: Request, token_id: int) -> Response:
        """It is worth nothing from now on. That of another needs a reason."""
        row = find_token(caller(request), token_id)
        body = ReasonSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        reason = body.validated_data["reason"]
        revoke_tokens([row.pk], actor=Actor.person(caller(request)), reason=reason)
        return Response(ApiTokenSerializer(find_token(caller(request), row.pk)).data)
