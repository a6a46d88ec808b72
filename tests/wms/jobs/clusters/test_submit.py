"""Submitting clusters: what is stored of them, and the jobs that small ones have at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.wms.jobs.clusters.samples import go_on, submit
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.known_contents import KnownContent
from wms.core.models import User
from wms.core.storage.contents import FileContent
from wms.jobs.clusters import checking
from wms.jobs.clusters.submit import ClusterSubmission, submit_cluster
from wms.jobs.models import Cluster, Job

TRUE = "executable = /bin/true\n"


def test_one_job_is_a_cluster_of_one(alice: User) -> None:
    cluster = submit(alice, f"{TRUE}queue\n").cluster

    [job] = Job.objects.filter(cluster_id=cluster.pk)
    assert (job.executable, job.process) == ("/bin/true", 0)
    assert (job.topic, job.topic_key) == ("cluster", cluster.pk)
    assert (cluster.size, cluster.next_process, cluster.state) == (1, 1, "active")
    assert cluster.pk != job.pk


def test_rows_of_a_file_become_jobs(alice: User) -> None:
    text = "executable = run.sh\narguments = $(a) $(b) $(Process) $(Cluster)\n"
    files = {"run.sh": "x", "t.txt": "# head\n1, x\n\n2, y\n"}
    cluster = submit(alice, f"{text}queue 2 a, b from t.txt\n", files).cluster

    jobs = Job.objects.filter(cluster_id=cluster.pk).order_by("process")
    number = str(cluster.pk)
    assert [job.arguments for job in jobs] == [
        ["1", "x", "0", number],
        ["1", "x", "1", number],
        ["2", "y", "2", number],
        ["2", "y", "3", number],
    ]


def test_a_table_that_came_by_an_upload_is_read_only_up_to_the_size_of_a_request(
    alice: User, settings: Any, tmp_path: Path
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 1000}
    # Nothing is there to be read.
    table = KnownContent(
        FileContent(tmp_path / "none"), size_bytes=1001, sha256="0" * 64, upload_id=1
    )
    submission = ClusterSubmission(f"{TRUE}queue a from t\n", files={"t": table})

    with pytest.raises(InvalidInput) as refused:
        submit_cluster(submission, owner=alice, actor=Actor.person(alice))

    [fault] = refused.value.findings
    assert (fault.line, "1001" in fault.message) == (2, True)


def test_json_is_read_like_submit_language(alice: User) -> None:
    description = {
        "executable": "/bin/echo",
        "arguments": ["$(x) it's", '"q"'],
        "memory_mb": 100,
        "sites": ["A"],
        "environment": {"K": "$(y)"},
        "retries": 2,
        "name": "sweep",
        "labels": ["l"],
        "parameters": {"columns": ["x", "y"], "rows": [["1", "a b"], {"x": 2, "y": "c"}]},
    }
    cluster = submit(alice, description).cluster

    jobs = list(Job.objects.filter(cluster_id=cluster.pk).order_by("process"))
    assert [job.arguments for job in jobs] == [["1 it's", '"q"'], ["2 it's", '"q"']]
    assert [job.environment for job in jobs] == [{"K": "a b"}, {"K": "c"}]
    assert (jobs[0].needs["memory_mb"], jobs[0].needs["sites"]) == (100, ["A"])
    assert (jobs[0].name, cluster.labels, jobs[0].max_retries) == ("sweep", ["l"], 2)


@pytest.mark.parametrize(
    ("text", "table", "places"),
    [
        ("arguments = $(c)\nqueue a,b from t\n", "1,2\n", [("job.sub", 2)]),
        ("queue a,b from t\n", "1,2\n3\n4,5,6\n7,8\n", [("t", 2), ("t", 3)]),
        ("arguments = \"'$(a)'\"\nqueue a from t\n", "1\nit's\n", [("t", 2)]),
        ("transfer_input_files = x\nqueue\n", "", [("job.sub", 2)]),
        ("queue a from u\n", "", [("job.sub", 2)]),
        ("queue 200000000\n", "", [("job.sub", 2)]),
        ("queue 2 a in ()\n", "", [("job.sub", 2)]),
        ("queue a from t\n", "1\n2\0\n", [("t", 2)]),
    ],
)  # fmt: skip
def test_faults_have_their_places(
    alice: User, text: str, table: str, places: list[tuple[str, int]]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        submit(alice, TRUE + text, {"t": table})

    assert [(each.file, each.line) for each in refused.value.findings] == places
    assert not Cluster.objects.exists()


def test_ten_million_are_one_row(alice: User) -> None:
    cluster = submit(alice, f"{TRUE}queue 10000000\n").cluster

    assert (cluster.size, cluster.next_process) == (10_000_000, 0)
    assert not Job.objects.exists()


def test_jobs_of_a_sweep_share_one_description(alice: User) -> None:
    text = "environment = A=1\narguments = $(Process)\nrequest_memory = 5\nqueue 50\n"
    cluster = submit(alice, TRUE + text).cluster

    jobs = Job.objects.filter(cluster_id=cluster.pk).order_by("process")
    assert len({job.description_id for job in jobs}) == 1
    assert [job.own for job in jobs] == [{"arguments": [str(place)]} for place in range(50)]
    assert all(job.environment == {"A": "1"} for job in jobs)


def test_references_to_the_site_are_left_to_the_claim(alice: User) -> None:
    cluster = submit(alice, f"{TRUE}arguments = $$(Name) $(Process)\nqueue\n").cluster

    [job] = Job.objects.filter(cluster_id=cluster.pk)
    assert (list(job.arguments), job.late["texts"]) == ([], {"arguments": "$$(Name) 0"})


def test_they_cannot_be_where_they_are_needed_before(alice: User) -> None:
    with pytest.raises(InvalidInput) as refused:
        submit(alice, f"{TRUE}request_memory = $$(Memory)\nqueue\n")

    assert [each.line for each in refused.value.findings] == [2]


def test_jobs_made_at_once_have_not_too_many_different_needs(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "MAX_DIFFERENT_NEEDS", 2)
    description = "executable = /bin/true\nrequest_memory = $(m)\nqueue m from t\n"

    submit(alice, description, {"t": "1\n2\n2\n"}, options={"eager": True})
    with pytest.raises(InvalidInput) as refused:
        submit(alice, description, {"t": "1\n2\n3\n"}, options={"eager": True})

    assert [each.field for each in refused.value.findings] == ["eager"]
    assert submit(alice, description, {"t": "1\n2\n3\n"}, options={"eager": False}).is_new


@pytest.mark.parametrize("eager", [True, False])
def test_a_row_of_which_macros_leave_nothing_is_a_row_all_the_same(
    alice: User, eager: bool
) -> None:
    rows = [f"r{number}" for number in range(1_200)]
    rows[3:5] = ["$(nothing)", "$(remark)"]
    lines = ["executable = /bin/true", "nothing =", "remark = #x", "arguments = $(a)"]
    text = "\n".join([*lines, "queue a from (", *rows, ")"]) + "\n"

    cluster = go_on(submit(alice, text, options={"eager": eager}).cluster)

    jobs = Job.objects.filter(cluster_id=cluster.pk).select_related("description")
    made = [job.arguments for job in jobs.order_by("process")]
    assert made[2:6] == [["r2"], [], ["#x"], ["r5"]]
    assert (len(made), made[-1]) == (1_200, ["r1199"])


@pytest.mark.parametrize("row", ["$(nothing)", "$(remark)"])
def test_a_row_of_many_values_of_which_macros_leave_none_is_a_fault(alice: User, row: str) -> None:
    lines = ["executable = /bin/true", "nothing =", "remark = # x", "queue a, b from (", "1 2", row]

    with pytest.raises(InvalidInput) as refused:
        submit(alice, "\n".join([*lines, ")"]) + "\n")

    assert [each.line for each in refused.value.findings] == [4]


def test_commands_that_are_options_may_have_macros(alice: User) -> None:
    text = (
        "executable = /bin/true\nkind = masses\nn = 3\nbatch_name = $(kind)-$(Cluster)\n"
        "max_idle = 1$(n)\nqueue\n"
    )

    cluster = submit(alice, text).cluster

    assert (cluster.name, cluster.max_idle) == (f"masses-{cluster.pk}", 13)


@pytest.mark.parametrize(
    "command", ["batch_name = n$(Process)", "accounting_group = $(a)", "max_idle = $(a)"]
)
def test_commands_that_are_options_have_no_value_of_a_job(alice: User, command: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        submit(alice, f"executable = /bin/true\n{command}\nqueue a in (1 2)\n")

    assert [each.line for each in refused.value.findings] == [2]


def test_files_of_a_checkpoint_that_depend_on_the_site_are_a_fault(alice: User) -> None:
    text = "executable = /bin/true\ncheckpoint_exit_code = 85\ntransfer_output_files = $$(Name)\n"

    with pytest.raises(InvalidInput):
        submit(alice, f"{text}queue\n")

    submit(alice, f"{text}transfer_checkpoint_files = state\nqueue\n")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "executable = no.sh\nrequest_memory = a\nrequest_cpus = b\nqueue x from no.txt\n",
            [4, 3, 2, 1],
        ),
        ("+x = (\nexecutable = gone.sh\npriority = high\nqueue\n", [1, 3, 2]),
        ("executable = $(prog)\nrequest_cpus = two\nqueue\n", [1, 2]),
        ("arguments = 1\nexecutble = run.sh\nqueue\n", [2]),
        ("executable gone.sh\nrequest_cpus = two\nqueue\n", [1]),
    ],
)
def test_all_faults_of_a_description_are_told_at_once_and_none_that_only_follows(
    alice: User, text: str, lines: list[int]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        submit(alice, text)

    assert [each.line for each in refused.value.findings] == lines
