"""What jobs share is stored once, and with each job only what differs."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.description.rendering import Identity, NodeContext, Renderer, SiteValues
from wms.jobs.description.submit_file import parse_submit_file
from wms.jobs.models import Job, JobDescription
from wms.jobs.operations import create_workspace, submission, submit_jobs
from wms.jobs.specs import JobSpec, SharedValues
from wms.jobs.writing.stored_descriptions import ids_by_key

SYSTEM = Actor.system("test")
FILE = """
executable = run.sh
arguments = --seed $(seed) $(Process)
transfer_input_files = common.dat, run.sh
environment = "A=1 B=2"
output = out.$(Cluster).$(Process)
+Phase = "one"
queue 3
"""


def spec(**values: Any) -> JobSpec:
    given = {"name": "a", "executable": "/bin/true", "needs": Needs.of("alice"), **values}
    return JobSpec(**given)


def submit(owner: User, specs: list[JobSpec]) -> list[int]:
    workspace = create_workspace(owner, {})
    return submit_jobs(specs, owner=owner, workspace=workspace, actor=SYSTEM)


@pytest.mark.django_db
def test_equal_specifications_have_one_description_and_nothing_of_their_own(alice: User) -> None:
    submit(alice, [spec(name=f"n{n}") for n in range(300)])
    submit(alice, [spec(name="later", arguments=())])

    assert JobDescription.objects.count() == 1
    assert set(Job.objects.values_list("own", flat=True)) == {None}


@pytest.mark.django_db
def test_one_is_not_true_in_a_description(alice: User) -> None:
    submit(alice, [spec(attributes={"A": value}) for value in (1, True, 1.0, "1")])

    found = [job.attributes["A"] for job in Job.objects.order_by("pk")]
    assert [type(value) for value in found] == [int, bool, float, str]


def the_renderer() -> Renderer:
    identity = Identity("alice")
    return Renderer(parse_submit_file(FILE, file="a.sub"), identity, SiteValues())


@pytest.mark.django_db
def test_nodes_with_one_submit_file_share_what_no_macro_changes(alice: User) -> None:
    renderer = the_renderer()
    workspace = create_workspace(alice, {})
    contexts = [
        NodeContext(node_name=f"n{n}", dag_id=7, variables={"seed": str(n)}) for n in range(3)
    ]
    made = [renderer.jobs(context) for context in contexts]
    with submission(
        owner=alice, workspace=workspace, actor=SYSTEM, topic="dag-jobs", topic_key=7
    ) as add:
        for specs in made:
            add(specs)

    description = JobDescription.objects.get()
    assert description.content["input_files"] == ["common.dat", "run.sh"]
    assert "arguments" not in description.content
    for job in Job.objects.order_by("pk"):
        seed = job.name[1:]
        assert set(job.own or {}) == {"arguments", "stdout_name"}
        assert job.arguments == ["--seed", seed, str(job.process)]
        assert job.stdout_name == f"out.{job.cluster_id}.{job.process}"
        assert job.environment == {"A": "1", "B": "2"}
        assert job.attributes["Phase"] == '"one"'
        assert job.attributes["DAGNodeName"] == job.name
        assert job.attributes["DAGManJobId"] == 7
        assert job.attributes["DAGManNodeRetry"] == 0


@pytest.mark.django_db
def test_a_job_is_what_its_specification_says_whatever_is_shared(alice: User) -> None:
    every = dict(
        arguments=("1",), environment={"B": "2"}, input_files=("i",), output_files=("o",),
        stdout_name="so", stderr_name="se", attributes={"B": 2}, wall_limit_s=5, max_retries=2,
        periodic={"hold": "true"}, directory="d", avoided_hosts=("h",),
        directives={"is_held": True},
        needs=Needs.of("alice", cores=2, memory_mb=10, sites=("x",)),
    )  # fmt: skip
    other = SharedValues.of(
        {**spec(**every).described(), "environment": {"A": "1"}, "attributes": {"A": 1, "B": 3}}
    )
    submit(alice, [spec(**every), spec(**every, shared=other), spec(shared=other), spec()])

    full, as_full, plain, as_plain = Job.objects.order_by("pk")
    for name in every:
        assert getattr(as_full, name) == getattr(full, name), name
        assert getattr(plain, name) == getattr(as_plain, name), name
    assert full.needs == every["needs"].as_dict()  # type: ignore[attr-defined]
    assert (full.has_periodic, plain.has_periodic) == (True, False)


@pytest.mark.django_db
def test_values_that_change_are_the_jobs_own(alice: User) -> None:
    submit(
        alice, [spec(attributes={"Kept": 1, "Phase": 1}), spec(attributes={"Kept": 1, "Phase": 1})]
    )
    first, second = Job.objects.order_by("pk")

    first.give(needs={**first.needs, "memory_mb": 9}, avoided_hosts=["h"])
    first.give_attributes({"Phase": 2})
    first.save()
    first.refresh_from_db()

    assert first.own == {
        "needs": {"memory_mb": 9}, "avoided_hosts": ["h"], "attributes": {"Phase": 2},
    }  # fmt: skip
    assert first.needs == {**second.needs, "memory_mb": 9}
    assert first.attributes == {"Kept": 1, "Phase": 2}
    assert second.attributes == {"Kept": 1, "Phase": 1}


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_another_who_writes_the_same_description() -> None:
    shared = SharedValues.of({"executable": "x"})
    found: list[int] = []

    def write() -> None:
        with transaction.atomic():
            found.extend(ids_by_key([shared]).values())
        connection.close()

    with transaction.atomic():
        [mine] = ids_by_key([shared]).values()
        other = threading.Thread(target=write)
        other.start()
        other.join(timeout=20)
        assert not other.is_alive()
    with transaction.atomic():
        [later] = ids_by_key([shared]).values()

    assert found[0] != mine == later
