"""Endpoints and serializers of identities at providers: list, link, read, unlink."""

from __future__ import annotations

from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.shapes import StrictSerializer
from portal.identity.foreign_tokens import ForeignToken
from portal.identity.known_issuers import login_issuers
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound, NotPermitted
from wms.core.identities import (
    find_identity,
    identities_of,
    link_identity,
    unlink_identities,
    visible_identities,
)
from wms.core.identity_models import Identity
from wms.core.models import ApiToken, Role, Scope, User
from wms.core.policy import require_role
from wms.core.tokens import require_scopes

_EXAMPLE = {
    "user": "alice",
    "issuer": "https://atlas-auth.example.org/",
    "subject": "7b2e4b1c-5d0e-4a53-9c11-3f0f6a1d2b90",
}


class IdentitySerializer(serializers.ModelSerializer[Identity]):
    """Identity at a provider, linked to an account."""

    user = serializers.CharField(source="user.username", read_only=True)
    linked_at = serializers.DateTimeField(source="created_at", read_only=True)
    linked_by = serializers.CharField(
        read_only=True, allow_blank=True,
        help_text="Its user, an administrator, `system:openid` for the first login, "
        "`system:command line`; empty: not known.",
    )  # fmt: skip
    last_used_at = serializers.DateTimeField(
        read_only=True, allow_null=True,
        help_text="By a login or a signed token, to the minute; null: never.",
    )  # fmt: skip
    last_used_from = serializers.CharField(
        read_only=True, allow_null=True, help_text="The address of the client."
    )

    class Meta:
        model = Identity
        fields = [
            "id", "user", "issuer", "subject", "linked_at", "linked_by", "last_used_at",
            "last_used_from",
        ]  # fmt: skip
        read_only_fields = fields


class LinkIdentitySerializer(StrictSerializer):
    """Body of a request that links an identity."""

    user = serializers.CharField(max_length=150, help_text="The account.")
    issuer = serializers.CharField(
        max_length=500, trim_whitespace=False,
        help_text="As it writes itself in its configuration, to the last slash.",
    )  # fmt: skip
    subject = serializers.CharField(
        max_length=255, trim_whitespace=False, help_text="`sub` of the person there."
    )
    reason = serializers.CharField(
        max_length=2000, required=False, allow_blank=True, default="",
        help_text="Why; it stands in the audit trail.",
    )  # fmt: skip


class IdentityFilter(filters.FilterSet):
    """Filter of the list of identities."""

    user = filters.CharFilter(field_name="user__username", label="The name of their account.")
    issuer = filters.CharFilter(label="Their issuer.")

    class Meta:
        model = Identity
        fields: tuple[str, ...] = ()


class IdentityList(ListView):
    """The caller's identities, the last linked first; administrators see those of all."""

    queryset = Identity.objects.none()
    serializer_class = IdentitySerializer
    filterset_class = IdentityFilter

    def get_queryset(self) -> QuerySet[Identity]:
        """Everything that the caller may see."""
        return visible_identities(caller(self.request))

    @once()
    @extend_schema(
        summary="Link an identity to an account",
        request=LinkIdentitySerializer,
        responses={201: IdentitySerializer, **refusals(400, 403, 409)},
        examples=[
            OpenApiExample(
                "A person who has two accounts at providers",
                {**_EXAMPLE, "reason": "asked by mail"},
                request_only=True,
            ),
            OpenApiExample(
                "It is linked",
                {
                    "id": 12, **_EXAMPLE, "linked_at": "2026-11-28T09:00:00Z", "linked_by": "ada",
                    "last_used_at": None, "last_used_from": None,
                },
                response_only=True,
                status_codes=["201"],
            ),
        ],
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """Whoever logs in as it, or has a signed token of it, is this account from then on.

        For administrators, with a reason, and by a token that has every scope and no end, or in a
        session. What is linked to an account already is refused (409); people link their own on the
        page of their account, by logging in.
        """
        actor = Actor.person(caller(request))
        require_role(actor, Role.ADMIN, "manage accounts")
        _check_no_less(request.auth)
        body = LinkIdentitySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given: dict[str, Any] = body.validated_data
        made = link_identity(_account(given.pop("user")), **given, actor=actor)
        found = find_identity(caller(request), made.pk)
        return Response(IdentitySerializer(found).data, status=status.HTTP_201_CREATED)


def _check_no_less(asked_by: object) -> None:
    """Raise where a token is good for less, or not as long, as the logins that a link gives."""
    if not isinstance(asked_by, ApiToken | ForeignToken):
        return
    require_scopes(asked_by, Scope.values)
    if asked_by.expires_at is not None:
        raise NotPermitted(
            f"The token {asked_by.prefix} ends, and a link does not: it needs a session, or a "
            "token without an end."
        )


def _account(name: str) -> User:
    found = User.objects.filter(username=name.replace("\0", "?")).first()
    if found is None:
        raise InvalidInput.of(f"there is no account {name}", field="user")
    return found


class IdentityDetail(RetrieveAPIView[Identity]):
    """One identity."""

    queryset = Identity.objects.none()
    serializer_class = IdentitySerializer
    lookup_url_kwarg = "identity_id"

    def get_queryset(self) -> QuerySet[Identity]:
        """Everything that the caller may see."""
        return visible_identities(caller(self.request))

    @extend_schema(
        summary="Unlink an identity",
        parameters=[WHY],
        responses={204: None, **refusals(400, 403, 404, 409)},
    )
    def delete(self, request: Request, identity_id: int) -> Response:
        """It opens the account no more, and the tokens of its logins from terminals are revoked.

        For administrators, with a reason. The last one by which they could log in themselves is
        refused (409).
        """
        actor = Actor.person(caller(request))
        row = find_identity(caller(request), identity_id)
        require_role(actor, Role.ADMIN, "manage accounts")
        applied = unlink_identities(
            [row.pk], actor=actor, login_issuers=login_issuers(), reason=why_of(request)
        )
        if not applied.changed:
            raise NotFound(f"There is no identity {identity_id} any more.")
        return Response(status=status.HTTP_204_NO_CONTENT)


class OwnIdentities(ListView):
    """The caller's own identities, the last linked first."""

    queryset = Identity.objects.none()
    serializer_class = IdentitySerializer

    def get_queryset(self) -> QuerySet[Identity]:
        """Identities of the caller's account."""
        return identities_of(caller(self.request)).select_related("user")
