"""Migrations that lock tables for long, or break the release before, are found."""

from __future__ import annotations

from types import ModuleType

import pytest
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState
from django.db.models import CheckConstraint, F, Index, Q
from django.db.models.functions import Now

from tests.ci_programs import load

ROOM = Index(fields=["name"], name="by_name")


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load("check_migrations")


def _faults(check: ModuleType, *operations: Operation) -> list[str]:
    """Keys of the faults of a migration after one that has made the model `job`."""
    before = ProjectState()
    fields = [
        ("id", models.BigAutoField(primary_key=True)),
        ("name", models.CharField(max_length=20)),
        ("note", models.TextField(null=True)),
        ("count", models.IntegerField(db_default=0)),
    ]
    once = models.UniqueConstraint(fields=["name"], name="job_once")
    before.add_model(ModelState("shop", "job", fields, {"constraints": [once], "indexes": []}))
    migration = migrations.Migration("0002_more", "shop")
    migration.operations = list(operations)
    return [fault.key for fault in check.faults_in(migration, before, set())]


def _added(field: models.Field) -> Operation:
    return migrations.AddField("job", "extra", field)


def _altered(name: str, field: models.Field) -> Operation:
    return migrations.AlterField("job", name, field)


@pytest.mark.parametrize(
    "operation",
    [
        _added(models.IntegerField()),
        _added(models.IntegerField(null=True, db_index=True)),
        _added(models.IntegerField(null=True, unique=True)),
        _added(models.ForeignKey("shop.job", models.CASCADE, null=True)),
        _added(models.UUIDField(db_default=RandomUUID())),
        _added(
            models.GeneratedField(
                expression=F("count") + 1, output_field=models.IntegerField(), db_persist=True
            )
        ),
        _altered("name", models.CharField(max_length=10)),
        _altered("note", models.TextField()),
        _altered("count", models.CharField(max_length=20)),
        _altered("count", models.BigIntegerField()),
        _altered("count", models.IntegerField(db_default=0, db_index=True)),
        _added(models.PositiveIntegerField(null=True)),
        _altered("count", models.PositiveIntegerField(db_default=0)),
        _altered("count", models.IntegerField()),
        _altered("count", models.IntegerField(db_default=0, db_column="number")),
        _altered("note", models.TextField(null=True, db_collation="C")),
        migrations.RemoveConstraint("job", "job_once"),
        migrations.AddIndex("job", ROOM),
        migrations.AddConstraint("job", CheckConstraint(condition=Q(count__gt=0), name="some")),
        migrations.RemoveField("job", "note"),
        migrations.RenameField("job", "note", "remark"),
        migrations.RenameModel("job", "work"),
        migrations.DeleteModel("job"),
        migrations.RunSQL("ALTER TABLE job\nALTER COLUMN name TYPE text"),
        migrations.RunSQL([("CREATE INDEX quick ON job (name)", None)]),
        migrations.RunSQL("ALTER TABLE job DROP name"),
        migrations.RunSQL("ALTER TABLE job ADD extra integer NOT NULL"),
        migrations.RunSQL("ALTER TABLE job ADD CONSTRAINT some CHECK (count > 0)"),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL("LOCK TABLE job")]
        ),
    ],
    ids=str,
)
def test_what_locks_or_breaks_older_code_is_a_fault(
    check: ModuleType, operation: Operation
) -> None:
    assert len(_faults(check, operation)) == 1


def test_what_older_code_need_not_know_is_none(check: ModuleType) -> None:
    operations = [
        _added(models.IntegerField(null=True)),
        migrations.AddField("job", "since", models.DateTimeField(db_default=Now())),
        migrations.AddField("job", "size", models.IntegerField(db_default=0)),
        migrations.AddField(
            "job", "of", models.ForeignKey("shop.job", models.CASCADE, null=True, db_index=False)
        ),
        _altered("name", models.CharField(max_length=30, help_text="Longer.")),
        _altered("name", models.TextField()),
        _altered("count", models.IntegerField(null=True, db_default=0)),
        AddIndexConcurrently("job", ROOM),
        migrations.RunSQL("CREATE INDEX CONCURRENTLY quick ON job (name)"),
        migrations.RunSQL("ALTER TABLE job ADD CONSTRAINT some CHECK (count > 0) NOT VALID"),
        migrations.RunSQL("ALTER TABLE job ADD extra integer NOT NULL DEFAULT 0"),
        migrations.RunSQL("UPDATE job SET name = '' WHERE id = 1"),
        migrations.CreateModel("tool", [("id", models.BigAutoField(primary_key=True))]),
        migrations.AddField("tool", "name", models.CharField(max_length=9, unique=True)),
        migrations.AddIndex("tool", Index(fields=["name"], name="tool_by_name")),
    ]

    assert _faults(check, *operations) == []


def test_a_fault_is_named_by_its_migration_and_operation(check: ModuleType) -> None:
    [key] = _faults(check, migrations.RemoveField("job", "note"))

    assert key == "shop.0002_more: Remove field note from job"
