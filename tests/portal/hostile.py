"""Hostile values, which no honest client sends, in requests: paths, queries, forms, JSON bodies.

`names_read` notes which parameters and form fields the portal looks for meanwhile.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
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
DEEP = ("9223372036854775808",)
#: In JSON, as they are written there.
JSON = (
    "null", "-1", "2147483648", "9223372036854775807", "9223372036854775808", "1.5", "1e400", "NaN",
    '""', '"a\\u0000b"', '"\\ud800"', '"9999-12-31T23:59:59-14:00"', f'"{"x" * 10_000}"', "[]",
    '[{"\\udfff": 1}]', "[" * 2000 + "]" * 2000,
)  # fmt: skip
#: For names of parameters and fields: those that are refused at once, and all others together.
NAMES = (*UNSTORABLE[:3], f"owner__password__startswith=1&{'x' * 10_000}=1&__=1&")

#: After so many turns, one after another, all values have been sent.
_TURNS = 6


def quoted(text: str) -> str:
    """A text as it stands in an address."""
    return quote(text, safe="")


@contextmanager
def names_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The names of all parameters and form fields that are looked for meanwhile."""
    found: set[str] = set()

    def noting(method: str) -> Any:
        original = getattr(QueryDict, method)

        def read(self: QueryDict, name: str, *rest: Any) -> Any:
            found.add(name)
            return original(self, name, *rest)

        return read

    with monkeypatch.context() as patched:
        for method in ("get", "getlist", "__getitem__", "__contains__"):
            patched.setattr(QueryDict, method, noting(method))
        yield found


def some(values: Sequence[str], turn: int) -> list[str]:
    """A sixth of the values; of six turns, one after another, each has another one."""
    return list(values[turn % _TURNS :: _TURNS])


def queries(names: Sequence[str], turn: int) -> Iterator[str]:
    """Queries or forms: each name once with what is dangerous, all together with a sixth of the
    values.

    What reads a parameter is shared by many addresses: in their turns they are given all values.
    """
    if names:
        yield f"{names[0]}={UNSTORABLE[0]}"
    for first in range(turn % _TURNS, len(TEXTS) if names else 0, _TURNS):
        texts = itertools.islice(itertools.cycle(TEXTS), first, first + len(names))
        yield "&".join(f"{name}={quoted(text)}" for name, text in zip(names, texts, strict=True))
    for name, text in itertools.product(names, DEEP):
        yield f"{name}={quoted(text)}"
    for name in NAMES:
        yield f"{name}=1"


def bodies(body: Any, turn: int) -> Iterator[str]:
    """JSON bodies with hostile values in the place of each value: a sixth of them, in turns.

    What reads them is shared: of six places, one after another, each is given another sixth.
    """
    mark = "\u0001hostile"
    for place, changed in enumerate(_changed(body, mark), start=turn):
        text = json.dumps(changed)
        for value in some(JSON, place):
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
