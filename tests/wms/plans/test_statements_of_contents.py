from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from tests.wms.plans.query_plans import analyze, explain, indexes, rows_read, run, scanned_whole
from wms.core.models import User
from wms.jobs import sql
from wms.jobs.content import unnamed_contents
from wms.jobs.models import Blob, OutputLease, Workspace
from wms.jobs.sandboxes import sweep

LATER = timezone.now() + timedelta(days=2)


def test_what_names_contents_is_found_by_indexes(alice: User) -> None:
    workspace = Workspace.objects.create(owner=alice)
    run(
        "INSERT INTO jobs_blob (sha256, size_bytes)"
        " SELECT encode(sha256(n::text::bytea), 'hex'), n FROM generate_series(1, 100000) AS n"
    )
    run(
        "INSERT INTO jobs_workspacefile (workspace_id, path, blob_id)"
        " SELECT %s, sha256, sha256 FROM jobs_blob",
        [workspace.pk],
    )
    analyze("jobs_blob")
    analyze("jobs_workspacefile")
    keys = list(Blob.objects.order_by("pk").values_list("pk", flat=True)[:500])

    bare = Blob.objects.filter(~unnamed_contents._is_named(), pk__in=keys).query.sql_with_params()
    due = Blob.objects.filter(unnamed_since__lt=LATER).order_by("unnamed_since")[:500]

    for statement, parameters in (bare, due.query.sql_with_params()):
        steps = explain(statement, parameters)
        assert not scanned_whole(steps, "jobs_blob")
        assert not scanned_whole(steps, "jobs_workspacefile")
    steps = explain(sql.HOLD_CONTENT, {"sha256": keys[0]})
    assert not scanned_whole(steps, "jobs_blob")


def test_sizes_of_outputs_are_added_up_by_the_index_of_new_ones(alice: User) -> None:
    run(
        "INSERT INTO jobs_outputbytes (cluster_id, size_bytes, is_sum)"
        " SELECT n, n, true FROM generate_series(1, 50000) AS n"
    )
    run(
        "INSERT INTO jobs_outputbytes (cluster_id, size_bytes)"
        " SELECT n, n FROM generate_series(1, 1000) AS n"
    )
    analyze("jobs_outputbytes")

    steps = explain(sql.FOLD_OUTPUT_BYTES, {"most": 500})

    assert not scanned_whole(steps, "jobs_outputbytes")


def test_jobs_whose_outputs_go_next_are_read_without_the_others(alice: User) -> None:
    workspace = Workspace.objects.create(owner=alice)
    run(
        """
        INSERT INTO jobs_job (name, owner_id, workspace_id, state, state_reason, description_id,
            max_attempts, attempt_number, topic, topic_key, cluster_id, process)
        SELECT 'a', %s, %s, 'done', '', 0, 1, 1, 'cluster', n / 30000, n / 30000, n %% 30000
        FROM generate_series(30000, 89999) AS n
        """,
        [alice.pk, workspace.pk],
    )
    analyze("jobs_job")
    jobs = sweep._jobs_left(OutputLease(cluster_id=1, removed_before=20_000))

    steps = explain(*jobs[:500].query.sql_with_params())

    assert indexes(steps) == {"job_of_cluster_once"}
    assert rows_read(steps, "jobs_job") == 500
