"""Middleware of `?fields=`: of each object that the API answers with, the named members alone.

It works on what a view has answered, so every object and list takes it, and none can forget to. A
name that the objects do not have is refused with those that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from portal.shared.problem_details import CONTENT_TYPE, problem_body
from wms.core.errors import Finding, InvalidInput

FIELDS = "fields"
_RESULTS = "results"


class ChosenFields:
    """Middleware that narrows good answers of the API to GET."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as usual."""
        return self._get_response(request)

    def process_template_response(self, request: HttpRequest, response: Any) -> Any:
        """Narrow an answer before it is rendered, or make it a refusal."""
        if FIELDS in request.GET and request.method in {"GET", "HEAD"} and _is_narrowed(response):
            chosen = _chosen(request)
            known = list(dict.fromkeys(_known(response.data)))
            unknown = [name for name in chosen if name not in known]
            if unknown and known:
                _refuse(response, unknown, known)
            elif chosen:
                response.data = _narrowed(response.data, chosen)
        return response


def _is_narrowed(response: Any) -> bool:
    if not isinstance(response, Response) or response.status_code != HTTPStatus.OK:
        return False
    # Pages of the framework are made of data, too.
    is_json = isinstance(getattr(response, "accepted_renderer", None), JSONRenderer)
    return is_json and isinstance(response.data, (Mapping, list))


def _chosen(request: HttpRequest) -> list[str]:
    names = ",".join(request.GET.getlist(FIELDS)).split(",")
    return [name for name in dict.fromkeys(map(str.strip, names)) if name]


def _is_page(data: Any) -> bool:
    return isinstance(data, Mapping) and {"next", _RESULTS} <= data.keys()


def _objects(data: Any) -> Sequence[Any]:
    """Objects of an answer: those of a page or list, or the answer itself."""
    if _is_page(data):
        data = data[_RESULTS]
    return data if isinstance(data, list) else [data]


def _known(data: Any) -> Iterator[str]:
    """Names of members: those that are declared, for a list may be empty, and those that are."""
    source = data[_RESULTS] if _is_page(data) else data
    serializer = getattr(source, "serializer", None)
    serializer = getattr(serializer, "child", serializer)
    for name, field in getattr(serializer, "fields", {}).items():
        if not field.write_only:
            yield name
    for each in _objects(data):
        if isinstance(each, Mapping):
            yield from each


def _narrowed(data: Any, chosen: Sequence[str]) -> Any:
    if _is_page(data):
        return {**data, _RESULTS: _narrowed(data[_RESULTS], chosen)}
    if isinstance(data, list):
        return [_narrowed(each, chosen) for each in data]
    if isinstance(data, Mapping):
        return {name: data[name] for name in data if name in chosen}
    return data


def _refuse(response: Response, unknown: Sequence[str], known: Sequence[str]) -> None:
    told = f"there is no {', '.join(unknown)}; known are {', '.join(known)}"
    findings = [Finding(told, field=FIELDS)]
    status = HTTPStatus.BAD_REQUEST
    response.data = problem_body(status, str(findings[0]), findings, InvalidInput.code)
    response.status_code = status.value
    response.content_type = CONTENT_TYPE
