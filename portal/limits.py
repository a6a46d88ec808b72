"""Bounds on what strangers may send: the size of requests, the number of guesses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from http import HTTPStatus

import structlog
from django.contrib.auth.signals import user_login_failed
from django.core.cache import cache
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from redis.exceptions import RedisError

from wms.core.conf import conf

log = structlog.get_logger(__name__)
#: A form of somebody who is not logged in is a login form.
ANONYMOUS_BODY_BYTES = 64 * 1024
#: So many wrong passwords for one account from one address lock the two out for the time below.
LOGIN_FAILURES = 10
LOGIN_LOCKOUT_S = 300
#: These have tokens instead of sessions, and bounds of their own.
_OTHER_FACES = ("/api/", "/pilot/")

_View = Callable[[HttpRequest], HttpResponseBase]


class BoundedRequests:
    """Middleware that refuses a large body before anything reads it, the CSRF check included."""

    def __init__(self, get_response: _View) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer 413 for a body beyond its bound, 429 for too many guesses at the login.

        An address with a zero byte names nothing: no text in the database can contain one.
        """
        if "\0" in request.path:
            return _refusal(HTTPStatus.NOT_FOUND, "There is no such page.")
        if not request.path.startswith(_OTHER_FACES):
            announced = request.META.get("CONTENT_LENGTH") or "0"
            if announced != "0" and not _is_within(announced, request):
                return _refusal(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is larger than allowed."
                )
            if request.method == "POST" and _failures(request) >= LOGIN_FAILURES:
                return _refusal(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    "Too many wrong passwords for this account. Try again in some minutes.",
                )
        return self._get_response(request)


def _is_within(announced: str, request: HttpRequest) -> bool:
    if not announced.isascii() or not announced.isdigit():
        return False
    size_bytes = int(announced[:20])
    if size_bytes <= ANONYMOUS_BODY_BYTES:
        return True
    return request.user.is_authenticated and size_bytes <= conf().max_upload_bytes


def _refusal(status: HTTPStatus, text: str) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")


def _key(request: HttpRequest) -> str:
    """Account and address: behind a proxy, where all addresses are one, nobody locks out others."""
    who = f"{request.META.get('REMOTE_ADDR', '')} {request.POST.get('username', '').lower()}"
    return f"login-failures:{hashlib.sha256(who.encode(errors='replace')).hexdigest()}"


def _failures(request: HttpRequest) -> int:
    """Wrong passwords lately; none for those who are logged in, or without a cache."""
    if request.user.is_authenticated:
        return 0
    try:
        return int(cache.get(_key(request), 0))
    except RedisError as error:
        log.warning("login_count_unreadable", error=str(error))
        return 0


@receiver(user_login_failed)
def _count_failure(sender: object, request: HttpRequest | None = None, **_: object) -> None:
    if request is None:
        return
    try:
        cache.add(_key(request), 0, timeout=LOGIN_LOCKOUT_S)
        cache.incr(_key(request))
    except (RedisError, ValueError) as error:
        log.warning("login_count_not_kept", error=str(error))
