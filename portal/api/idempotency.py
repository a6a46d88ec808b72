"""Idempotency keys of creating requests: header in the schema, and answers to repetitions.

A view whose service takes no key keeps the answer itself (`once`): key, answer and what was made
are stored together or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from wms.core.idempotency import RequestKey, content_sha256, only_once
from wms.core.idempotency_models import MadeKind
from wms.core.keyed_digests import former_digests, keyed_digest
from wms.core.models import User

_NAME = "Idempotency-Key"
_SALT = "portal.api.idempotency"
_REPLAYED = {"Idempotency-Replayed": "true"}
IDEMPOTENCY_KEY = OpenApiParameter(
    _NAME,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Sent again with the same content within 24 hours, nothing new is made: the answer "
    "has what was made the first time, status 200 and the header `Idempotency-Replayed: true`. "
    "With another content it is refused (409).",
)
Handler = Callable[..., Any]


def sent_key(request: Request) -> str | None:
    """The key that was sent, if one was."""
    return request.headers.get(_NAME)


def request_key(request: Request, kind: MadeKind, content: Mapping[str, Any]) -> RequestKey | None:
    """Key of a request without files, whose content this is; None where none was sent."""
    key = sent_key(request)
    return RequestKey(kind, key, content_sha256(content, {})) if key is not None else None


def created(body: Any, *, at: str, is_new: bool) -> Response:
    """Answer with what was made now (201), or by an equal request before (200), and its address."""
    headers = {"Location": at}
    if is_new:
        return Response(body, status=status.HTTP_201_CREATED, headers=headers)
    return Response(body, headers=headers | _REPLAYED)


def once(*, hides: Collection[str] = ()) -> Callable[[Handler], Handler]:
    """Decorator of a `post` that makes something: with a key it is carried out once.

    It is written above `extend_schema`. An equal request is answered with what the first one was,
    but for the members `hides`, which are secret and told once: they are null then.
    """

    def decorate(handler: Handler) -> Handler:
        described: Handler = extend_schema(parameters=[IDEMPOTENCY_KEY])(
            answered_once(handler, hides)
        )
        return described

    return decorate


def answered_once(handler: Handler, hides: Collection[str] = ()) -> Handler:
    """Handler that is carried out once for a key, without a word in the schema."""

    @wraps(handler)
    def post(self: Any, request: Request, *args: Any, **kwargs: Any) -> Any:
        key = sent_key(request)
        if key is None:
            return handler(self, request, *args, **kwargs)
        assert isinstance(request.user, User)
        sent = _all_sent(request)
        # Keyed: a password in it cannot be guessed from the table.
        wanted = RequestKey(
            MadeKind.ANSWER, key, keyed_digest(_SALT, sent), former_digests(_SALT, sent)
        )
        with only_once(request.user, wanted) as creation:
            if creation.known_answer is not None:
                return _replayed(creation.known_answer)
            response: Response = handler(self, request, *args, **kwargs)
            creation.answer = _kept(response, hides)
        return response

    post.keeps_answer = True  # type: ignore[attr-defined]
    return post


def _all_sent(request: Request) -> str:
    """Text of all that was sent, files by their hashes."""
    parts: list[Any] = [request.path, request.META.get("QUERY_STRING", "")]
    if request.FILES:
        files = request.FILES.lists()
        streams = {
            f"{name}/{number}/{file.name}": file
            for name, several in files
            for number, file in enumerate(several)
        }
        parts += [content_sha256(dict(request.POST.lists()), streams)]
        for file in streams.values():
            file.seek(0)
    else:
        parts += [request.data]
    return json.dumps(parts, sort_keys=True, default=str)


def _kept(response: Response, hides: Collection[str]) -> dict[str, Any]:
    body = json.loads(json.dumps(response.data, cls=JSONEncoder))
    if isinstance(body, dict):
        body |= dict.fromkeys(hides & body.keys())
    return {"body": body, "location": response.get("Location", "")}


def _replayed(answer: Mapping[str, Any]) -> Response:
    at = {"Location": answer["location"]} if answer["location"] else {}
    return Response(answer["body"], headers=at | _REPLAYED)
