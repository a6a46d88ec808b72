"""The plan by which the materialiser takes what was told of a cluster's jobs."""

from __future__ import annotations

import pytest

from tests.wms.plans.query_plans import analyze, explain, indexes, rows_read, run, scanned_whole
from wms.jobs.clusters import sql as clusters
from wms.jobs.models import Job, JobEvent
from wms.jobs.selectors import of_clusters

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_the_events_of_one_cluster_are_counted_without_reading_others(jobs: None) -> None:
    first = JobEvent.objects.earliest("pk").pk
    run(
        "INSERT INTO core_inboxentry (topic, key, kind, subject_id)"
        " SELECT 'cluster', n / 10, 'job event', %s + n FROM generate_series(1, 50000) AS n",
        [first],
    )
    analyze("core_inboxentry")

    steps = explain(clusters.TAKE_EVENTS, {"topic": "cluster", "key": 500, "most": 5000})

    for table in ("core_inboxentry", "jobs_jobevent"):
        assert not scanned_whole(steps, table)
    assert rows_read(steps, "core_inboxentry") == 20
    assert rows_read(steps, "jobs_jobevent") <= 10


def test_the_jobs_of_lists_are_found_by_two_indexes(jobs: None) -> None:
    first = Job.objects.earliest("pk").pk
    run("UPDATE jobs_job SET cluster_id = id - (id - %s) %% 4", [first])
    analyze("jobs_job")
    found = Job.objects.filter(of_clusters([first, first + 8]))

    steps = explain(*found.query.sql_with_params())

    places = sorted(job.pk - first for job in found)
    assert places == [0, 1, 2, 3, 8, 9, 10, 11]
    assert indexes(steps) == {"jobs_job_pkey", "job_by_cluster"}
