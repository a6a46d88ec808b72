"""SQL of placements: the requests whose attempts may begin next, and the ends of many attempts.

By hand, because the ORM knows no walk from one lane to the next: with it the cost would be that of
all requests that wait.
"""

from __future__ import annotations

from wms.core.database.statements import one_line

# A lane is an owner's requests from one storage to another; 0 stands for what is in none. The walk
# reads one entry of `placement_waiting_by_lane` for each lane, and of those that limits leave open
# the first request that was never tried, by `placement_untried_by_lane`, and the first one that is
# due again. Who has the fewest attempts under way comes first, then the oldest request. `room` is
# how many of the lane may begin; none where no limit holds for it. Those of a lane that were never
# tried are a range of the index: as three equal values they are thought to be few, and all that
# wait are sorted.
FIND_NEXT = """
WITH RECURSIVE lanes AS (
    (SELECT owner_id, COALESCE(source_storage_id, 0) AS source,
            COALESCE(destination_storage_id, 0) AS destination
     FROM placement_placementrequest
     WHERE state IN ('received', 'rescheduled')
     ORDER BY owner_id, COALESCE(source_storage_id, 0), COALESCE(destination_storage_id, 0)
     LIMIT 1)
    UNION ALL
    SELECT further.* FROM lanes CROSS JOIN LATERAL (
        SELECT owner_id, COALESCE(source_storage_id, 0), COALESCE(destination_storage_id, 0)
        FROM placement_placementrequest
        WHERE state IN ('received', 'rescheduled')
          AND (owner_id, COALESCE(source_storage_id, 0), COALESCE(destination_storage_id, 0))
              > (lanes.owner_id, lanes.source, lanes.destination)
        ORDER BY owner_id, COALESCE(source_storage_id, 0), COALESCE(destination_storage_id, 0)
        LIMIT 1) AS further
),
running AS MATERIALIZED (
    SELECT owner_id, COALESCE(source_storage_id, 0) AS source,
           COALESCE(destination_storage_id, 0) AS destination
    FROM placement_placementrequest WHERE state = 'processing'
),
measured_lanes AS (
    SELECT lanes.*, owners.mine, LEAST(
        CASE WHEN %(most_of_owner)s > 0 THEN %(most_of_owner)s - owners.mine END,
        CASE WHEN s.max_transfers IS NOT NULL THEN s.max_transfers - (
            SELECT count(*) FROM running
            WHERE lanes.source IN (running.source, running.destination)) END,
        CASE WHEN d.max_transfers IS NOT NULL THEN d.max_transfers - (
            SELECT count(*) FROM running
            WHERE lanes.destination IN (running.source, running.destination)) END,
        CASE WHEN COALESCE(s.max_link_transfers, d.max_link_transfers) IS NOT NULL
        THEN LEAST(s.max_link_transfers, d.max_link_transfers) - (
            SELECT count(*) FROM running
            WHERE (running.source, running.destination) IN (
                (lanes.source, lanes.destination), (lanes.destination, lanes.source))) END
    ) AS room
    FROM lanes
    CROSS JOIN LATERAL (
        SELECT count(*) AS mine FROM running WHERE running.owner_id = lanes.owner_id) AS owners
    LEFT JOIN placement_storage AS s ON s.id = lanes.source
    LEFT JOIN placement_storage AS d ON d.id = lanes.destination
    WHERE COALESCE(s.is_enabled, true) AND COALESCE(d.is_enabled, true)
),
open_lanes AS (SELECT * FROM measured_lanes WHERE room IS NULL OR room > 0)
SELECT first.id, open_lanes.room FROM open_lanes CROSS JOIN LATERAL (
    SELECT each.id FROM (
        (SELECT r.id FROM placement_placementrequest AS r
         WHERE r.state IN ('received', 'rescheduled') AND r.due_at IS NULL
           AND (r.owner_id, COALESCE(r.source_storage_id, 0),
                COALESCE(r.destination_storage_id, 0), r.id)
               >= (open_lanes.owner_id, open_lanes.source, open_lanes.destination, 0)
           AND (r.owner_id, COALESCE(r.source_storage_id, 0),
                COALESCE(r.destination_storage_id, 0))
               <= (open_lanes.owner_id, open_lanes.source, open_lanes.destination)
         ORDER BY r.owner_id, COALESCE(r.source_storage_id, 0),
                  COALESCE(r.destination_storage_id, 0), r.id LIMIT 1)
        UNION ALL
        (SELECT r.id FROM placement_placementrequest AS r
         WHERE r.state IN ('received', 'rescheduled') AND r.due_at <= %(now)s
           AND r.owner_id = open_lanes.owner_id
           AND COALESCE(r.source_storage_id, 0) = open_lanes.source
           AND COALESCE(r.destination_storage_id, 0) = open_lanes.destination
         ORDER BY r.due_at LIMIT 1)
    ) AS each ORDER BY each.id LIMIT 1
) AS first
ORDER BY open_lanes.mine, first.id LIMIT %(most)s
"""

# The next ones of one lane, by the same two indexes.
FIND_FURTHER = """
SELECT each.id FROM (
    (SELECT r.id FROM placement_placementrequest AS r
     WHERE r.state IN ('received', 'rescheduled') AND r.due_at IS NULL
       AND (r.owner_id, COALESCE(r.source_storage_id, 0),
            COALESCE(r.destination_storage_id, 0), r.id)
           >= (%(owner)s, %(source)s, %(destination)s, 0)
       AND (r.owner_id, COALESCE(r.source_storage_id, 0), COALESCE(r.destination_storage_id, 0))
           <= (%(owner)s, %(source)s, %(destination)s)
       AND r.id <> %(first)s
     ORDER BY r.owner_id, COALESCE(r.source_storage_id, 0), COALESCE(r.destination_storage_id, 0),
              r.id LIMIT %(most)s)
    UNION ALL
    (SELECT r.id FROM placement_placementrequest AS r
     WHERE r.state IN ('received', 'rescheduled') AND r.due_at <= %(now)s
       AND r.owner_id = %(owner)s AND COALESCE(r.source_storage_id, 0) = %(source)s
       AND COALESCE(r.destination_storage_id, 0) = %(destination)s AND r.id <> %(first)s
     ORDER BY r.due_at LIMIT %(most)s)
) AS each ORDER BY each.id LIMIT %(most)s
"""

# Open attempts that were granted together have succeeded; those that others have ended are left.
# The caller has locked the requests.
END_ATTEMPTS = one_line("""
UPDATE placement_placementattempt AS attempt
SET exit_code = 0, message = '', note = given.note, size_bytes = given.size,
    started_at = given.began, ended_at = given.ended
FROM unnest(%(ids)s::bigint[], %(sizes)s::bigint[], %(began)s::timestamptz[],
            %(ended)s::timestamptz[], %(notes)s::text[]) AS given(id, size, began, ended, note)
WHERE attempt.request_id = given.id AND attempt.exit_code IS NULL AND attempt.lease = %(lease)s
RETURNING attempt.request_id
""")

# How the latest attempts between ends did, by schemes; `placement_attempt_by_ends` is read from its
# end, as far as `most` for each. Those without an exit code of a module tell nothing of a way.
WAY_RECORDS = """
SELECT ends.source, ends.destination, latest.source_scheme, latest.destination_scheme,
       count(*), count(*) FILTER (WHERE latest.is_good),
       sum(latest.weight), COALESCE(sum(latest.weight) FILTER (WHERE latest.is_good), 0),
       COALESCE(sum(latest.weight * latest.size_bytes) FILTER (WHERE latest.is_good), 0),
       COALESCE(sum(latest.weight * latest.time_s) FILTER (WHERE latest.is_good), 0)
FROM unnest(%(sources)s::text[], %(destinations)s::text[]) AS ends(source, destination)
CROSS JOIN LATERAL (
    SELECT a.source_scheme, a.destination_scheme, a.exit_code = 0 AS is_good, a.size_bytes,
           EXTRACT(EPOCH FROM a.ended_at - a.started_at)::float8 AS time_s,
           power(0.5, GREATEST(EXTRACT(EPOCH FROM %(now)s - a.ended_at), 0)::float8
                      / %(half_life)s) AS weight
    FROM placement_placementattempt AS a
    WHERE a.source_end <> '' AND a.source_end = ends.source
      AND a.destination_end = ends.destination
      AND a.ended_at >= %(since)s AND a.exit_code >= 0
    ORDER BY a.ended_at DESC LIMIT %(most)s
) AS latest
GROUP BY 1, 2, 3, 4
"""
