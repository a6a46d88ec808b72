"""Hostile values, which no honest client sends, in requests: paths, queries, forms, JSON bodies.

`names_read` notes which parameters and form fields the portal looks for meanwhile, and what code
reads them.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any
from urllib.parse import quote

import pytest
from django import forms
from django.http import QueryDict

#: As they stand in an address: no text of the database has a null character, half a surrogate
#: pair, or bytes that are not UTF-8.
UNSTORABLE = ("a%00b", "%ED%A0%80", "%FF", "%C0%80")
#: For numbers in a path.
NUMBERS = (
    "0",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "1" * 5000,
    "\u0661",
    "_00",
)
#: Texts, numbers and moments beyond all bounds, and the syntax of filters and lookups.
TEXTS = (
    "", "-1", "2147483648", "12345678901234567890", "1" * 5000, "1e400", "nan", "\u0661\u202e",
    "x" * 10_000, "..", "1..99999999999999999999", "10000-01-01", "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00..", "999999w", "-state__in", "[" * 2000, "back:=",
)  # fmt: skip
#: Of those, what a database could choke on where it is taken for a value.
DEEP = "9223372036854775808"
#: In JSON, as they are written there: what may be taken for a value of some type.
JSON = (
    "null", "-1", '""', "2147483648", "[]", '"9999-12-31T23:59:59-14:00"', "1.5",
    f'"{"x" * 10_000}"',
)  # fmt: skip
#: What is none: beyond 64 bits, not to be stored, too deep.
NO_JSON = (
    "9223372036854775807", "9223372036854775808", "1e400", "NaN", '"a\\u0000b"', '"\\ud800"',
    '[{"\\udfff": 1}]', "[" * 2000 + "]" * 2000,
)  # fmt: skip
#: For names of parameters and fields: those that are refused at once, and all others together.
NAMES = (*UNSTORABLE[:3], f"owner__password__startswith=1&{'x' * 10_000}=1&__=1&")

#: So many callers are looked through for who reads a parameter.
_CALLERS = 12
#: Fields of Django that take a text as it is, or one of some: no number is made of it.
_PLAIN_FIELDS = (
    forms.CharField,
    forms.BooleanField,
    forms.ChoiceField,
    forms.TypedChoiceField,
    forms.ModelChoiceField,
    forms.ModelMultipleChoiceField,
)

#: Names of parameters and form fields, each with what reads it.
Reads = dict[str, str]


def quoted(text: str) -> str:
    """A text as it stands in an address."""
    return quote(text, safe="")


@contextmanager
def names_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    """All parameters and form fields that are looked for meanwhile. Pages are left blank."""
    found: Reads = {}

    def noting(method: str) -> Any:
        original = getattr(QueryDict, method)

        def read(self: QueryDict, name: str, *rest: Any) -> Any:
            if name not in found:
                found[name] = _reader(name, sys._getframe(1))
            return original(self, name, *rest)

        return read

    with monkeypatch.context() as patched:
        for method in ("get", "getlist", "__getitem__", "__contains__"):
            patched.setattr(QueryDict, method, noting(method))
        patched.setattr("django.template.backends.django.Template.render", lambda *_, **__: "")
        yield found


def _reader(name: str, frame: FrameType | None) -> str:
    """Field of the form that reads a parameter, or the nearest function of the portal."""
    function = ""
    for _ in range(_CALLERS):
        if frame is None:
            break
        owner = frame.f_locals.get("self")
        if isinstance(owner, forms.BaseForm):
            return _field(owner, name)
        if not function and frame.f_globals["__name__"].startswith("portal."):
            function = f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"
        frame = frame.f_back
    return f"{function} {name}"


def _field(form: forms.BaseForm, name: str) -> str:
    """A field by its form and name; the plain ones of all forms of rows are alike."""
    kind = type(form.fields.get(name))
    if isinstance(form, forms.BaseModelForm) and kind in _PLAIN_FIELDS:
        return kind.__qualname__
    return f"{type(form).__module__}.{type(form).__qualname__} {name}"


def some(turn: int) -> list[str]:
    """Three values of JSON, of two types; of eight turns, one after another, each has others."""
    return [JSON[turn % len(JSON)], JSON[(turn + 3) % len(JSON)], NO_JSON[turn % len(NO_JSON)]]


def pairs(names: Sequence[str], turn: int) -> list[tuple[str, str]]:
    """Each name with a text; of as many turns as there are texts, each has another one."""
    first = turn % len(TEXTS)
    texts = itertools.islice(itertools.cycle(TEXTS), first, first + len(names))
    return list(zip(names, texts, strict=True))


def encoded(given: Iterable[tuple[str, str]]) -> str:
    """A query or form."""
    return "&".join(f"{name}={quoted(text)}" for name, text in given)


def bodies(body: Any, turn: int) -> Iterator[str]:
    """JSON bodies with hostile values in the place of each value: some of them, in turns.

    What reads them is shared: of eight places, one after another, each is given others.
    """
    mark = "\u0001hostile"
    for place, changed in enumerate(_changed(body, mark), start=turn):
        text = json.dumps(changed)
        for value in some(place):
            yield text.replace(json.dumps(mark), value)


def _changed(value: Any, mark: str) -> Iterator[Any]:
    yield mark
    if isinstance(value, dict):
        for name, inner in value.items():
            for changed in _changed(inner, mark):
                yield {**value, name: changed}
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for changed in _changed(inner, mark):
                yield [*value[:index], changed, *value[index + 1 :]]
