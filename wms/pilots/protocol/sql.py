"""SQL of the pilot protocol: begin a claim, record a heartbeat, find a pilot by its UUID."""

from __future__ import annotations

from wms.core.database.statements import one_line

# By hand, because the ORM cannot read what an update returns: every claim begins with it. The
# pilot is found by the primary key, a suspicion of its node by `node_suspected_once`. The groups
# are those of its frontend, or, of the default one, those that others have; they are few. Start
# expressions of frontend and entry are found by the primary key and the unique index.
BEGIN_CLAIM = one_line("""
UPDATE pilots_pilot SET heartbeat_at = %(now)s
WHERE id = %(pilot)s AND state <> ALL(%(ended)s::text[])
RETURNING fruitless_at, drain_reason, (
    SELECT s.id FROM pilots_suspectednode AS s
    WHERE s.site_id = %(site)s AND s.host = %(host)s AND s.ended_at IS NULL
), frontend_id, (
    SELECT array_agg(g.name ORDER BY g.name) FROM accounting_accountinggroup AS g
    WHERE g.frontend_id IS NOT NULL
      AND g.frontend_id = coalesce(pilots_pilot.frontend_id, g.frontend_id)), ARRAY(
    SELECT f.start_expression FROM accounting_frontend AS f
    WHERE f.id = pilots_pilot.frontend_id AND f.start_expression <> ''
), ARRAY(
    SELECT e.start_expression FROM sites_frontendentry AS e
    WHERE e.queue_id = pilots_pilot.queue_id AND e.start_expression <> ''
      AND e.frontend_id IS NOT DISTINCT FROM pilots_pilot.frontend_id)
""")

# By hand, because thousands of pilots send heartbeats, and the ORM needs three statements for
# one. The credential is compared with the rest: what is stored and compared are hashes of long
# random texts, of which a comparison tells nothing. What a pilot told later is not undone by what
# it told before and the network kept back; a beat without a number counts as the latest. The
# pilot is found by the unique index of its UUID, its attempts by that of their pilot or by
# `attempt_number_unique`.
RECORD_HEARTBEAT = one_line("""
WITH beat AS (
    UPDATE pilots_pilot SET
        heartbeat_at = %(now)s,
        load = CASE WHEN %(sequence)s IN (0, greatest(heartbeat_sequence, %(sequence)s))
            THEN coalesce(%(load)s::jsonb, load) ELSE load END,
        heartbeat_sequence = greatest(heartbeat_sequence, %(sequence)s),
        is_draining = is_draining OR %(is_draining)s,
        node = CASE WHEN %(facts)s::jsonb <> '{}'
                AND %(sequence)s IN (0, greatest(heartbeat_sequence, %(sequence)s))
            THEN node || %(facts)s::jsonb ELSE node END,
        validation_s = coalesce(greatest(validation_s, %(validation_s)s::float8), validation_s)
    WHERE uuid = %(uuid)s AND token_sha256 = %(digest)s AND token_sha256 > ''
      AND (ended_at IS NULL OR ended_at > %(ended_since)s)
    RETURNING id, state, state_reason, drain_reason,
        %(sequence)s IN (0, heartbeat_sequence) AS is_latest
), used AS (
    UPDATE jobs_attempt AS a SET usage = told.usage
    FROM beat, jsonb_to_recordset(%(usage)s::jsonb)
        AS told(job_id bigint, number integer, usage jsonb)
    WHERE beat.is_latest AND a.pilot_id = beat.id AND a.outcome = ''
      AND a.job_id = told.job_id AND a.number = told.number
)
SELECT id, state, state_reason, drain_reason, (
    SELECT jsonb_agg(jsonb_build_array(
        a.job_id, a.number, coalesce(a.peek_until > %(now)s, false)))
    FROM jobs_attempt AS a WHERE a.pilot_id = beat.id AND a.outcome = ''
) FROM beat
""")

# By hand, because to write it takes the ORM longer than the answer takes PostgreSQL, and every
# request of a pilot begins with it: it stays prepared. The pilot is found by the unique index of
# its UUID, the others by their primary keys.
FIND_PILOT = """
SELECT {pilot}, {queue}, {site}, {owner}, {owner_group}
FROM pilots_pilot AS pilot
JOIN sites_queue AS queue ON queue.id = pilot.queue_id
JOIN sites_site AS site ON site.id = queue.site_id
LEFT JOIN core_user AS owner ON owner.id = pilot.owner_id
LEFT JOIN accounting_accountinggroup AS owner_group ON owner_group.id = pilot.owner_group_id
WHERE pilot.uuid = %(uuid)s
"""
