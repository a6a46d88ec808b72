"""Submitting jobs without a DAG: very many in a few statements, each as it was described."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest
from django.db import DataError, connection, transaction
from django.test.utils import CaptureQueriesContext

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.models import Job, LoggedJobEvent
from wms.jobs.operations import create_workspace, submission
from wms.jobs.specs import JobSpec
from wms.jobs.writing import job_writer
from wms.taskqueues.models import Tally, TaskQueue, WaitingJob


def submit(
    owner: User, specs: Sequence[JobSpec], clusters: Sequence[int] = (), **more: Any
) -> list[int]:
    """Submit jobs, `clusters[i]` of them as the i-th list, or each for itself."""
    workspace, actor = create_workspace(owner, {}), Actor.person(owner)
    left = iter(specs)
    with submission(owner=owner, workspace=workspace, actor=actor, **more) as add:
        return [pk for size in clusters or [1] * len(specs) for pk in add([*islice(left, size)])]


def spec(name: str = "a", **values: Any) -> JobSpec:
    needs = Needs.of("alice", **values.pop("needs", {}))
    return JobSpec(name=name, executable="run.sh", needs=needs, **values)


def test_a_job_is_stored_as_it_was_described(alice: User) -> None:
    described = spec(
        "näme \\ \"'",
        needs={"tags": ["x"], "requirements": 'Machine == "n"', "cores": 2},
        arguments=("a b", 'quo"te', "back\\slash", "{}", "", "NULL"),
        environment={"A": "1", "B": "ü\n"},
        input_files=("in,1", "in 2"),
        output_files=("out",),
        stdout_name="out.txt",
        stderr_name="err.txt",
        attributes={"Any": "thing", "n": 1},
        wall_limit_s=60,
        max_attempts=2,
        priority=7,
    )

    [pk] = submit(alice, [described], topic="dag", topic_key=5)

    job = Job.objects.get(pk=pk)
    assert (job.name, job.executable) == (described.name, "run.sh")
    assert tuple(job.arguments) == described.arguments
    assert job.environment == described.environment
    assert tuple(job.input_files) == described.input_files
    assert job.output_files == ["out"]
    assert (job.stdout_name, job.stderr_name) == ("out.txt", "err.txt")
    assert Needs.from_dict(job.needs) == described.needs
    assert job.attributes == described.attributes
    assert (job.wall_limit_s, job.max_attempts, job.priority) == (60, 2, 7)
    assert (job.state, job.state_reason, job.attempt_number) == ("waiting", "", 0)
    assert (job.owner, job.topic, job.topic_key) == (alice, "dag", 5)
    assert WaitingJob.objects.get(job_id=pk).priority == 7


def test_a_submitted_job_has_the_event_of_its_transition(alice: User) -> None:
    [pk] = submit(alice, [spec()])

    event = LoggedJobEvent.objects.get(job_id=pk)
    assert (event.event, event.from_state, event.to_state) == ("enqueue", "received", "waiting")
    assert (event.actor, event.reason, event.facts) == ("alice", "", {})


def test_the_ids_are_in_the_order_of_the_specs_and_rise(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_writer, "_BATCH", 3)

    ids = submit(alice, [spec(f"n{n}", needs={"memory_mb": n % 2}) for n in range(10)])

    assert ids == sorted(ids)
    names = dict(Job.objects.values_list("pk", "name"))
    assert [names[pk] for pk in ids] == [f"n{n}" for n in range(10)]
    assert {Needs.from_dict(job.needs).memory_mb for job in Job.objects.filter(name="n3")} == {1}


def test_jobs_wait_in_the_task_queues_of_their_needs_and_are_counted_there(alice: User) -> None:
    submit(alice, [spec(needs={"memory_mb": n % 3}) for n in range(30)])

    assert TaskQueue.objects.count() == 3
    assert sum(Tally.objects.values_list("jobs", flat=True)) == 30
    for queue in TaskQueue.objects.all():
        ids = WaitingJob.objects.filter(task_queue=queue).values("job_id")
        needs = [job.needs["memory_mb"] for job in Job.objects.filter(pk__in=ids)]
        assert needs == [queue.memory_mb] * 10


def test_the_statements_do_not_grow_with_the_jobs(alice: User) -> None:
    counts = []
    for size in (1, 1000):
        with CaptureQueriesContext(connection) as queries:
            submit(alice, [spec(needs={"memory_mb": n % 50}) for n in range(size)], expected=size)
        counts.append(len(queries))

    # One more for every 125 jobs.
    assert counts[0] < 30
    assert counts[1] == counts[0] + (1000 // 125 - 1)


def test_no_jobs_are_no_fault(alice: User) -> None:
    assert submit(alice, []) == []


def test_of_jobs_one_of_which_cannot_be_stored_none_is(alice: User) -> None:
    with pytest.raises(DataError), transaction.atomic():
        submit(alice, [spec(), spec("zero\0byte")])

    assert not Job.objects.exists()
    assert not WaitingJob.objects.exists()


def test_jobs_of_a_list_know_their_cluster_and_their_place_in_it(alice: User) -> None:
    ids = submit(alice, [spec() for _ in range(4)], clusters=[1, 3])

    places = Job.objects.order_by("pk").values_list("cluster_id", "process")
    assert list(places) == [(ids[0], 0), (ids[1], 0), (ids[1], 1), (ids[1], 2)]


def test_jobs_that_belong_to_no_list_are_clusters_of_their_own(alice: User) -> None:
    ids = submit(alice, [spec(), spec()])

    places = Job.objects.order_by("pk").values_list("cluster_id", "process")
    assert list(places) == [(ids[0], 0), (ids[1], 0)]


def test_a_list_that_is_longer_than_was_expected_has_ids_in_a_row_of_its_own(alice: User) -> None:
    ids = submit(alice, [spec() for _ in range(7)], clusters=[1, 5, 1], expected=3)

    assert ids == sorted(ids)
    places = Job.objects.order_by("pk").values_list("cluster_id", "process")
    assert list(places) == [(ids[0], 0), *((ids[1], n) for n in range(5)), (ids[6], 0)]


def test_what_decides_about_a_job_in_the_queue_is_stored_with_it(alice: User) -> None:
    described = spec(max_retries=3, periodic={"hold": "NumHolds == 0"})

    submit(alice, [described, spec()])

    job, plain = Job.objects.order_by("pk")
    assert (job.max_retries, job.periodic) == (3, described.periodic)
    assert (plain.max_retries, plain.periodic) == (0, None)
