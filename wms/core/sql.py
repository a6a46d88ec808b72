"""SQL of the state machine: move objects between states, write their events, announce these.

Also the part that writes events, for statements of other apps, and what is measured: the backlog of
the inbox, and sessions of the database.
"""

from __future__ import annotations

from collections.abc import Sequence

from wms.core.database.state_field import stored_in_sql
from wms.core.database.statements import one_line

# By hand, as one statement: it is what every job, pilot, DAG and request goes through several
# times. The entities are locked in id order before any is changed: whoever waits for one of them
# goes on with the row as it is then, and leaves it if its state does not fit any more. Nothing
# reads what the rows of `locked` are but `moved`, by the primary key, and `written`, in one pass:
# the statement is planned once for one entity and for thousands.
APPLY_EVENT = """
WITH locked AS MATERIALIZED (
    SELECT id, state AS was FROM {entities}
    WHERE id = ANY(%(ids)s::bigint[]) AND state = ANY(%(sources)s::text[])
    ORDER BY id FOR UPDATE
){moved}, {written}{announced}
SELECT entity_id, id, {topics} FROM written ORDER BY entity_id
"""
_MOVED = """, moved AS (
    UPDATE {entities} AS entity SET {changes} FROM locked WHERE entity.id = locked.id
)"""

# By hand, because the ORM needs three statements for it. The caller has locked the rows of the
# parents, so nothing is locked here. The entities are found by the primary key. `was` is given by
# the statement where an entity can come from one state only; else it is read from its old row.
MOVE_GUARDED = """
WITH moved AS (
    UPDATE {entities} AS entity SET {changes}
    FROM {given}
    WHERE entity.id = given.id AND entity.{parent} = ANY(%(parents)s) AND {from_state}
    RETURNING entity.id, entity.{parent}, {was} AS was{returned}{value}
), {written}{announced}{deleted}
SELECT id, {parent}, was{columns} FROM moved
"""
_GIVEN = "unnest(%(ids)s::bigint[]) AS given(id)"
_GIVEN_VALUES = "unnest(%(ids)s::bigint[], %(values)s::{type}[]) AS given(id, value)"
_OLD = " JOIN {entities} AS old ON old.id = given.id"
# As a query, so that the planner does not look the state up in what it knows of the table: a state
# that few entities had when it was analysed would let it compare each of them with each of those
# given.
_FROM_ONE = "entity.state = (SELECT %(source)s::varchar)"
_DELETED = """, deleted AS (
    DELETE FROM {attached} AS attached USING moved WHERE attached.{subject} = moved.id
)"""

# One event for each row of a query that has its `id`, and the state that it `was` in.
_WRITTEN = """written AS (
    INSERT INTO {events}
        ({parent}{subject}, event, from_state, to_state, actor, reason{cause}, facts, created_at)
    SELECT {parent}id, %(event)s::text, {from_state}, {to_state}, %(actor)s::text,
        %(reason)s::text{cause_value}, {facts}, statement_timestamp()
    FROM {rows}
    RETURNING {subject} AS entity_id, id
)"""

# No event: its id for each entity, for a row of the caller's that tells the event.
_RESERVED = """written AS (
    SELECT id AS entity_id, nextval('{events}_id_seq') AS id FROM locked ORDER BY entity_id
)"""
_FROM_STATE = stored_in_sql("was")
_TO_STATE = stored_in_sql("coalesce(%(target)s::text, was)")
_FACTS_BY_ID = "coalesce(%(facts)s::jsonb -> id::text, '{}')"

# Inbox entries for the events: those that the entities name, and those of a kind of entity. The
# topic of an entity never changes; entities are found by the primary key.
ANNOUNCE_TO_SUBMITTERS = """
SELECT e.topic, e.topic_key, %(kind)s::text, written.id
FROM written JOIN {entities} AS e ON e.id = written.entity_id WHERE e.topic <> ''
"""
ANNOUNCE_TO_OBSERVERS = "SELECT %(observers)s::text, 0, %(kind)s::text, written.id FROM written"
_ANNOUNCED = """, announced AS (
    INSERT INTO core_inboxentry (topic, key, kind, subject_id)
    {listeners}
    RETURNING topic
)"""


def events_written(
    *,
    events: str,
    subject: str,
    rows: str,
    parent: str = "",
    has_causes: bool = True,
    facts: str = "%(facts)s",
) -> str:
    """Part of a statement, `written`: one event for each of the rows."""
    return _WRITTEN.format(
        from_state=_FROM_STATE,
        to_state=_TO_STATE,
        events=events,
        subject=subject,
        rows=rows,
        parent=f"{parent}, " if parent else "",
        cause=", cause" if has_causes else "",
        cause_value=", %(cause)s::text" if has_causes else "",
        facts=facts,
    )


def apply_event(
    *,
    entities: str,
    events: str,
    subject: str,
    changes: str,
    has_causes: bool,
    listeners: Sequence[str],
    is_reserved: bool = False,
) -> str:
    """`APPLY_EVENT` for these tables; without `changes` it only writes the events.

    Where the events are only to be reserved, it writes none of them.
    """
    written = events_written(
        events=events,
        subject=subject,
        rows="locked ORDER BY id",
        has_causes=has_causes,
        facts=_FACTS_BY_ID,
    )
    statement = APPLY_EVENT.format(
        entities=entities,
        moved=_MOVED.format(entities=entities, changes=changes) if changes else "",
        written=_RESERVED.format(events=events) if is_reserved else written,
        announced=_announced(entities, listeners),
        topics="(SELECT array_agg(DISTINCT topic) FROM announced)" if listeners else "NULL",
    )
    return one_line(statement)


def move_guarded(
    *,
    entities: str,
    events: str,
    subject: str,
    parent: str,
    columns: Sequence[str],
    changes: str,
    value_type: str,
    fact: str,
    is_from_one: bool,
    has_causes: bool,
    listeners: Sequence[str],
    deleted_from: str,
) -> str:
    """`MOVE_GUARDED` for these tables, with further columns of those that moved.

    With `value_type` each entity has a value of this SQL type, `given.value`, which its event has
    under the name `fact`. With `deleted_from` what is attached to the entities ends with the move.
    """
    given = _GIVEN_VALUES.format(type=value_type) if value_type else _GIVEN
    return MOVE_GUARDED.format(
        entities=entities,
        changes=changes,
        given=given if is_from_one else given + _OLD.format(entities=entities),
        parent=parent,
        from_state=_FROM_ONE if is_from_one else "old.state = ANY(%(sources)s)",
        was="%(source)s" if is_from_one else "old.state",
        returned="".join(f", entity.{name}" for name in columns),
        value=", given.value" if fact else "",
        written=events_written(
            events=events,
            subject=subject,
            rows="moved",
            parent=parent,
            has_causes=has_causes,
            facts=f"jsonb_build_object('{fact}', value)" if fact else "%(facts)s",
        ),
        announced=_announced(entities, listeners),
        deleted=_DELETED.format(attached=deleted_from, subject=subject) if deleted_from else "",
        columns="".join(f", {name}" for name in columns),
    )


def _announced(entities: str, listeners: Sequence[str]) -> str:
    if not listeners:
        return ""
    text = _ANNOUNCED.format(listeners=" UNION ALL ".join(listeners))
    return text.replace("{entities}", entities)


# By hand because the ORM cannot count what a limited query selects: of a backlog of millions it is
# enough to know that it is long. In the order of no index, so that none has to be read to its end.
COUNT_INBOX = """
SELECT topic, count(*) FROM (SELECT topic FROM core_inboxentry LIMIT %(limit)s) AS entry
GROUP BY topic
"""

# By hand: no model stands for what the server tells of its sessions, which are few and have no
# index.
COUNT_SESSIONS = """
SELECT coalesce(state, 'unknown'), count(*), current_setting('max_connections')::int
FROM pg_stat_activity WHERE backend_type = 'client backend' GROUP BY 1
"""

# For figures that may be missing, until the end of the transaction.
LIMIT_STATEMENTS = "SET LOCAL statement_timeout = '3s'"
