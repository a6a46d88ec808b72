"""Prepared statements on models: their rows as instances (`Columns`), and the insertion of a row.

For messages that come thousands of times a minute: to write a query takes the ORM longer than
PostgreSQL takes to answer it. The statements are written by hand, in `sql.py`, and stay prepared in
each database session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models

from wms.core.database.sql import INSERT_ROW
from wms.core.database.statements import prepared_rows, stored_values

M = TypeVar("M", bound=models.Model)


class Columns(Generic[M]):
    """Columns of one table in a statement, and the instance made of their values.

    Without names they are all columns of the model; else the primary key, and those named: the
    others are read when they are asked for.
    """

    def __init__(self, model: type[M], alias: str, *names: str) -> None:
        self._model = model
        self._alias = alias
        self._names = names

    def __str__(self) -> str:
        """The list for the statement."""
        return ", ".join(f'{self._alias}."{field.column}"' for field in self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def instance(self, values: Sequence[Any]) -> M:
        """The instance with these values of a row, in the order of the list."""
        converted = [
            value if convert is None else convert(value, None, connection)
            for value, convert in zip(values, self._converters, strict=True)
        ]
        attributes = [field.attname for field in self._fields]
        return self._model.from_db(DEFAULT_DB_ALIAS, attributes, converted)

    def joined(self, values: Sequence[Any]) -> M | None:
        """The instance, or None where an outer join has found no row."""
        return None if values[0] is None else self.instance(values)

    @cached_property
    def _fields(self) -> list[Any]:
        # In the order of the model, as `from_db` wants them; its first is the primary key.
        fields = self._model._meta.concrete_fields
        if not self._names:
            return list(fields)
        return [field for field in fields if field.primary_key or field.name in self._names]

    @cached_property
    def _converters(self) -> list[Any]:
        return [getattr(field, "from_db_value", None) for field in self._fields]


class PreparedInsert:
    """Insertion of a row of a model with these columns; the database fills in the others."""

    def __init__(self, model: type[models.Model], *given: str) -> None:
        self._model = model
        self._given = given

    def insert(self, instance: models.Model) -> None:
        """Store a new instance; it learns its key, and what else it was not given."""
        statement, given, returned = self._written
        values = {field.attname: getattr(instance, field.attname) for field in given}
        [row] = prepared_rows(statement, stored_values(self._model, values))
        for field, value in zip(returned, row, strict=True):
            setattr(instance, field.attname, value)
        instance._state.adding = False
        instance._state.db = DEFAULT_DB_ALIAS

    @cached_property
    def _written(self) -> tuple[str, list[Any], list[Any]]:
        meta: Any = self._model._meta
        given = [meta.get_field(name) for name in self._given]
        returned = [field for field in meta.concrete_fields if field not in given]
        statement = INSERT_ROW.format(
            table=meta.db_table,
            given=_columns(given),
            values=", ".join(f"%({field.attname})s" for field in given),
            returned=_columns(returned),
        )
        return statement, given, returned


def _columns(fields: Iterable[Any]) -> str:
    return ", ".join(f'"{field.column}"' for field in fields)
