"""API tokens `plt_<prefix>_<secret>`: made, shown once, stored as a hash, checked, revoked.

A check notes the time of use. Also the tokens of one user, and those that a user may see. Users
manage their own, admins those of all, with a reason.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import (
    AccountOff,
    InvalidInput,
    NotFound,
    ReasonRequired,
    ScopeMissing,
    TokenExpired,
    TokenRevoked,
    TokenUnknown,
)
from wms.core.models import ApiToken, Role, Scope, TokenKind, User
from wms.core.policy import has_role, require_role
from wms.core.transitions import Applied

_LAST_USED_STEP = timedelta(minutes=1)


def secret_digest(secret: str) -> str:
    """Hash of a token's secret, as it is stored."""
    # The secret has 256 random bits, so a plain hash is enough: there is nothing to guess.
    return hashlib.sha256(secret.encode()).hexdigest()


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token: its row, and its text, which cannot be read anywhere else."""

    row: ApiToken
    text: str


class NamedRow(Protocol):
    """Row with a key and a name; a frontend, of which core knows no more."""

    pk: int
    name: str


@transaction.atomic
def issue_token(
    user: User,
    *,
    name: str,
    actor: Actor,
    expires_at: datetime | None = None,
    scopes: Collection[str] | None = None,
    frontend: NamedRow | None = None,
) -> IssuedToken:
    """Make a token for the user, with all scopes or with these; limited to a frontend, or to none.

    Whether it may be limited so is for `wms.accounting.limited_tokens` to say, which makes those.
    Raises NotPermitted for another person's, unless by an admin, and InvalidInput for scopes that
    there are not.
    """
    kept = checked_scopes(Scope.values if scopes is None else scopes)
    _require_rights(actor, {user.pk})
    issued = store_token(
        user=user,
        name=name,
        expires_at=expires_at,
        scopes=kept,
        frontend_id=frontend.pk if frontend else None,
        frontend_name=frontend.name if frontend else "",
    )
    facts = {"user": user.username, "scopes": kept}
    record_action(
        "create token",
        target=f"user {user.username}, token {issued.row.prefix}",
        actor=actor,
        facts=facts | ({"frontend": frontend.name} if frontend else {}),
    )
    return issued


def store_token(**columns: Any) -> IssuedToken:
    """New token with these columns; who calls it has checked them, and writes the audit entry."""
    prefix, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
    row = ApiToken.objects.create(prefix=prefix, secret_sha256=secret_digest(secret), **columns)
    return IssuedToken(row, f"plt_{prefix}_{secret}")


def create_token(
    user: User,
    *,
    name: str,
    actor: Actor,
    expires_at: datetime | None = None,
    scopes: Collection[str] | None = None,
) -> str:
    """Make a token for the user and return its text, which is stored nowhere."""
    issued = issue_token(user, name=name, actor=actor, expires_at=expires_at, scopes=scopes)
    return issued.text


def checked_scopes(scopes: Collection[str]) -> list[str]:
    """These scopes in their order. Raises InvalidInput for none, and for unknown ones."""
    unknown = sorted(set(scopes) - set(Scope.values))
    if unknown or not scopes:
        known = ", ".join(Scope.values)
        raise InvalidInput.of(f"must be some of {known}", field="scopes")
    return [scope for scope in Scope.values if scope in scopes]


class ScopedToken(Protocol):
    """A token with scopes, the portal's own or one of another issuer; `prefix` names it."""

    @property
    def prefix(self) -> str:
        """Name of the token, for people."""
        ...

    @property
    def scopes(self) -> Sequence[str]:
        """Uses that it is for."""
        ...


def require_scopes(token: ScopedToken, needed: Collection[str]) -> None:
    """Raise ScopeMissing where the token lacks one of these scopes."""
    missing = [scope for scope in Scope.values if scope in needed and scope not in token.scopes]
    if missing:
        raise ScopeMissing(
            f"The token {token.prefix} has not the scope {' and '.join(missing)}; it has "
            f"{', '.join(token.scopes) or 'none'}.",
            scopes=missing,
        )


@transaction.atomic
def revoke_tokens(token_ids: Collection[int], *, actor: Actor, reason: str = "") -> Applied:
    """End the validity of tokens; those revoked before are skipped.

    Raises NotPermitted, and ReasonRequired for the tokens of others: their owners read it.
    """
    rows = list(
        ApiToken.objects.filter(pk__in=token_ids, revoked_at=None, kind=TokenKind.API)
        .select_related("user")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    owners = {row.user_id for row in rows}
    _require_rights(actor, owners)
    if not reason.strip() and _are_of_others(actor, owners):
        raise ReasonRequired("revoke token")
    ids = _revoke(rows, actor=actor, reason=reason)
    return Applied(changed=ids, skipped=sorted(set(token_ids) - set(ids)))


def end_tokens_of_frontend(frontend_id: int, *, actor: Actor, reason: str) -> None:
    """Revoke the tokens that are limited to a frontend, whosever they are: it is about to go.

    Call it with the frontend locked, in the transaction that deletes it, by whoever may do so.
    """
    rows = ApiToken.objects.filter(frontend_id=frontend_id, revoked_at=None)
    locked = rows.select_related("user").order_by("pk").select_for_update(of=("self",))
    _revoke(list(locked), actor=actor, reason=reason)


def _revoke(rows: Sequence[ApiToken], *, actor: Actor, reason: str) -> list[int]:
    """Ids of the rows, which are locked, and revoked with an entry each."""
    ids = [row.pk for row in rows]
    ApiToken.objects.filter(pk__in=ids).update(revoked_at=Now())
    for row in rows:
        target = f"user {row.user.username}, token {row.prefix}"
        record_action("revoke token", target=target, actor=actor, reason=reason)
    return ids


def _require_rights(actor: Actor, user_ids: set[int]) -> None:
    """Everybody manages their own tokens, admins those of all."""
    if _are_of_others(actor, user_ids):
        require_role(actor, Role.ADMIN, "manage the tokens of others")


def _are_of_others(actor: Actor, user_ids: set[int]) -> bool:
    return bool(user_ids if actor.user is None else user_ids - {actor.user.pk})


def _fits(token: ApiToken, digest: str, now: datetime) -> bool:
    """Whether it is the hash of the token's secret, or of the one before for as long as that is."""
    if hmac.compare_digest(token.secret_sha256, digest):
        return True
    until = token.former_until
    return until is not None and now < until and hmac.compare_digest(token.former_sha256, digest)


def visible_tokens(user: User) -> QuerySet[ApiToken]:
    """The tokens that the user may see: the own ones, and for admins those of all."""
    tokens = ApiToken.objects.filter(kind=TokenKind.API).select_related("user")
    if not user.is_active:
        return tokens.none()
    return tokens if has_role(user, Role.ADMIN) else tokens.filter(user=user)


def find_token(user: User, token_id: int) -> ApiToken:
    """One token that the user may see. Raises NotFound."""
    found = visible_tokens(user).filter(pk=token_id).first()
    if found is None:
        raise NotFound(f"There is no token {token_id}, or you may not see it.")
    return found


def own_tokens(user: User) -> QuerySet[ApiToken]:
    """The tokens of the user, the latest first; those that are revoked after the others."""
    return ApiToken.objects.filter(user=user, kind=TokenKind.API).order_by(
        F("revoked_at").desc(nulls_first=True), "-pk"
    )


def find_own_token(user: User, token_id: int) -> ApiToken:
    """One token of the user. Raises NotFound."""
    found = own_tokens(user).filter(pk=token_id).first()
    if found is None:
        raise NotFound(f"You have no token {token_id}.")
    return found


def authenticate_token(text: str, *, now: datetime) -> User:
    """The user of a token. Raises as `authenticated_token`."""
    return authenticated_token(text, now=now).user


def authenticated_token(
    text: str,
    *,
    now: datetime,
    told: Mapping[str, Combinable] | None = None,
    address: str | None = None,
    kind: TokenKind = TokenKind.API,
) -> ApiToken:
    """The token of this text and kind, with its user, who is limited as it is.

    Notes when, and from what address, it was used.

    Raises TokenUnknown, TokenRevoked, TokenExpired or AccountOff.
    `told` are expressions of a token's row that become attributes of the user, in the same query.
    """
    sign, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    tokens = ApiToken.objects.filter(prefix=prefix, kind=kind).select_related("user")
    token = tokens.annotate(**(told or {})).first()
    if sign != "plt" or token is None or not _fits(token, secret_digest(secret), now):
        raise TokenUnknown(f"The {kind.label} token is unknown.")
    # Whoever has the whole token is told why it is worth nothing.
    if token.revoked_at is not None:
        raise TokenRevoked(f"The {kind.label} token was revoked at {_minute(token.revoked_at)}.")
    if token.expires_at is not None and token.expires_at <= now:
        raise TokenExpired(f"The {kind.label} token has expired at {_minute(token.expires_at)}.")
    if not token.user.is_active:
        raise AccountOff(f"The account of this {kind.label} token is switched off.")
    if token.last_used_at is None or now - token.last_used_at > _LAST_USED_STEP:
        # Of many requests at once the first one writes.
        unnoted = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USED_STEP)
        same = ApiToken.objects.filter(unnoted, pk=token.pk)
        same.update(last_used_at=now, last_used_from=address)
    for name in told or ():
        setattr(token.user, name, getattr(token, name))
    token.user.limited_to = token.frontend_id
    return token
