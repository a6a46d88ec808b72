"""SQL of clusters: takes the events of a cluster's jobs from the inbox and counts them."""

from __future__ import annotations

# How often which event was told of the jobs of a cluster, taken out of its inbox. By hand, because
# the ORM cannot tell what it has removed, and thousands of events need not travel to be counted.
# The entries are found by `inbox_topic_key`, the events by their primary key.
TAKE_EVENTS = """
WITH taken AS (
    DELETE FROM core_inboxentry
    WHERE id IN (
        SELECT id FROM core_inboxentry WHERE topic = %(topic)s AND key = %(key)s
        ORDER BY id LIMIT %(most)s
    )
    RETURNING subject_id
)
SELECT coalesce(event.event, ''), count(*)
FROM taken LEFT JOIN jobs_jobevent AS event ON event.id = taken.subject_id
GROUP BY 1
"""
