"""Migrations are applied in steps; each step makes what its operations would make one by one."""

from __future__ import annotations

from typing import ClassVar

import pytest
from django.db import connection, migrations, models
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from wms.core.database.migrations import BatchedMigration, steps

KEY = ("id", models.BigAutoField(primary_key=True))
SHELF = migrations.CreateModel(name="Shelf", fields=[("id", models.AutoField(primary_key=True))])
MORE_SHELVES = migrations.AlterField("shelf", "id", models.BigAutoField(primary_key=True))
BOOK = migrations.CreateModel(name="Book", fields=[KEY, ("title", models.TextField())])
PLACE = migrations.AddField(
    "book", "shelf", models.ForeignKey("core.shelf", models.CASCADE, null=True)
)
NUMBER = migrations.AddField("book", "number", models.IntegerField(db_default=1))
OPTIONAL_NUMBER = migrations.AlterField("book", "number", models.IntegerField(null=True))
POSITIVE = migrations.AddConstraint(
    "book", models.CheckConstraint(condition=models.Q(number__gt=0), name="book_number")
)
NOT_NEGATIVE = migrations.AddConstraint(
    "book", models.CheckConstraint(condition=models.Q(number__gte=0), name="book_number")
)
UNCHECKED = migrations.RemoveConstraint("book", "book_number")
BY_TITLE = migrations.AddIndex("book", models.Index(fields=["title"], name="book_by_title"))
FILLED = migrations.RunSQL("INSERT INTO core_book (title) VALUES ('-')", migrations.RunSQL.noop)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([SHELF, BOOK, PLACE, NUMBER, POSITIVE], [5], id="new-models"),
        pytest.param([BOOK, NUMBER, OPTIONAL_NUMBER], [3], id="a-new-model-changed-twice"),
        pytest.param([NUMBER, OPTIONAL_NUMBER], [1, 1], id="a-field-changed-twice"),
        pytest.param([POSITIVE, UNCHECKED], [1, 1], id="a-constraint-that-goes-again"),
        pytest.param([UNCHECKED, NOT_NEGATIVE], [2], id="a-constraint-that-is-replaced"),
        pytest.param([SHELF, FILLED, BOOK, PLACE], [1, 1, 2], id="rows-between-tables"),
    ],
)
def test_operations_are_grouped_where_none_needs_the_outcome_of_another(
    operations: list[Operation], expected: list[int]
) -> None:
    found = list(steps(operations))

    assert [len(step) for step in found] == expected
    assert [operation for step in found for operation in step] == operations


class Library(BatchedMigration):
    operations: ClassVar = [
        BOOK, NUMBER, BY_TITLE, FILLED, SHELF, OPTIONAL_NUMBER, POSITIVE, UNCHECKED, NOT_NEGATIVE,
        FILLED, PLACE, FILLED, MORE_SHELVES,
    ]  # fmt: skip


class LibraryOneByOne(migrations.Migration):
    operations = Library.operations


def tables_made_by(kind: type[migrations.Migration]) -> list[tuple[object, ...]]:
    """Columns, indexes and constraints that a migration makes; nothing of them stays."""
    before = ProjectState()
    assert not before.apps.get_models(), "rendered, as it is for each migration"
    with connection.schema_editor() as editor:
        state = kind("library", "core").apply(before, editor)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname::text, atttypid::regtype::text, attnotnull::text, attnum"
            " FROM pg_attribute WHERE attrelid IN ('core_book'::regclass, 'core_shelf'::regclass)"
            " UNION SELECT conname, pg_get_constraintdef(oid), contype::text, 0 FROM pg_constraint"
            " WHERE conrelid IN ('core_book'::regclass, 'core_shelf'::regclass)"
            " UNION SELECT indexname, indexdef, '', 0 FROM pg_indexes"
            " WHERE tablename IN ('core_book', 'core_shelf') ORDER BY 1, 2"
        )
        found = cursor.fetchall()
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; DROP TABLE core_book, core_shelf")
    return [*found, *sorted(state.models)]


@pytest.mark.django_db
def test_steps_make_the_same_tables_as_operations_one_by_one() -> None:
    batched = tables_made_by(Library)

    assert ("number", "integer", "false", 3) in batched
    assert ("shelf_id", "bigint", "false", 4) in batched
    assert batched == tables_made_by(LibraryOneByOne)
