"""State machine: moves rows to a state if theirs allows it, and writes an event for each.

One statement moves thousands, and sets other columns with the state; rows in another state are
skipped. Also moves whose events other rows tell, events that change no state, the announcement of
events in inboxes, and the deletion, with a move, of rows attached to the objects.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models
from django.db.backends.utils import CursorWrapper
from psycopg.types.json import Jsonb

from wms.core import sql
from wms.core.actors import Actor
from wms.core.database.actor_field import stored_actor
from wms.core.database.statements import prepared_rows, stored_values, whole_numbers
from wms.core.errors import ReasonRequired
from wms.core.inbox import wake_readers
from wms.core.models import EventRecord, InboxEntry
from wms.core.transitions import Applied, Transition, TransitionTable


@dataclass(frozen=True, slots=True)
class Increment:
    """Change of a column by a number."""

    by: int = 1


@dataclass(frozen=True, slots=True)
class DatabaseTime:
    """Change of a column to the database's time, or to so many seconds later."""

    plus_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OwnValues:
    """Values of a column for each entity of a move, in the order of the ids.

    `fact` is their name in the events.
    """

    column: str
    values: Sequence[Any]
    fact: str


@dataclass(frozen=True, slots=True)
class Written:
    """Event that was written, and the entity that it is about."""

    entity_id: int
    event_id: int


@dataclass(frozen=True, slots=True)
class Sent:
    """Move of guarded entities that the server may still carry out."""

    cursor: CursorWrapper
    target: str

    def rows(self) -> list[tuple[Any, ...]]:
        """Wait for the end: id, parent, former state and `columns` of each that moved.

        To be called once.
        """
        with self.cursor as cursor:
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class StateMachine:
    """The states of one entity as rows: its model, its event model, its transitions.

    `subject` is the event model's foreign key to the entity. Events in `announced` go to the inbox
    that the entity names as its `topic`, under its `topic_key`; those in `observed` to the inbox
    `observers`, whatever the entity; both as entries of this `kind`. An entity that `has_causes`
    keeps its cause as a value beside the reason, which is for people: `state_cause` of the entity,
    `cause` of the event.

    Guarded entities, such as the nodes of a DAG, are moved by `send` under the lock of their
    `parent`, which their events name as well. `columns` are told of those that moved, and rows of
    the model `attached`, whose key is the `subject`, can end with a move.
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
    parent: str = ""
    columns: tuple[str, ...] = ()
    attached: type[models.Model] | None = None

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
        columns to set: values, `Increment`, `DatabaseTime`. Entities in another state are skipped
        and returned as such: two who apply the same event at once change each entity once. Raises
        ReasonRequired.
        """
        step = self._step(event, reason)
        written = self._write(
            _statement(self, self._listeners(event, is_announced), _kinds(changes)),
            event,
            ids,
            {
                **_change_values(self.model, changes),
                "target": step.target,
                "sources": sorted(step.sources),
            },
            actor=actor,
            reason=reason,
            cause=cause,
            facts=facts or {},
        )
        changed = [each.entity_id for each in written]
        return Applied(changed=changed, skipped=sorted(set(ids) - set(changed))), written

    def apply_told(
        self, event: str, ids: Collection[int], *, actor: Actor, **changes: Any
    ) -> list[Written]:
        """Move entities as `apply` does, by an event that a row of the caller's will tell.

        The event is not written: its id, in its place among the others, is for that row, which
        the caller writes in this transaction. Nobody hears of it.
        """
        step = self._step(event, "")
        return self._write(
            _statement(self, (), _kinds(changes), is_reserved=True),
            event,
            ids,
            {
                **_change_values(self.model, changes),
                "target": step.target,
                "sources": sorted(step.sources),
            },
            actor=actor,
            reason="",
            facts={},
        )

    def send(
        self,
        event: str,
        ids: Collection[int],
        *,
        parents: Sequence[int],
        actor: Actor,
        reason: str = "",
        cause: str = "",
        source: str | None = None,
        own_values: OwnValues | None = None,
        facts: Mapping[str, Any] | None = None,
        ends_attached: bool = False,
        **changes: Any,
    ) -> Sent:
        """Begin to move entities of these parents, whose rows the caller has locked.

        Inside of `wms.core.database.statements.sent_ahead` it does not wait for the server.
        `source` narrows the source states to one, which is faster. `facts` go into every event,
        `changes` are as for `apply`. Entities in another state are skipped. Raises ReasonRequired.
        """
        step = self._step(event, reason)
        if source is None and len(step.sources) == 1:
            (source,) = step.sources
        values: dict[str, Any] = {
            **_change_values(self.model, changes),
            "parents": list(parents),
            "ids": whole_numbers(ids),
            "source": source,
            "sources": sorted(step.sources),
            "target": step.target,
            "facts": Jsonb({**actor.facts, **(facts or {})}),
            **self._event_values(event, actor, reason, cause),
        }
        if own_values is not None:
            values["values"] = whole_numbers(own_values.values)
        statement = _guarded_statement(
            self,
            self._listeners(event),
            _kinds(changes),
            (own_values.column, own_values.fact) if own_values is not None else ("", ""),
            source is not None,
            ends_attached,
        )
        cursor = connection.cursor()
        cursor.execute(statement, values)
        return Sent(cursor, step.target)

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

    def _step(self, event: str, reason: str) -> Transition:
        step = self.transitions[event]
        if step.needs_reason and not reason.strip():
            raise ReasonRequired(event)
        return step

    def _listeners(self, event: str, is_announced: bool = True) -> tuple[str, ...]:
        """Statements that select the inbox entries for this event."""
        if not is_announced:
            return ()
        submitters = (sql.ANNOUNCE_TO_SUBMITTERS,) if event in self.announced else ()
        return (*submitters, sql.ANNOUNCE_TO_OBSERVERS) if event in self.observed else submitters

    def _event_values(self, event: str, actor: Actor, reason: str, cause: str) -> dict[str, Any]:
        return {
            "event": event,
            "actor": stored_actor(actor.name),
            "reason": reason,
            "cause": str(cause),
            "observers": self.observers,
            "kind": self.kind,
        }

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
        field: Any = self.event_model._meta.get_field("facts")
        by_id = {str(pk): field.packed(each) for pk, each in facts.items()}
        if actor.facts:
            whole = ((pk, {**facts.get(pk, {}), **actor.facts}) for pk in ids)
            by_id = {str(pk): field.packed(each) for pk, each in whole}
        common = {
            "ids": whole_numbers(ids),
            "facts": json.dumps(by_id, cls=DjangoJSONEncoder) if by_id else None,
            **self._event_values(event, actor, reason, cause),
        }
        rows = prepared_rows(statement, {**common, **values})
        wake_readers(rows[0][2] or () if rows else ())
        return [Written(entity_id, event_id) for entity_id, event_id, _ in rows]


#: Columns that a statement changes, each with the form of its change.
_Kinds = tuple[tuple[str, type[Any]], ...]


def _kinds(changes: Mapping[str, Any]) -> _Kinds:
    forms = (Increment, DatabaseTime)
    return tuple(
        (name, type(value) if isinstance(value, forms) else object)
        for name, value in changes.items()
    )


def _change_values(model: type[models.Model], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the changes, prefixed: a column may be named as another parameter is."""
    plain: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if isinstance(value, Increment):
            values[name] = value.by
        elif isinstance(value, DatabaseTime):
            values[name] = value.plus_s
        else:
            plain[name] = value
    values |= stored_values(model, plain)
    return {f"new_{name}": value for name, value in values.items()}


def _assignments(machine: StateMachine, kinds: _Kinds) -> str:
    """The list after SET: the state's own columns, and further ones."""
    assigned = {
        "state": "%(target)s",
        "state_since": "statement_timestamp()",
        "state_reason": "%(reason)s",
    }
    if machine.has_causes:
        assigned["state_cause"] = "%(cause)s"
    for name, kind in kinds:
        field: Any = machine.model._meta.get_field(name)
        column, value = field.column, f"%(new_{name})s"
        if kind is Increment:
            value = f"entity.{column} + {value}"
        elif kind is DatabaseTime:
            value = f"statement_timestamp() + make_interval(secs => {value})"
        assigned[column] = value
    return ", ".join(f"{column} = {value}" for column, value in assigned.items())


@lru_cache(maxsize=256)
def _statement(
    machine: StateMachine,
    listeners: tuple[str, ...],
    kinds: _Kinds | None,
    is_reserved: bool = False,
) -> str:
    """The statement that moves entities and sets these columns, or that only writes their events.

    It is the same for the same columns, whatever the values, so that it stays prepared.
    """
    return sql.apply_event(
        entities=machine.model._meta.db_table,
        events=machine.event_model._meta.db_table,
        subject=f"{machine.subject}_id",
        changes=_assignments(machine, kinds) if kinds is not None else "",
        has_causes=machine.has_causes,
        listeners=listeners,
        is_reserved=is_reserved,
    )


@lru_cache(maxsize=256)
def _guarded_statement(
    machine: StateMachine,
    listeners: tuple[str, ...],
    kinds: _Kinds,
    own: tuple[str, str],
    is_from_one: bool,
    ends_attached: bool,
) -> str:
    changes = _assignments(machine, kinds)
    column, fact = own
    value_type = ""
    if column:
        field: Any = machine.model._meta.get_field(column)
        value_type = field.db_type(connection)
        changes += f", {field.column} = given.value"
    attached = machine.attached._meta.db_table if ends_attached and machine.attached else ""
    return sql.move_guarded(
        entities=machine.model._meta.db_table,
        events=machine.event_model._meta.db_table,
        subject=f"{machine.subject}_id",
        parent=f"{machine.parent}_id",
        columns=machine.columns,
        changes=changes,
        value_type=value_type,
        fact=fact,
        is_from_one=is_from_one,
        has_causes=machine.has_causes,
        listeners=listeners,
        deleted_from=attached,
    )
