"""Wrong passwords: counted in the cache by account and by address, which bounds guessing."""

from __future__ import annotations

import hashlib
import unicodedata

import structlog
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.core.cache import cache
from django.dispatch import receiver
from django.http import HttpRequest
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)
#: So many failures for one account from one address, within the time below, lock the two out.
FAILURES_PER_ACCOUNT = 10
#: And so many from one address, whatever the accounts: each costs the server a slow hash.
FAILURES_PER_ADDRESS = 100
LOCKOUT_S = 300


def is_locked_out(request: HttpRequest) -> bool:
    """True when this form would be one guess too many. Without a cache nobody is locked out."""
    account_key, address_key = _keys(request, request.POST.get("username", ""))
    try:
        counts = cache.get_many([account_key, address_key])
    except RedisError as error:
        log.warning("login_failures_unreadable", error=str(error))
        return False
    return (
        counts.get(account_key, 0) >= FAILURES_PER_ACCOUNT
        or counts.get(address_key, 0) >= FAILURES_PER_ADDRESS
    )


@receiver(user_login_failed)
def _count_failure(
    sender: object,
    credentials: dict[str, str],
    request: HttpRequest | None = None,
    **_: object,
) -> None:
    if request is None:
        return
    for key in _keys(request, credentials.get("username", "")):
        try:
            cache.add(key, 0, timeout=LOCKOUT_S)
            cache.incr(key)
        except (RedisError, ValueError) as error:
            log.warning("login_failure_not_counted", error=str(error))


def _keys(request: HttpRequest, username: str) -> tuple[str, str]:
    # The login form takes a name in any spelling that normalises to it.
    account = unicodedata.normalize("NFKC", username).strip().casefold()
    address = client_address(request)
    return _key(f"{address} {account}"), _key(address)


def _key(text: str) -> str:
    return f"login-failures:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def client_address(request: HttpRequest) -> str:
    """Where a request came from: behind a trusted proxy, the address that the proxy saw."""
    if settings.BEHIND_PROXY:
        forwarded: str = request.META.get("HTTP_X_FORWARDED_FOR", "")
        return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))
