"""Login throttle: wrong passwords, counted in the cache by account and by address.

An attempt is counted before the password is checked, and taken back when it was right: parallel
attempts are bounded like consecutive ones. Without the cache nobody is locked out. Also the
middleware that answers one too many (429), and the address of a client behind a trusted proxy.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from typing import TypeVar

import structlog
from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from redis.exceptions import RedisError

from portal.middleware.errors import refused
from wms.core.errors import TooMany

log = structlog.get_logger(__name__)
#: So many failures for one account from one address, within the time below, lock the two out.
FAILURES_PER_ACCOUNT = 10
#: And so many from one address, whatever the accounts: each costs the server a slow hash.
FAILURES_PER_ADDRESS = 100
LOCKOUT_S = 300

T = TypeVar("T")


class TooManyWrongPasswords(TooMany):
    """Too many wrong passwords were given for this account or from this address."""


def throttled_check(request: HttpRequest, username: str, check: Callable[[], T]) -> T:
    """Result of `check`, which verifies a password, unless too many were wrong before.

    Raises TooManyWrongPasswords then, without calling it.

    Without a cache nobody is locked out: an attacker cannot take the cache away, and an operator
    who repairs the portal has to get in. The log records it.
    """
    keys = _keys(request, username)
    bounds = (FAILURES_PER_ACCOUNT, FAILURES_PER_ADDRESS)
    if any([_count(key) > bound for key, bound in zip(keys, bounds, strict=True)]):
        raise TooManyWrongPasswords
    found = check()
    if found:
        for key in keys:
            _take_back(key)
    return found


def _count(key: str) -> int:
    """Count one more and return how many there are; none that comes at once is missed."""
    try:
        cache.add(key, 0, timeout=LOCKOUT_S)
        count: int = cache.incr(key)
        if count <= 1:
            # It may have been forgotten just now, and been made anew without an end.
            cache.touch(key, LOCKOUT_S)
    except (RedisError, ValueError) as error:
        log.error("password_guess_not_counted", error=str(error))
        return 0
    return count


def _take_back(key: str) -> None:
    try:
        cache.decr(key)
    except (RedisError, ValueError) as error:
        log.warning("password_guess_not_taken_back", error=str(error))


def _keys(request: HttpRequest, username: str) -> tuple[str, str]:
    # The login form takes a name in any spelling that normalises to it.
    account = unicodedata.normalize("NFKC", username).strip().casefold()
    address = client_address(request)
    return _key(f"{address} {account}"), _key(address)


def _key(text: str) -> str:
    return f"login-failures:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def client_address(request: HttpRequest) -> str:
    """Address of the client: behind a trusted proxy, the address that the proxy saw."""
    if settings.BEHIND_PROXY:
        forwarded: str = request.META.get("HTTP_X_FORWARDED_FOR", "")
        return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


def ip_address_of(request: HttpRequest) -> str | None:
    """Address of the client, if it is one: a proxy may tell anything."""
    text = client_address(request)
    try:
        return str(ip_address(text))
    except ValueError:
        return None


class LoginThrottle:
    """Middleware that answers one wrong password too many, wherever a password is asked for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as usual."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 429 where the password was not looked at."""
        if not isinstance(error, TooManyWrongPasswords):
            return None
        return refused(request, HTTPStatus.TOO_MANY_REQUESTS, str(error))
