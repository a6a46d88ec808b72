"""Rates of the REST API: so many requests of one token, so many of it for each of its scopes, and
so many of one user with all tokens.

Requests are counted in Redis, for all web servers together, and before they are judged: many at
once are bounded like one after another. What was refused does not count. Without Redis nobody is
refused: the API's truth is PostgreSQL, and what is dear there has places of its own
(`wms.core.heavy`).

Each answer tells its caller's standing in the fields `RateLimit-Policy` and `RateLimit`
(draft-ietf-httpapi-ratelimit-headers).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.core.cache import caches
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.api.request_rates import Judgement, Rate, judge, window_of
from portal.api.scopes import scopes_of
from portal.config.caching import PlainCache
from portal.identity.foreign_tokens import ForeignToken
from wms.core.errors import TooMany
from wms.core.models import ApiToken, Scope

if TYPE_CHECKING:
    # It imports this module: throttles are among its settings.
    from rest_framework.views import APIView

log = structlog.get_logger(__name__)
#: A Redis that failed is left alone for so long: no request waits for it again.
_PAUSE_S = 10.0


class RateExceeded(TooMany):
    """More requests in a time than the rate allows; `policies` names those that were exceeded."""

    code = "rate-exceeded"

    def __init__(self, message: str, *, policies: Sequence[str], retry_after_s: int) -> None:
        super().__init__(message)
        self.policies, self.retry_after_s = tuple(policies), retry_after_s


class _Counts:
    """Counts in the cache, which may be away."""

    def __init__(self) -> None:
        self._away_until_s = float("-inf")

    def count(self, windows: Sequence[tuple[str, int, Rate]]) -> list[tuple[int, int]] | None:
        """One more in each window; its count and that of the window before. None: not known."""
        if time.monotonic() < self._away_until_s:
            return None
        try:
            return _kept().count_in_windows(
                [(key, number, 2 * rate.window_s) for key, number, rate in windows]
            )
        except (RedisError, OSError) as error:
            self._away_until_s = time.monotonic() + _PAUSE_S
            log.error("requests_not_counted", error=str(error), pause_s=_PAUSE_S)
            return None

    def take_back(self, windows: Sequence[tuple[str, int, Rate]]) -> None:
        """Count one less in each window."""
        try:
            _kept().take_back([(key, number) for key, number, _ in windows])
        except (RedisError, OSError) as error:
            log.warning("requests_not_taken_back", error=str(error))


def _kept() -> PlainCache:
    kept = caches["default"]
    assert isinstance(kept, PlainCache)
    return kept


_COUNTS = _Counts()


class CallerRates(BaseThrottle):
    """Throttle of each token, its scopes and each user, by the rates of the settings."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the request and tell its caller's standing. Raises RateExceeded."""
        rates = _rates()
        callers = {policy: key for policy, key in _callers(request).items() if policy in rates}
        if not callers:
            return True
        view.headers["RateLimit-Policy"] = ", ".join(
            f'"{policy}";q={rates[policy].requests};w={rates[policy].window_s}'
            for policy in callers
        )
        now_ms = time.time_ns() // 1_000_000
        windows = [
            (f"api-rate:{policy}:{key}", window_of(rates[policy], now_ms)[0], rates[policy])
            for policy, key in callers.items()
        ]
        counts = _COUNTS.count(windows)
        if counts is None:
            return True
        judged = {
            policy: judge(
                rates[policy], current=current, before=before,
                elapsed_ms=window_of(rates[policy], now_ms)[1],
            )
            for policy, (current, before) in zip(callers, counts, strict=True)
        }  # fmt: skip
        view.headers["RateLimit"] = ", ".join(
            f'"{policy}";r={each.remaining};t={each.reset_s}' for policy, each in judged.items()
        )
        _refuse(judged, windows)
        return True


def _rates() -> dict[str, Rate]:
    return {policy: Rate(*rate) for policy, rate in settings.API_RATES.items()}


def _refuse(judged: Mapping[str, Judgement], windows: Sequence[tuple[str, int, Rate]]) -> None:
    """Raise RateExceeded unless each policy lets the request pass."""
    exceeded = [policy for policy, each in judged.items() if not each.is_admitted]
    if not exceeded:
        return
    _COUNTS.take_back(windows)
    wait_s = max(judged[policy].reset_s for policy in exceeded)
    rates = _rates()
    told = " and ".join(
        f"{rates[policy].requests} requests in {rates[policy].window_s} s {_whose(policy)}"
        for policy in exceeded
    )
    raise RateExceeded(
        f"More than {told}: ask again in {wait_s} s.", policies=exceeded, retry_after_s=wait_s
    )


def _whose(policy: str) -> str:
    is_of_scope = policy in Scope.values
    return f"of one token for the scope {policy}" if is_of_scope else f"of one {policy}"


def _callers(request: Request) -> dict[str, str]:
    """Keys of who asks, by policy; empty for nobody, who is answered 401.

    A request of a token counts for each scope that it needs, whose policies have their names.
    """
    user, credential = request.user, request.auth
    if user is None or user.pk is None:
        return {}
    if isinstance(credential, ApiToken):
        return _with_scopes(request, credential.prefix) | {"user": str(user.pk)}
    if isinstance(credential, ForeignToken):
        # Of another issuer: its holder gets new ones all the time.
        digest = hashlib.sha256(credential.holder.encode()).hexdigest()[:32]
        return _with_scopes(request, digest) | {"user": str(user.pk)}
    if isinstance(credential, str):
        # A payload's: many of one user's run at once, and must not stop the user's own programs.
        digest = hashlib.sha256(credential.encode()).hexdigest()[:32]
        return {"token": digest, "user": f"{user.pk}-payloads"}
    return {"user": str(user.pk)}


def _with_scopes(request: Request, token: str) -> dict[str, str]:
    needed = scopes_of(request)
    return {"token": token} | {scope.value: token for scope in Scope if scope in needed}
