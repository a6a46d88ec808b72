"""Calls to remote frontends and factories: HTTPS requests with a token, bounded in time and size.

Tokens are files of a folder, so that none is in the database, and no one who configures a partner
can name another file to be sent away.
"""

from __future__ import annotations

import http.client
import json
import random
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from wms.core.conf import conf
from wms.core.errors import InvalidInput
from wms.factories.messages import (
    MOST_ORDERS_BYTES,
    MOST_REPORT_BYTES,
    Orders,
    Question,
    Report,
    as_json,
    orders_of,
    report_of,
    turn_of,
)
from wms.factories.models import RemoteFactory
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.pressure.backoff import pause_s

_TIMEOUT_S = 30
_MOST_TOKEN_BYTES = 1024
_MOST_REASON = 500
#: Bytes of an answer that says nothing but that the orders arrived.
_MOST_RECEIPT_BYTES = 16 * 1024
#: A partner is looked for at least so often, whatever it was that failed.
_LONGEST_PAUSE_S = 60.0
T = TypeVar("T")


class CallFailed(Exception):
    """A partner was not reached, or refused; the text says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """Address of a partner, and the credential it is called with."""

    url: str
    name: str
    token: str


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for one address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def next_call(failures: int, now: datetime) -> datetime:
    """When a partner is called again after so many failures in a row."""
    pause = min(pause_s(failures, jitter=random.uniform(-1, 1)), _LONGEST_PAUSE_S)
    return now + timedelta(seconds=pause)


def token_of(remote: RemoteFrontend) -> str:
    """The token with which a frontend is called. Raises CallFailed where there is none."""
    return _token_in(conf().frontend_tokens_dir / remote.frontend.name)


def token_of_factory(factory: RemoteFactory) -> str:
    """The token with which a factory is called. Raises CallFailed where there is none."""
    return _token_in(conf().factory_tokens_dir / factory.name)


def _token_in(path: Path) -> str:
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
    """Send a frontend a report and return its orders. Raises CallFailed."""
    line = Line(remote.url, remote.factory_name, token)
    content = post(line, "exchange", as_json(report), most_bytes=MOST_ORDERS_BYTES)
    return _understood(content, orders_of)


def ask(factory: RemoteFactory, token: str) -> tuple[UUID, Report]:
    """Ask a factory for its report; return it with the turn that it begins. Raises CallFailed."""
    line = Line(factory.url, factory.frontend_name, token)
    question = as_json(Question(factory.caller))
    content = post(line, "report", question, most_bytes=MOST_REPORT_BYTES)
    return _understood(content, lambda data: (turn_of(data), report_of(data)))


def bring(factory: RemoteFactory, token: str, turn: UUID, orders: Orders) -> None:
    """Bring a factory the orders of a turn. Raises CallFailed."""
    line = Line(factory.url, factory.frontend_name, token)
    post(line, "orders", as_json(orders, turn=turn), most_bytes=_MOST_RECEIPT_BYTES)


def post(line: Line, path: str, body: dict[str, Any], *, most_bytes: int) -> bytes:
    """Answer of a partner to a request. Raises CallFailed."""
    request = urllib.request.Request(
        f"{line.url.rstrip('/')}/factory/v1/{path}",
        json.dumps(body).encode(),
        {
            "Authorization": f"Bearer {line.name}:{line.token}",
            "Content-Type": "application/json",
        },
    )
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            content: bytes = answer.read(most_bytes + 1)
    except urllib.error.HTTPError as error:
        raise CallFailed(f"it refused the call ({error.code}): {_detail(error)}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CallFailed(f"it cannot be reached: {reason}"[:_MOST_REASON]) from error
    if len(content) > most_bytes:
        raise CallFailed(f"its answer has more than {most_bytes} bytes")
    return content


def _understood(content: bytes, read: Callable[[object], T]) -> T:
    try:
        return read(json.loads(content))
    except (ValueError, RecursionError, InvalidInput) as error:
        raise CallFailed(f"its answer cannot be understood: {error}"[:_MOST_REASON]) from error


def _detail(error: urllib.error.HTTPError) -> str:
    """Reason of a refusal, on one line."""
    try:
        detail = json.loads(error.read(10_000))["detail"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        detail = http.client.responses.get(error.code, "no reason given")
    return " ".join(str(detail).split())[:_MOST_REASON]
