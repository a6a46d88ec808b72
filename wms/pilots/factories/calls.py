"""Calls to remote frontends: one HTTPS request with a token, bounded in time and size.

Tokens are files of a folder, so that none is in the database, and no one who configures a frontend
can name another file to be sent away.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

from wms.core.conf import conf
from wms.core.errors import InvalidInput
from wms.factories.messages import MOST_ORDERS_BYTES, Orders, Report, as_json, orders_of
from wms.pilots.factory_models import RemoteFrontend

_TIMEOUT_S = 30
_MOST_TOKEN_BYTES = 1024
_MOST_REASON = 500


class CallFailed(Exception):
    """A frontend was not reached, or refused; the text says why."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for one address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def token_of(remote: RemoteFrontend) -> str:
    """The token with which a frontend is called. Raises CallFailed where there is none."""
    path = conf().frontend_tokens_dir / remote.frontend.name
    try:
        with path.open("rb") as file:
            token = file.read(_MOST_TOKEN_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise CallFailed(f"the file {path.name} with its token cannot be read: {why}") from error
    if not token or not token.isprintable():
        raise CallFailed(f"the file {path.name} has no token")
    return token


def call(remote: RemoteFrontend, token: str, report: Report) -> Orders:
    """Send a report and return the orders. Raises CallFailed."""
    request = urllib.request.Request(
        f"{remote.url.rstrip('/')}/factory/v1/exchange",
        json.dumps(as_json(report)).encode(),
        {
            "Authorization": f"Bearer {remote.factory_name}:{token}",
            "Content-Type": "application/json",
        },
    )
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            content = answer.read(MOST_ORDERS_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise CallFailed(f"it refused the call ({error.code}): {_detail(error)}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CallFailed(f"it cannot be reached: {reason}"[:_MOST_REASON]) from error
    if len(content) > MOST_ORDERS_BYTES:
        raise CallFailed(f"its answer has more than {MOST_ORDERS_BYTES} bytes")
    try:
        return orders_of(json.loads(content))
    except (ValueError, RecursionError, InvalidInput) as error:
        raise CallFailed(f"its answer cannot be understood: {error}"[:_MOST_REASON]) from error


def _detail(error: urllib.error.HTTPError) -> str:
    """What a refusal says of its reason, on one line."""
    try:
        detail = json.loads(error.read(10_000))["detail"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        detail = http.client.responses.get(error.code, "no reason given")
    return " ".join(str(detail).split())[:_MOST_REASON]
