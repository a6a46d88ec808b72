"""The only way to change a state: conditional updates and events, in one statement."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.database.prepared import Parameter, update_statement
from wms.core.database.statements import prepared_rows, whole_numbers
from wms.core.errors import ReasonRequired
from wms.core.inbox import knock
from wms.core.models import EventRecord, InboxEntry
from wms.core.sql import BEGIN_ENTITIES, TELL_OBSERVERS, TELL_SUBMITTERS, apply_event
from wms.core.transitions import Applied, TransitionTable


@dataclass(frozen=True, slots=True)
class Written:
    """An event that was written, and the entity that it is about."""

    entity_id: int
    event_id: int


@dataclass(frozen=True, slots=True, eq=False)
class StateMachine:
    """The states of one entity as rows: its model, its event model, its transitions.

    `subject` is the event model's foreign key to the entity. Of the events in `announced` the inbox
    hears that the entity names as its `topic`, under its `topic_key`. Of those in `observed` hears
    the inbox `observers`, whatever the entity. To both they are of this `kind`. One that
    `has_causes` keeps its cause as a value beside the reason, which is for people: `state_cause`
    of the entity, `cause` of the event.
    """

    model: type[models.Model]
    event_model: type[EventRecord]
    subject: str
    transitions: TransitionTable
    announced: frozenset[str] = frozenset()
    observed: frozenset[str] = frozenset()
    observers: str = ""
    has_causes: bool = False
    kind: InboxEntry.Kind | None = None

    def apply(
        self,
        event: str,
        ids: Collection[int],
        *,
        actor: Actor,
        reason: str = "",
        cause: str = "",
        facts: Mapping[int, Mapping[str, Any]] | None = None,
        is_announced: bool = True,
        **changes: Any,
    ) -> tuple[Applied, list[Written]]:
        """Move the entities that are in a source state of `event`; write one event for each.

        Rows are locked in id order. `facts` by entity id go into the events, `changes` are further
        columns to set. Entities in another state are skipped and returned as such: two who apply
        the same event at once change each entity once. Raises ReasonRequired.
        """
        step = self.transitions[event]
        if step.needs_reason and not reason.strip():
            raise ReasonRequired(event)
        columns: dict[str, Any] = {name: self.model._meta.get_field(name) for name in changes}
        given = {
            _prefixed(name): columns[name].get_db_prep_save(value, connection)
            for name, value in changes.items()
            if not hasattr(value, "resolve_expression")
        }
        written_as = {
            name: Parameter(_prefixed(name)) if _prefixed(name) in given else value
            for name, value in changes.items()
        }
        written = self._write(
            _statement(self, self._listeners(event, is_announced), tuple(written_as.items())),
            event,
            ids,
            {**given, "target": step.target, "sources": sorted(step.sources)},
            actor=actor,
            reason=reason,
            cause=cause,
            facts=facts or {},
        )
        changed = [each.entity_id for each in written]
        return Applied(changed=changed, skipped=sorted(set(ids) - set(changed))), written

    def begin(self, event: str, ids: Sequence[int], *, actor: Actor) -> None:
        """Write the first event of entities that this transaction has inserted in its target state.

        Nobody else sees them yet, so there is nothing to lock and nothing to compare. One
        statement; it is for thousands at once.
        """
        step = self.transitions[event]
        (source,) = step.sources
        table, subject = self.event_model._meta.db_table, f"{self.subject}_id"
        with connection.cursor() as cursor:
            cursor.execute(
                BEGIN_ENTITIES.format(table=table, subject=subject),
                [event, source, step.target, actor.name, whole_numbers(ids)],
            )

    def note(
        self,
        event: str,
        facts: Mapping[int, Mapping[str, Any]],
        *,
        states: Collection[str],
        actor: Actor,
    ) -> list[Written]:
        """Write an event that changes no state, for the entities of `facts` in one of `states`.

        Rows are locked in id order.
        """
        return self._write(
            _statement(self, self._listeners(event), None),
            event,
            facts,
            {"target": None, "sources": sorted(states)},
            actor=actor,
            reason="",
            facts=facts,
        )

    def _listeners(self, event: str, is_announced: bool = True) -> tuple[str, ...]:
        """Who hears of this event, as statements that select the rows for their inboxes."""
        if not is_announced:
            return ()
        submitters = (TELL_SUBMITTERS,) if event in self.announced else ()
        return (*submitters, TELL_OBSERVERS) if event in self.observed else submitters

    def _write(
        self,
        statement: str,
        event: str,
        ids: Iterable[int],
        values: Mapping[str, Any],
        *,
        actor: Actor,
        reason: str,
        facts: Mapping[int, Mapping[str, Any]],
        cause: str = "",
    ) -> list[Written]:
        told = {str(pk): dict(each) for pk, each in facts.items()}
        if actor.facts:
            told = {str(pk): {**told.get(str(pk), {}), **actor.facts} for pk in ids}
        common = {
            "ids": whole_numbers(ids),
            "event": event,
            "actor": actor.name,
            "reason": reason,
            "cause": str(cause),
            "observers": self.observers,
            "kind": self.kind,
            "facts": json.dumps(told, cls=DjangoJSONEncoder) if told else None,
        }
        rows = prepared_rows(statement, {**common, **values})
        knock(rows[0][2] or () if rows else ())
        return [Written(entity_id, event_id) for entity_id, event_id, _ in rows]


def _prefixed(name: str) -> str:
    """The parameter of a further column, which may be named as one of the statement's own."""
    return f"new_{name}"


@lru_cache(maxsize=256)
def _statement(
    machine: StateMachine,
    listeners: tuple[str, ...],
    changes: tuple[tuple[str, Any], ...] | None,
) -> str:
    """The statement that moves entities and sets these columns, or that only writes their events.

    Changes with the same expressions are one statement; their values are parameters of it.
    """
    update = ""
    if changes is not None:
        state = {"state": Parameter("target"), "state_since": Now()}
        if machine.has_causes:
            state["state_cause"] = Parameter("cause")
        update = update_statement(
            machine.model._default_manager.all(),
            {**state, "state_reason": Parameter("reason"), **dict(changes)},
        )
    return apply_event(
        entities=f'"{machine.model._meta.db_table}"',
        events=machine.event_model._meta.db_table,
        subject=f"{machine.subject}_id",
        update=update,
        has_causes=machine.has_causes,
        listeners=listeners,
    )
