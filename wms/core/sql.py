"""What the state machine sends to PostgreSQL by hand."""

from __future__ import annotations

from collections.abc import Sequence

from wms.core.database.statements import one_line

# By hand, because it is for thousands at once, whose values the ORM would write one by one. No
# table is read.
BEGIN_ENTITIES = """
INSERT INTO {table} ({subject}, event, from_state, to_state, actor, reason, facts, created_at)
SELECT id, %s, %s, %s, %s, '', '{{}}', statement_timestamp() FROM unnest(%s::bigint[]) AS id
ORDER BY id
"""

# By hand, as one statement: it is what every job, pilot, DAG and request goes through several
# times. The entities are locked in id order before any is changed: whoever waits for one of them
# goes on with the row as it is then, and leaves it if its state does not fit any more. Nothing
# reads what the rows of `locked` are but `moved`, by the primary key, and `written`, in one pass:
# the statement is planned once for one entity and for thousands.
APPLY_EVENT = """
WITH locked AS MATERIALIZED (
    SELECT id, state FROM {entities}
    WHERE id = ANY(%(ids)s::bigint[]) AND state = ANY(%(sources)s::text[])
    ORDER BY id FOR UPDATE
), {moved}written AS (
    INSERT INTO {events}
        ({subject}, event, from_state, to_state, actor, reason{cause}, facts, created_at)
    SELECT id, %(event)s::text, state, coalesce(%(target)s::text, state), %(actor)s::text,
        %(reason)s::text{said}, coalesce(%(facts)s::jsonb -> id::text, '{{}}'),
        statement_timestamp()
    FROM locked ORDER BY id
    RETURNING {subject} AS entity_id, id
){told}
SELECT entity_id, id, {topics} FROM written ORDER BY entity_id
"""
_MOVED = "moved AS ({update} FROM locked WHERE {entities}.id = locked.id), "
_TOLD = """, told AS (
    INSERT INTO core_inboxentry (topic, key, kind, subject_id)
    {listeners}
    RETURNING topic
)"""

# Who hears of the events: those that the entities name, and those of a kind of entity. The topic
# of an entity never changes; entities are found by the primary key.
TELL_SUBMITTERS = """
SELECT e.topic, e.topic_key, %(kind)s::text, written.id
FROM written JOIN {entities} AS e ON e.id = written.entity_id WHERE e.topic <> ''
"""
TELL_OBSERVERS = "SELECT %(observers)s::text, 0, %(kind)s::text, written.id FROM written"


def apply_event(
    *,
    entities: str,
    events: str,
    subject: str,
    update: str,
    has_causes: bool,
    listeners: Sequence[str],
) -> str:
    """`APPLY_EVENT` for these tables; without an `update` it only writes the events."""
    told = _TOLD.format(listeners=" UNION ALL ".join(listeners)).replace("{entities}", entities)
    statement = APPLY_EVENT.format(
        entities=entities,
        events=events,
        subject=subject,
        cause=", cause" if has_causes else "",
        said=", %(cause)s::text" if has_causes else "",
        moved=_MOVED.format(update=update, entities=entities) if update else "",
        told=told if listeners else "",
        topics="(SELECT array_agg(DISTINCT topic) FROM told)" if listeners else "NULL",
    )
    return one_line(statement)
