"""Checks for values of a request that PostgreSQL cannot store, with the name of each faulty field.

A text of the database has no null character and no half of a surrogate pair, and an integer has at
most 64 bits. Each kind of entry is checked in one place: addresses and forms by the middleware of
`portal.middleware.storable_requests`, numbers in addresses by the path converter `Int8`, JSON by
`portal.api.parsing`, messages of pilots by `portal.pilot_api.bodies`.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.http import HttpRequest
from django.urls.converters import IntConverter

from wms.core.errors import Finding

MAX_INT8 = 2**63 - 1
_MIN_INT8 = -(2**63)
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
#: So many are told: of millions nobody reads more.
MAX_FAULTS_OF_JSON = 200
#: A longer name is told by its beginning.
_NAME_TOLD = 100
_NO_UTF8 = "is not UTF-8"
_ENCODINGS = frozenset({"utf-8", "ascii"})


class Int8(IntConverter):
    """A number in an address that may be an id; a larger one names nothing."""

    def to_python(self, value: str) -> int:
        """Return the number. Raises ValueError, which is as good as no such address."""
        number = int(value)
        if number > MAX_INT8:
            raise ValueError
        return number


def faults_of_form(request: HttpRequest) -> list[Finding]:
    """The faults of a form's fields, and of the names of its files. Reads the form."""
    named = [(name, text) for name, texts in request.POST.lists() for text in texts]
    named += [(name, each.name or "") for name, each in request.FILES.items()]
    faults = [*_faults_of_texts(named)]
    if not faults and request.content_type == "application/x-www-form-urlencoded":
        faults += faults_of_query(request.body.decode("latin-1"))
    return faults


def faults_of_json(value: Any) -> list[Finding]:
    """The first faults of what was read from JSON, with their dotted places. Without recursion.

    It takes no memory but for its depth: a body of megabytes can hold millions of values.
    """
    faults: list[Finding] = []
    way: list[Any] = []
    levels = [iter([("", value)])]
    while levels and len(faults) < MAX_FAULTS_OF_JSON:
        for name, each in levels[-1]:
            if fault := _fault_of_value(each):
                faults.append(Finding(fault, field=_place(way, name)))
            if isinstance(each, dict) and (found := _of_names(each)):
                place = _place(way, name)
                faults += [Finding(f"in a name: {fault}", field=place) for fault in found]
            if len(faults) >= MAX_FAULTS_OF_JSON:
                break
            if each and isinstance(each, dict | list):
                way.append(name)
                levels.append(_inner(each))
                break
        else:
            levels.pop()
            del way[-1:]
    return faults


def _inner(value: dict[str, Any] | list[Any]) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _place(way: Sequence[Any], name: Any) -> str:
    return ".".join(filter(None, (_shown_name(str(each)) for each in (*way, name))))


def _of_names(value: dict[str, Any]) -> set[str]:
    return {fault for name in value if (fault := _fault_of_text(name))}


def _fault_of_value(value: Any) -> str:
    if isinstance(value, str):
        return _fault_of_text(value)
    if isinstance(value, int) and not _MIN_INT8 <= value <= MAX_INT8:
        return "is beyond what 64 bits hold"
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a finite number"
    return ""


def _fault_of_text(text: str) -> str:
    found = _NO_TEXT.search(text)
    if found is None:
        return ""
    is_null = found[0] == "\0"
    return "Null characters are not allowed." if is_null else "has half of a surrogate pair"


def _faults_of_texts(named: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    for name, text in named:
        if fault := _fault_of_text(name) or _fault_of_text(text):
            yield Finding(fault, field=_shown_name(name))


def faults_of_query(query: str) -> Iterator[Finding]:
    """Faults of a query string or form as it was sent, one for each faulty parameter."""
    if query.isascii() and "%" not in query:
        return
    for pair in query.encode("latin-1", errors="replace").split(b"&"):
        name, _, value = pair.partition(b"=")
        raw_name, raw = unquote_to_bytes(name), unquote_to_bytes(value)
        shown_name = _shown_name(raw_name.decode(errors="replace"))
        try:
            fault = _fault_of_text(raw_name.decode()) or _fault_of_text(raw.decode())
        except UnicodeDecodeError:
            fault = _NO_UTF8
        if fault:
            yield Finding(fault, field=shown_name)


def faults_of_headers(request: HttpRequest) -> Iterator[Finding]:
    """The faults of the headers that decide how all else is read."""
    if "\0" in request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""):
        yield Finding("The session cookie is not one of ours.", field="Cookie")
    # Django reads address and form by it.
    encoding = (request.content_params or {}).get("charset", "utf-8")
    if not _is_utf8(encoding):
        yield Finding("must be UTF-8", field="Content-Type")


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in _ENCODINGS
    except (LookupError, ValueError):
        return False


def _shown_name(name: str) -> str:
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", name[:_NAME_TOLD])
