"""API tokens of logins by a provider: good for an hour, renewed as long as the provider says so.

Each login of a command line has one row: to renew it gives it another secret and another end. So it
is listed and revoked as any token; once revoked it is renewed no more. Requests are repeated after
a lost answer: an ID token makes or renews one login, and no other after it; and the secret before a
renewal is good for a moment.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction

from wms.core.actors import Actor
from wms.core.errors import LoginRefused, TokenRevoked, TokenUnknown
from wms.core.identity_models import Identity
from wms.core.models import ApiToken
from wms.core.tokens import IssuedToken, issue_token, secret_digest

LIFETIME = timedelta(hours=1)
#: So long the secret before a renewal is still good.
OVERLAP = timedelta(seconds=60)


@transaction.atomic
def issue_login_token(
    identity: Identity,
    *,
    id_token: str,
    name: str,
    now: datetime,
    scopes: Collection[str] | None = None,
) -> IssuedToken:
    """A token of the account that has just logged in by its identity.

    The same ID token once more gives the login that it made or renewed another secret. Raises
    TokenRevoked where that one was revoked or its identity unlinked, and LoginRefused where the
    identity is linked no more.
    """
    _lock(identity)
    key = _key_of(id_token)
    known = ApiToken.objects.select_for_update().filter(login_key=key).first()
    if known is not None:
        if known.login_id != identity.pk:
            raise TokenRevoked(f"The login {known.prefix} ended with its link: log in anew.")
        return _renewed(known, key, now)
    user = identity.user
    issued = issue_token(
        user, name=name, actor=Actor.person(user), expires_at=now + LIFETIME, scopes=scopes
    )
    ApiToken.objects.filter(pk=issued.row.pk).update(login=identity, login_key=key)
    return issued


@transaction.atomic
def renew_login_token(
    identity: Identity, prefix: str, *, id_token: str, now: datetime
) -> IssuedToken:
    """The token of an earlier login by the same identity, with a new secret and a new end.

    Raises TokenUnknown for one of another identity, TokenRevoked, and LoginRefused where the
    identity is linked no more, or the ID token has made or renewed another login.
    """
    _lock(identity)
    row = ApiToken.objects.select_for_update().filter(prefix=prefix, login=identity).first()
    if row is None or row.user_id != identity.user_id:
        raise TokenUnknown(f"There is no login {prefix[:12]} of yours to be renewed: log in anew.")
    key = _key_of(id_token)
    if ApiToken.objects.filter(login_key=key).exclude(pk=row.pk).exists():
        raise LoginRefused("The ID token was used for another login: log in anew.")
    return _renewed(row, key, now)


def _lock(identity: Identity) -> None:
    """Have a request and its repetition, and who unlinks, come one after the other."""
    if not Identity.objects.select_for_update().filter(pk=identity.pk).exists():
        raise LoginRefused("The identity was unlinked at this moment.")


def _key_of(id_token: str) -> str:
    # A signature can be written in several ways, what is signed in one only.
    return secret_digest(id_token.rpartition(".")[0])


def _renewed(row: ApiToken, key: str, now: datetime) -> IssuedToken:
    if row.revoked_at is not None:
        raise TokenRevoked(f"The login {row.prefix} was revoked: log in anew.")
    secret = secrets.token_urlsafe(32)
    # While one is good, its holder may have got no answer yet: what was told since is forgotten.
    if row.former_until is None or row.former_until <= now:
        end = now + OVERLAP
        row.former_sha256 = row.secret_sha256
        row.former_until = end if row.expires_at is None else min(end, row.expires_at)
    row.secret_sha256, row.expires_at = secret_digest(secret), now + LIFETIME
    row.login_key = key
    row.save(
        update_fields=["secret_sha256", "expires_at", "former_sha256", "former_until", "login_key"]
    )
    return IssuedToken(row, f"plt_{row.prefix}_{secret}")
