"""Requests that every flow is made of: one object, lists page by page, changes with a reason."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from ..errors import decoded, good
from ..model import Raw
from ..wire import Answer, Flow, Patience, Request, patiently, query_of

T = TypeVar("T")
PATIENCE = Patience()
_PAGE = 200
_LARGEST_PAGE = 1000


def ask(request: Request, patience: Patience = PATIENCE) -> Flow[Answer]:
    """The good answer to a request. Raises PilotageError."""
    outcome = yield from patiently(request, patience)
    return good(outcome, is_json=request.is_json and request.sink is None)


def get(path: str, **query: object) -> Flow[Any]:
    """The decoded answer to GET."""
    answer = yield from ask(Request("GET", path, query_of(query)))
    return decoded(answer)


def post(path: str, content: Mapping[str, Any], key: str = "") -> Flow[Any]:
    """The decoded answer to POST of a JSON object; values that are None are left out."""
    given = {name: value for name, value in content.items() if value is not None}
    answer = yield from ask(Request("POST", path, json=given, key=key))
    return decoded(answer)


def listed(
    path: str, of: Callable[[Raw], T], limit: int | None, filters: Mapping[str, object]
) -> Flow[list[T]]:
    """Objects of a list, at most `limit`; all of them for None."""
    found: list[T] = []
    size = _LARGEST_PAGE if limit is None else max(1, min(limit, _PAGE))
    query = query_of({**filters, "page_size": size})
    while limit is None or len(found) < limit:
        answer = yield from ask(Request("GET", path, query))
        page = decoded(answer)
        found += map(of, page["results"])
        cursor = cursor_of(page.get("next"))
        if not cursor:
            break
        query = (*query_of({**filters, "page_size": size}), ("cursor", cursor))
    return found if limit is None else found[:limit]


def cursor_of(address: str | None) -> str:
    """Place at which the next page begins, out of its address; empty for none."""
    return parse_qs(urlsplit(address or "").query).get("cursor", [""])[0]


def new_key() -> str:
    """Key of a request that makes something: with it the request can be repeated."""
    return secrets.token_hex(16)
