"""Model field for a map of numbers whose names are known: it stores them in a row, without names.

`{"cpu_s": 59.9, "exit_code": 0}` is the text `59.9,0`, a fifth of the bytes. Any other map is
stored as it is, and so are those of before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.db import models

_BETWEEN = ","


class PackedNumbersField(models.JSONField):
    """A JSON object; to the database, and so to migrations, a plain JSON value.

    Statements by hand that write it call `packed`, those that read it `unpacked`. No query can
    ask for one of its names.
    """

    def __init__(self, *args: Any, names: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The order of the keys of JSON objects in PostgreSQL: nobody sees which form is stored.
        self.names = tuple(sorted(names, key=lambda name: (len(name), name)))

    def packed(self, value: Mapping[str, Any] | None) -> Mapping[str, Any] | str | None:
        """The map as it is stored."""
        is_plain = value and all(
            name in self.names and type(number) in {int, float} for name, number in value.items()
        )
        if not value or not is_plain:
            return value
        numbers = (json.dumps(value[name]) if name in value else "" for name in self.names)
        return _BETWEEN.join(numbers).rstrip(_BETWEEN)

    def unpacked(self, stored: Any) -> Any:
        """The map that is stored so."""
        if not isinstance(stored, str):
            return stored
        numbers = zip(self.names, stored.split(_BETWEEN), strict=False)
        return {name: json.loads(number) for name, number in numbers if number}

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return self.unpacked(super().from_db_value(value, expression, connection))

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return self.packed(prepared) if isinstance(prepared, Mapping) else prepared
