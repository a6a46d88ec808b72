"""SQL of the director: free capacity of all living pilots."""

from __future__ import annotations

# By hand, because every cycle counts all living pilots: their rooms are computed where they are.
# What a pilot offers is its queue's offer, cut to what its batch system really gave it; the time
# that it has left is cut to one of the times that jobs need, so that there are few kinds of
# rooms. Where each pilot is private to somebody else, they are told apart by owner and group. The
# attempts are found by `attempt_open_by_kind`, which holds the open ones only; the pilots of each
# queue by `pilot_by_queue_and_state`. A test pilot that takes no jobs meets no demand: it is there,
# and counts as busy; so does one that has its jobs from another installation.
COUNT_FREE_CAPACITY = """
SELECT pilot.queue_id, pilot.frontend_id,
       pilot.state IN ('submitted', 'queued') AND pilot.test <> 'checks' AS is_waiting,
       pilot.batch_state = 'held' AS is_held,
       held.pilot_id IS NOT NULL OR pilot.test = 'checks' OR pilot.is_remote AS is_busy,
       pilot.state = 'running' AND NOT pilot.is_remote AND NOT pilot.is_draining
           AND pilot.drain_reason = ''
           AND CASE WHEN has_owners THEN pilot.owner_id IS NOT NULL
               ELSE pilot.owner_id IS NOT DISTINCT FROM queue.owner_id
                   AND pilot.owner_group_id IS NOT DISTINCT FROM queue.owner_group_id END
           AND (queue.site_id, coalesce(pilot.node->>'hostname', '')) NOT IN (
               SELECT site_id, host FROM pilots_suspectednode WHERE ended_at IS NULL
           ) AS takes_jobs,
       least(queue.cores, (pilot.node->>'slot_cores')::numeric)::int - coalesce(held.cores, 0),
       least(queue.memory_mb, (pilot.node->>'slot_memory_mb')::numeric)::int
           - coalesce(held.memory_mb, 0),
       least(queue.gpus, (pilot.node->>'slot_gpus')::numeric)::int - coalesce(held.gpus, 0),
       width_bucket(
           coalesce((pilot.published->'benchmark'->>'CpuPower')::numeric, queue.cpu_power::numeric)
           * least(
               queue.wall_time_s - extract(epoch FROM %(now)s - pilot.registered_at),
               (pilot.node->>'ends_at')::numeric - extract(epoch FROM %(now)s::timestamptz)
           ), %(times_s)s
       ),
       CASE WHEN has_owners THEN pilot.owner_id END,
       CASE WHEN has_owners THEN pilot.owner_group_id END,
       count(*), count(*) FILTER (WHERE pilot.registered_at > %(lately)s)
FROM pilots_pilot AS pilot
JOIN (
    SELECT *, is_private AND owner_id IS NULL AS has_owners FROM sites_queue
) AS queue ON queue.id = pilot.queue_id
LEFT JOIN (
    SELECT pilot_id, sum(cores) AS cores, sum(memory_mb) AS memory_mb, sum(gpus) AS gpus
    FROM jobs_attempt WHERE outcome = '' GROUP BY pilot_id
) AS held ON held.pilot_id = pilot.id
WHERE pilot.state IN ('submitted', 'queued', 'running', 'stalled')
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
"""
