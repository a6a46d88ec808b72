"""Reader of JSON bodies that pilots send: bounded, strict, and every fault with its field."""

from __future__ import annotations

import json
import re
from typing import Any

from django.http import HttpRequest

from wms.core.errors import InvalidInput, TooLarge

MAX_BODY_BYTES = 256 * 1024
MAX_TEXT_LENGTH = 4000
MAX_ITEMS = 1000
#: PostgreSQL's integer, which is what most numbers are compared with or stored as.
MAX_NUMBER = 2**31 - 1
#: What every JSON library keeps exactly: for amounts, as a large scratch has more than 2 PB.
MAX_AMOUNT = 2**53

#: Attributes of one job's ad that a payload may tell, and the length of a text among them.
MAX_ATTRIBUTES = 20
MAX_ATTRIBUTE_LENGTH = 1000
#: What a check of a node measured.
MAX_METRICS = 50
MAX_METRIC_NAME = 64

_ATTRIBUTE = re.compile("[A-Za-z_][A-Za-z0-9_]{0,63}")
# Both can stand in JSON, as escapes: "\u0000", "\ud800".
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def read_body(request: HttpRequest) -> Fields:
    """Return the JSON object of a request."""
    content = request.read(MAX_BODY_BYTES + 1)
    if len(content) > MAX_BODY_BYTES:
        raise TooLarge(f"The request is larger than {MAX_BODY_BYTES} bytes.")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInput.of(f"the body is not JSON: {error}") from error
    return Fields(data)


class Fields:
    """A JSON object whose fields are read by type; a fault raises InvalidInput with the field."""

    def __init__(self, data: Any, prefix: str = "") -> None:
        if not isinstance(data, dict):
            raise InvalidInput.of("must be a JSON object", field=prefix.rstrip("."))
        self._data = data
        self._prefix = prefix

    def text(self, name: str, *, max_length: int = MAX_TEXT_LENGTH, pattern: str = ".*") -> str:
        """A text that PostgreSQL can store: no null character, no half of a surrogate pair."""
        value = self._get(name, str, "a text")
        if len(value) > max_length:
            raise self._fault(name, f"has more than {max_length} characters")
        if _NO_TEXT.search(value):
            raise self._fault(name, "contains a null character or half of a surrogate pair")
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise self._fault(name, f"does not match {pattern}")
        return value

    def choice(self, name: str, *choices: str) -> str:
        """One of a few words."""
        value = self._get(name, str, "a text")
        if value not in choices:
            raise self._fault(name, f"must be one of {', '.join(choices)}")
        return value

    def integer(self, name: str, *, minimum: int = 0, maximum: int = MAX_NUMBER) -> int:
        """A whole number in a range."""
        value = self._get(name, int, "a whole number")
        if not minimum <= value <= maximum:
            raise self._fault(name, f"must be from {minimum} to {maximum}")
        return value

    def amount(self, name: str) -> int:
        """Amount of something; above `MAX_NUMBER` it is cut to that."""
        return min(self.integer(name, maximum=MAX_AMOUNT), MAX_NUMBER)

    def number(self, name: str) -> float:
        """A number that is finite and not negative."""
        value = self._get(name, (int, float), "a number")
        if not 0 <= value <= MAX_NUMBER:
            raise self._fault(name, f"must be from 0 to {MAX_NUMBER}")
        return float(value)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._data.get(name)
        if not isinstance(value, bool):
            raise self._fault(name, "must be true or false")
        return value

    def metrics(self) -> dict[str, bool | float | str]:
        """All of the object's fields, as what was measured: numbers and short texts."""
        if len(self._data) > MAX_METRICS:
            message = f"has more than {MAX_METRICS} entries"
            raise InvalidInput.of(message, field=self._prefix.rstrip("."))
        return {name: self._metric(name) for name in self._data}

    def _metric(self, name: str) -> bool | float | str:
        if len(name) > MAX_METRIC_NAME or _NO_TEXT.search(name):
            message = f"{name[:64]!r} cannot be the name of a metric"
            raise InvalidInput.of(message, field=self._prefix.rstrip("."))
        value = self._data[name]
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.text(name, max_length=MAX_ATTRIBUTE_LENGTH)
        if not isinstance(value, (int, float)) or not abs(value) <= MAX_AMOUNT:
            raise self._fault(name, "must be a number or a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        named = {str(index): value for index, value in enumerate(self._items(name))}
        items = Fields(named, f"{self._prefix}{name}.")
        return tuple(items.text(index) for index in named)

    def objects(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [
            Fields(value, f"{self._prefix}{name}.{index}.")
            for index, value in enumerate(self._items(name))
        ]

    def object(self, name: str) -> Fields:
        """An object."""
        return Fields(self._get(name, dict, "an object"), f"{self._prefix}{name}.")

    def attributes(self) -> dict[str, int | str]:
        """All of the object's fields, as attributes of an ad: whole numbers and short texts."""
        if len(self._data) > MAX_ATTRIBUTES:
            message = f"has more than {MAX_ATTRIBUTES} entries"
            raise InvalidInput.of(message, field=self._prefix.rstrip("."))
        return {name: self._attribute(name) for name in self._data}

    def _attribute(self, name: str) -> int | str:
        if not _ATTRIBUTE.fullmatch(name):
            message = f"{name[:64]!r} cannot be the name of an attribute"
            raise InvalidInput.of(message, field=self._prefix.rstrip("."))
        if isinstance(self._data[name], str):
            return self.text(name, max_length=MAX_ATTRIBUTE_LENGTH)
        return self.integer(name, minimum=-(2**63), maximum=2**63 - 1)

    def anything(self, name: str) -> Any:
        """Value as it came, for those who judge it themselves; None where there is none."""
        return self._data.get(name)

    def has(self, name: str) -> bool:
        """Tell whether the field is there and not null."""
        return self._data.get(name) is not None

    def _items(self, name: str) -> list[Any]:
        values: list[Any] = self._get(name, list, "a list")
        if len(values) > MAX_ITEMS:
            raise self._fault(name, f"has more than {MAX_ITEMS} entries")
        return values

    def _get(self, name: str, kind: Any, what: str) -> Any:
        if name not in self._data:
            raise self._fault(name, "is missing")
        value = self._data[name]
        # In Python, true and false are whole numbers; here they are not.
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self._fault(name, f"must be {what}")
        return value

    def _fault(self, name: str, message: str) -> InvalidInput:
        return InvalidInput.of(message, field=f"{self._prefix}{name}")
