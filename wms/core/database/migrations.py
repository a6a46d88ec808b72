"""Base class of migrations that render the state of the models once for many operations.

Django renders the classes of nearly all models anew after each operation, which makes up nine
tenths of the time that an empty database takes to get its tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

#: What these say to the database depends on nothing but the models before and after the whole
#: step, as long as no part of a model is touched twice in it.
_ADDING = (
    migrations.AddField,
    migrations.AlterField,
    migrations.AddIndex,
    migrations.AddConstraint,
)
_REMOVING = (migrations.RemoveConstraint, migrations.RemoveIndex)


class BatchedMigration(migrations.Migration):
    """Migration whose operations are applied in as few steps as give the same tables.

    A model that a step makes is made with all that the step adds to it.
    """

    def apply(
        self,
        project_state: ProjectState,
        schema_editor: BaseDatabaseSchemaEditor,
        collect_sql: bool = False,
    ) -> ProjectState:
        # `sqlmigrate` tells which statement belongs to which operation.
        if collect_sql or not schema_editor.atomic_migration:
            return super().apply(project_state, schema_editor, collect_sql)
        for step in steps(self.operations):
            before = project_state.clone()
            if len(step) > 1:
                # Not rendered anew after each of the changes that follow.
                project_state.__dict__.pop("apps", None)
            for operation in step:
                operation.state_forwards(self.app_label, project_state)
            made: set[str] = set()
            for operation in step:
                if isinstance(operation, migrations.CreateModel):
                    made.add(operation.name_lower)
                elif _model(operation) in made:
                    continue
                operation.database_forwards(self.app_label, schema_editor, before, project_state)
        return project_state


def steps(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """The operations, in their order, in groups that can be applied at once."""
    step: list[Operation] = []
    made: set[str] = set()
    touched: set[tuple[str, str]] = set()
    for operation in operations:
        part = (_model(operation), _part(operation))
        if step and (not part[0] or (part in touched and part[0] not in made)):
            yield step
            step, made, touched = [], set(), set()
        step.append(operation)
        if not part[0]:
            yield step
            step = []
        elif isinstance(operation, migrations.CreateModel):
            made.add(part[0])
        elif isinstance(operation, _ADDING):
            touched.add(part)
    if step:
        yield step


def _model(operation: Operation) -> str:
    """The name of the model that an operation of a known kind changes; of another kind: none."""
    # Exact kinds: those that derive from them, such as for indexes made concurrently, differ.
    if type(operation) is migrations.CreateModel:
        return operation.name_lower
    if type(operation) in (*_ADDING, *_REMOVING):
        return str(operation.model_name_lower)  # type: ignore[attr-defined]
    return ""


def _part(operation: Operation) -> str:
    """The name of the field, index or constraint that the operation changes."""
    if isinstance(operation, migrations.AddIndex):
        return operation.index.name
    if isinstance(operation, migrations.AddConstraint):
        return operation.constraint.name
    return str(getattr(operation, "name", ""))
