"""API tokens: `plt_<prefix>_<secret>`, shown once, stored as a hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import NotAuthenticated
from wms.core.models import ApiToken, User

_LAST_USED_STEP = timedelta(minutes=1)


def _digest(secret: str) -> str:
    # The secret has 256 random bits, so a plain hash is enough: there is nothing to guess.
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def create_token(user: User, *, name: str, actor: Actor, expires_at: datetime | None = None) -> str:
    """Make a token and return its text, which is not stored and cannot be shown again."""
    prefix, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
    ApiToken.objects.create(
        user=user, name=name, prefix=prefix, secret_sha256=_digest(secret), expires_at=expires_at
    )
    record_action(
        "create token", target=f"token {prefix}", actor=actor, facts={"user": user.username}
    )
    return f"plt_{prefix}_{secret}"


def authenticate_token(text: str, *, now: datetime) -> User:
    """The user of a token. Raises NotAuthenticated when it is unknown, revoked or expired."""
    kind, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    usable = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
    token = ApiToken.objects.filter(usable, prefix=prefix).select_related("user").first()
    if (
        kind != "plt"
        or token is None
        or not hmac.compare_digest(token.secret_sha256, _digest(secret))
    ):
        raise NotAuthenticated("The API token is unknown, revoked or expired.")
    if not token.user.is_active:
        raise NotAuthenticated("The account of this API token is switched off.")
    if token.last_used_at is None or now - token.last_used_at > _LAST_USED_STEP:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token.user
