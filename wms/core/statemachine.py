"""The only way to change a state: conditional updates and events, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, models, transaction
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.errors import ReasonRequired
from wms.core.models import EventRecord
from wms.core.statements import whole_numbers
from wms.core.transitions import Applied, TransitionTable

_BATCH = 1000
_BEGIN = """
INSERT INTO {table} ({subject}, event, from_state, to_state, actor, reason, facts, created_at)
SELECT id, %s, %s, %s, %s, '', '{{}}', statement_timestamp() FROM unnest(%s::bigint[]) AS id
ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class StateMachine:
    """The states of one entity as rows: its model, its event model, its transitions.

    `subject` is the event model's foreign key to the entity; `copied` names columns of the entity
    that its events carry as well.
    """

    model: type[models.Model]
    event_model: type[EventRecord]
    subject: str
    transitions: TransitionTable
    copied: tuple[str, ...] = ()

    @transaction.atomic
    def apply(
        self,
        event: str,
        ids: Collection[int],
        *,
        actor: Actor,
        reason: str = "",
        facts: Mapping[int, Mapping[str, Any]] | None = None,
        **changes: Any,
    ) -> tuple[Applied, list[EventRecord]]:
        """Move the entities that are in a source state of `event`; write one event for each.

        Rows are locked in id order. `facts` by entity id go into the events, `changes` are further
        columns to set. Entities in another state are skipped and returned as such: two who apply
        the same event at once change each entity once. Raises ReasonRequired.
        """
        step = self.transitions[event]
        if step.needs_reason and not reason.strip():
            raise ReasonRequired(event)
        rows = self._locked(ids, step.sources)
        changed = [row[0] for row in rows]
        if changed:
            self.model._default_manager.filter(pk__in=changed).update(
                state=step.target, state_since=Now(), state_reason=reason, **changes
            )
        events = self._write_events(event, step.target, rows, actor, reason, facts or {})
        return Applied(changed=changed, skipped=sorted(set(ids) - set(changed))), events

    def begin(self, event: str, ids: Sequence[int], *, actor: Actor) -> None:
        """Write the first event of entities that this transaction has inserted in its target state.

        Nobody else sees them yet, so there is nothing to lock and nothing to compare. One
        statement; it is for thousands at once, in entities whose events copy no columns.
        """
        step = self.transitions[event]
        (source,) = step.sources
        table, subject = self.event_model._meta.db_table, f"{self.subject}_id"
        with connection.cursor() as cursor:
            cursor.execute(
                _BEGIN.format(table=table, subject=subject),
                [event, source, step.target, actor.name, whole_numbers(ids)],
            )

    @transaction.atomic
    def note(
        self,
        event: str,
        facts: Mapping[int, Mapping[str, Any]],
        *,
        states: Collection[str],
        actor: Actor,
    ) -> list[EventRecord]:
        """Write an event that changes no state, for the entities of `facts` in one of `states`.

        Rows are locked in id order.
        """
        rows = self._locked(facts, states)
        return self._write_events(event, None, rows, actor, "", facts)

    def _locked(self, ids: Collection[int], states: Collection[str]) -> list[tuple[Any, ...]]:
        columns = ("pk", "state", *self.copied)
        return list(
            self.model._default_manager.filter(pk__in=ids, state__in=states)
            .order_by("pk")
            .select_for_update(of=("self",))
            .values_list(*columns, Now())
        )

    def _write_events(
        self,
        event: str,
        target: str | None,
        rows: Sequence[tuple[Any, ...]],
        actor: Actor,
        reason: str,
        facts: Mapping[int, Mapping[str, Any]],
    ) -> list[EventRecord]:
        # With the time as a value instead of the column's default, which is the same, thousands of
        # events are inserted in a third of the time: the rows travel as arrays.
        manager = self.event_model._default_manager
        return manager.bulk_create(
            [
                self.event_model(
                    **{f"{self.subject}_id": row[0]},
                    **dict(zip(self.copied, row[2:-1], strict=True)),
                    event=event,
                    from_state=row[1],
                    to_state=row[1] if target is None else target,
                    actor=actor.name,
                    reason=reason,
                    facts=dict(facts.get(row[0], {})),
                    created_at=row[-1],
                )
                for row in rows
            ],
            batch_size=_BATCH,
        )
