"""Base class of migrations that render the state of few models, and once for many operations.

Django renders the classes of nearly all models anew after each operation, as all are related
somehow: nine tenths of the time that an empty database takes to get its tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState, StateApps

#: Label of the app and lower-case name of a model, as Django's states have them.
ModelKey = tuple[str, str]

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
            before = self._advance(step, project_state)
            made: set[str] = set()
            for operation in step:
                if isinstance(operation, migrations.CreateModel):
                    made.add(operation.name_lower)
                elif _model(operation) in made:
                    continue
                operation.database_forwards(self.app_label, schema_editor, before, project_state)
        return project_state

    def _advance(self, step: Sequence[Operation], state: ProjectState) -> ProjectState:
        """State before a step; `state` becomes that after it, its classes rendered where needed."""
        changed = self._changed_models(step, state)
        if changed is None:
            _forget_stale_relations(state)
        before = state.clone()
        # One operation that needs all is left to Django; several are rendered when asked for.
        rendered = (
            state.__dict__.pop("apps", None) if changed is not None or len(step) > 1 else None
        )
        for operation in step:
            operation.state_forwards(self.app_label, state)
        if changed is not None and rendered is not None:
            _render_again(changed, rendered, state)
        return before

    def _changed_models(
        self, step: Sequence[Operation], state: ProjectState
    ) -> set[ModelKey] | None:
        """Keys of the models whose classes a step needs anew; None for a step that needs all."""
        changed: set[ModelKey] = set()
        for operation in step:
            if type(operation) is migrations.RunSQL and not operation.state_operations:
                continue
            key = (self.app_label, _model(operation))
            if not key[1] or _is_referred_to(operation, state.models.get(key)):
                return None
            changed.add(key)
        return changed


def _is_referred_to(operation: Operation, model: ModelState | None) -> bool:
    """Whether an operation changes a field by which other models may refer to this one."""
    if not isinstance(operation, migrations.AlterField):
        return False
    fields = [operation.field, *([model.fields[operation.name]] if model else [])]
    return any(field.primary_key or field.unique for field in fields)


def _render_again(changed: set[ModelKey], rendered: StateApps, state: ProjectState) -> None:
    """Classes of the changed models anew; others refer to what they were, with the same columns."""
    with rendered.bulk_update():
        for key in changed:
            rendered.unregister_model(*key)
    rendered.render_multiple([state.models[key] for key in sorted(changed)])
    state.apps = rendered
    state.is_delayed = True


def _forget_stale_relations(state: ProjectState) -> None:
    """All classes anew when next asked for, where some refer to what others were."""
    state.clear_delayed_apps_cache()
    state.is_delayed = False


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
