"""Find migrations that lock tables for long, or break the code of the release before.

    .venv/bin/python .ci/check_migrations.py

In an upgrade both releases run on the new tables for a while: first it is added to them (expand),
then data are moved (migrate), and a release later what nobody uses is removed (contract). So a
migration may add what older code need not know, and nothing that it would trip over; and it waits
for no scan of a table that is in use. `exempt_migrations.toml` beside this file names the last
migration of each app that is not judged, and operations that may after all, with the reason; one
that is not needed any more is a fault as well. Exit code 1 on a fault.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import Any

BASE = Path(__file__).resolve().parent.parent
EXEMPTIONS = Path(__file__).with_name("exempt_migrations.toml")

if __name__ == "__main__":
    sys.path.insert(0, str(BASE))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django

    django.setup()

from django.contrib.postgres import operations as postgres  # noqa: E402
from django.db import connection, migrations, models  # noqa: E402
from django.db.migrations.loader import MigrationLoader  # noqa: E402
from django.db.migrations.operations.base import Operation  # noqa: E402
from django.db.migrations.state import ProjectState  # noqa: E402
from django.db.models.functions import Now  # noqa: E402

_SQL = re.compile(
    r"\bDROP\s+(?:TABLE|COLUMN|INDEX|(?:MATERIALIZED\s+)?VIEW)\b|\bRENAME\b"
    r"|\bALTER\s+TABLE\b[^;]*?\bDROP\s+(?!CONSTRAINT\b|DEFAULT\b|NOT\s+NULL\b)"
    r"|\bALTER\s+(?:COLUMN\s+)?\S+\s+(?:SET\s+DATA\s+)?TYPE\b"
    r"|\bSET\s+NOT\s+NULL\b|\bLOCK\s|\bTRUNCATE\b|\bREINDEX\b|\bVACUUM\s+FULL\b"
    r"|\bADD\s+CONSTRAINT\b(?![^;]*\bNOT\s+VALID\b)"
    r"|\bADD\s+(?:COLUMN\s+)?\w+\s[^,;]*\bNOT\s+NULL\b(?![^,;]*\bDEFAULT\b)"
    r"|\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY\b)",
    re.I,
)
_TEXT = re.compile(r"varchar\((\d+)\)|text")


@dataclass(frozen=True, slots=True)
class Fault:
    """An operation that may not be, by its key, and why."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Place:
    """Place of an operation: its app, the tables before it, and the models that are new."""

    app: str
    before: ProjectState
    is_new: Callable[[str], bool]

    def field(self, model: str, name: str) -> models.Field[Any, Any]:
        """The field as it is before the operation."""
        found: models.Field[Any, Any] = self.before.apps.get_model(self.app, model)._meta.get_field(
            name
        )
        return found


@singledispatch
def fault_of(operation: Operation, place: Place) -> str:
    """Why an operation may not be; empty for one that may."""
    return ""


@fault_of.register(migrations.DeleteModel)
@fault_of.register(migrations.RemoveField)
@fault_of.register(migrations.RenameModel)
@fault_of.register(migrations.RenameField)
@fault_of.register(migrations.AlterModelTable)
@fault_of.register(migrations.AlterUniqueTogether)
def _gone(operation: Operation, place: Place) -> str:
    return "older code still uses what it takes away: a release later"


@fault_of.register
def _added(operation: migrations.AddField, place: Place) -> str:
    field = _named(operation)
    if place.is_new(operation.model_name) or field.many_to_many:
        return ""
    if isinstance(field, models.GeneratedField):
        return "the whole table is written anew: compute it, or fill a plain column bit by bit"
    default = field.db_default
    has_default = default is not models.NOT_PROVIDED
    if not field.null and not has_default:
        return "older code adds rows without it: it needs null=True or db_default"
    is_computed = has_default and hasattr(default, "resolve_expression")
    if is_computed and not isinstance(default, models.Value | Now):
        return "the whole table is written anew for a default that differs by row"
    if field.db_check(connection) or (has_default and _references(field)):
        return "the whole table is read for its check while writers wait"
    return _index_fault(field)


def _named(operation: migrations.AddField | migrations.AlterField) -> models.Field[Any, Any]:
    """The field of an operation, which knows its column."""
    field: models.Field[Any, Any] = operation.field.clone()
    field.set_attributes_from_name(operation.name)
    return field


def _references(field: models.Field[Any, Any]) -> str:
    """Table that a constraint of the column names; empty without one."""
    if not isinstance(field, models.ForeignKey) or not field.db_constraint:
        return ""
    to = field.remote_field.model
    return to.lower() if isinstance(to, str) else to._meta.label_lower


def _index_fault(field: Any) -> str:
    if field.unique or field.db_index:
        return (
            "its index is built while writers wait: db_index=False, and AddIndexConcurrently in a "
            "migration that is not atomic"
        )
    return ""


@fault_of.register
def _altered(operation: migrations.AlterField, place: Place) -> str:
    if place.is_new(operation.model_name):
        return ""
    old, new = place.field(operation.model_name, operation.name), _named(operation)
    if old.null and not new.null:
        return "older code may leave it empty, and the whole table is read: a release later"
    if why := _contract_fault(old, new):
        return why
    if not _holds(new, old):
        return "the whole table is written anew, or older code writes what does not fit"
    if (new.unique and not old.unique) or (new.db_index and not old.db_index):
        return _index_fault(new)
    return ""


def _contract_fault(old: models.Field[Any, Any], new: models.Field[Any, Any]) -> str:
    """Why older code, or a reader of the whole table, would be in the way; empty if none is."""
    if old.column != new.column:
        return "older code knows the column by its former name"
    is_dropped = new.db_default is models.NOT_PROVIDED and old.db_default is not new.db_default
    if is_dropped and not new.null:
        return "older code leaves it to the default: a release later"
    check = new.db_check(connection)
    is_checked = bool(check) and check != old.db_check(connection)
    if is_checked or _references(new) not in {"", _references(old)}:
        return "the whole table is read for its check, and older code may write what it refuses"
    if getattr(new, "db_collation", None) != getattr(old, "db_collation", None):
        return "its indexes are built anew while writers wait"
    return ""


def _holds(new: models.Field[Any, Any], old: models.Field[Any, Any]) -> bool:
    """Whether the new column takes what the old one does, without being written anew."""
    types = [field.db_type(connection) or "" for field in (old, new)]
    if types[0] == types[1]:
        return True
    matches = [_TEXT.fullmatch(each) for each in types]
    if None in matches:
        return False
    before, after = (int(match[1] or 2**31) if match else 0 for match in matches)
    return after >= before


@fault_of.register
def _indexed(operation: migrations.AddIndex, place: Place) -> str:
    if isinstance(operation, postgres.AddIndexConcurrently) or place.is_new(operation.model_name):
        return ""
    return (
        "the index is built while writers wait: AddIndexConcurrently in a migration that is not "
        "atomic"
    )


@fault_of.register
def _constrained(operation: migrations.AddConstraint, place: Place) -> str:
    if place.is_new(operation.model_name):
        return ""
    return "older code may write what it refuses, and the table is read while writers wait"


@fault_of.register
def _let_go(operation: migrations.RemoveConstraint, place: Place) -> str:
    state = place.before.models[place.app, operation.model_name_lower]
    found = state.get_constraint_by_name(operation.name)
    if isinstance(found, models.UniqueConstraint):
        return "older code names it where it inserts or updates: a release later"
    return ""


@fault_of.register
def _by_hand(operation: migrations.RunSQL, place: Place) -> str:
    parts = operation.sql if isinstance(operation.sql, list | tuple) else [operation.sql]
    texts = [part[0] if isinstance(part, list | tuple) else part for part in parts]
    return next((f"it has {found[0]}" for text in texts if (found := _SQL.search(str(text)))), "")


def faults_in(
    migration: migrations.Migration, before: ProjectState, new_models: set[tuple[str, str]]
) -> Iterator[Fault]:
    """Faults of a migration, whose tables before are `before`.

    `new_models` are those, by app and lower-case name, that the release before did not have; what
    the migration makes is added to them.
    """
    app, state = migration.app_label, before.clone()

    def is_new(model: str) -> bool:
        return (app, model.lower()) in new_models

    for operation in migration.operations:
        now = state
        for part in _parts(operation):
            if isinstance(part, migrations.CreateModel):
                new_models.add((app, part.name_lower))
            if why := fault_of(part, Place(app, now, is_new)):
                yield Fault(f"{app}.{migration.name}: {part.describe()}", why)
            now = now.clone()
            part.state_forwards(app, now)
        state = state.clone()
        operation.state_forwards(app, state)


def _parts(operation: Operation) -> Sequence[Operation]:
    """Operations on the database that an operation stands for."""
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        found: Sequence[Operation] = operation.database_operations
        return found
    return [operation]


def all_faults(not_judged: Mapping[str, str]) -> Iterator[Fault]:
    """Faults of all migrations behind those that are not judged, by app."""
    loader, new_models = MigrationLoader(None), set[tuple[str, str]]()
    plans = [loader.graph.forwards_plan(leaf) for leaf in sorted(loader.graph.leaf_nodes())]
    for app, name in dict.fromkeys(key for plan in plans for key in plan):
        if not _is_ours(app) or name <= not_judged.get(app, ""):
            continue
        before = loader.project_state((app, name), at_end=False)
        yield from faults_in(loader.graph.nodes[app, name], before, new_models)


def _is_ours(app: str) -> bool:
    from django.apps import apps

    return apps.get_app_config(app).name.startswith(("wms.", "portal."))


def main() -> int:
    """Write each fault that is not exempt, and each exemption that is not needed."""
    known = tomllib.loads(EXEMPTIONS.read_text(encoding="utf-8"))
    exempt: dict[str, str] = known["exempt"]
    faults = list(all_faults(known["not_judged"]))
    for fault in faults:
        if fault.key not in exempt:
            sys.stdout.write(f"{fault.key}: {fault.why}\n")
    stale = exempt.keys() - {fault.key for fault in faults}
    for key in sorted(stale):
        sys.stdout.write(f"{EXEMPTIONS.name}: {key}: no such fault any more\n")
    return 1 if stale or {fault.key for fault in faults} - exempt.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
