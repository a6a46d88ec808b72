"""Queries of the ORM that it writes only once: for messages that come thousands of times a minute.

To write a query takes the ORM longer than PostgreSQL takes to answer it. Here it writes it when it
is used first, and the statement stays prepared in each database session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models
from django.db.models.expressions import Expression
from django.db.models.query import get_related_populators
from django.db.models.sql import UpdateQuery
from psycopg import sql as psycopg_sql

from wms.core.database.sql import INSERT_ROW, UPDATE_ROWS
from wms.core.database.statements import prepared_rows

M = TypeVar("M", bound=models.Model)


class Parameter(Expression):
    """A value of a query that is given each time when it is carried out."""

    def __init__(self, name: str, output_field: models.Field[Any, Any] | None = None) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return "%s", (self,)


class PreparedQuery(Generic[M]):
    """The rows of a queryset as it was written once; `Parameter` stands where its values differ.

    Related rows that it selects and annotations come with it; prefetching does not.
    """

    def __init__(self, make: Callable[[], models.QuerySet[M]]) -> None:
        self._make = make

    def rows(self, **values: Any) -> list[M]:
        """The rows with these values for the parameters."""
        statement, of_row, converted = self._written
        return [of_row(row) for row in converted(prepared_rows(statement, values))]

    def first(self, **values: Any) -> M | None:
        """The first row, if there is one; the queryset itself is not limited to it."""
        return next(iter(self.rows(**values)), None)

    @cached_property
    def _written(
        self,
    ) -> tuple[
        str,
        Callable[[Sequence[Any]], M],
        Callable[[list[tuple[Any, ...]]], Iterable[Sequence[Any]]],
    ]:
        compiler: Any = self._make().query.get_compiler(DEFAULT_DB_ALIAS)
        statement = named(*compiler.as_sql())
        select, about = compiler.select, compiler.klass_info
        first, last = about["select_fields"][0], about["select_fields"][-1] + 1
        names = [column.target.attname for column, _, _ in select[first:last]]
        # The types are those of a later Django.
        populators = get_related_populators(about, select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]
        annotations = compiler.annotation_col_map.items()
        converters = compiler.get_converters([column for column, _, _ in select])

        def of_row(row: Sequence[Any]) -> M:
            instance: M = about["model"].from_db(DEFAULT_DB_ALIAS, names, row[first:last])
            for populator in populators:
                populator.populate(row, instance)
            for name, index in annotations:
                setattr(instance, name, row[index])
            return instance

        def converted(rows: list[tuple[Any, ...]]) -> Iterable[Sequence[Any]]:
            return compiler.apply_converters(rows, converters) if converters else rows

        return statement, of_row, converted


class PreparedUpdate:
    """An update of a queryset as it was written once; a `Parameter` has the name of its column."""

    def __init__(
        self,
        make: Callable[[], models.QuerySet[Any]],
        changes: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._make = make
        self._changes = changes

    def carry_out(self, **values: Any) -> None:
        """Change the rows with these values for the parameters."""
        statement, columns = self._written
        stored = {
            name: columns[name].get_db_prep_save(value, connection) if name in columns else value
            for name, value in values.items()
        }
        prepared_rows(statement, stored)

    @cached_property
    def _written(self) -> tuple[str, Mapping[str, models.Field[Any, Any]]]:
        queryset, changes = self._make(), self._changes()
        columns: dict[str, Any] = {
            name: queryset.model._meta.get_field(name)
            for name, value in changes.items()
            if isinstance(value, Parameter)
        }
        return UPDATE_ROWS.format(update=update_statement(queryset, changes)), columns


class PreparedInsert:
    """The insertion of a row of a model, with these columns; the database fills in the others."""

    def __init__(self, model: type[models.Model], *given: str) -> None:
        self._model = model
        self._given = given

    def insert(self, instance: models.Model) -> None:
        """Store a new instance; it learns its key, and what else it was not given."""
        statement, given, returned = self._written
        values = {
            field.attname: field.get_db_prep_save(getattr(instance, field.attname), connection)
            for field in given
        }
        [row] = prepared_rows(statement, values)
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


def update_statement(queryset: models.QuerySet[Any], changes: Mapping[str, Any]) -> str:
    """The statement that would update the queryset, with names for its parameters."""
    query: Any = queryset.query.chain(UpdateQuery)
    query.add_update_values(dict(changes))
    return named(*query.get_compiler(DEFAULT_DB_ALIAS).as_sql())


def named(statement: str, parameters: Iterable[Any]) -> str:
    """A statement as the ORM writes it, with its parameters by name and all other values in it.

    As part of the statement they let the planner see which partial indexes fit.
    """
    places = [
        f"%({each.name})s" if isinstance(each, Parameter) else _literal(each) for each in parameters
    ]
    return statement.replace("%%", "%%%%") % tuple(places)


def _literal(value: Any) -> str:
    connection.ensure_connection()
    text: str = psycopg_sql.Literal(value).as_string(connection.connection)
    return text.replace("%", "%%")
