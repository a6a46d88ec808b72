"""Clusters by the API: lists, progress, jobs, events and actions."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.wms.jobs.clusters.samples import PLAIN, SYSTEM, cycle, go_on, submit
from wms.core.models import User
from wms.jobs import lifecycle
from wms.jobs.models import Cluster, Job
from wms.taskqueues.operations import withdraw

URL = "/api/v1/clusters/"


@pytest.fixture
def cluster(people: SimpleNamespace) -> Cluster:
    """Six jobs, of which four are made."""
    limits = {"max_idle": 4, "name": "sweep", "labels": ["higgs"]}
    return go_on(submit(people.alice, f"{PLAIN}queue 6\n", options=limits).cluster)


def fail_one(cluster: Cluster) -> Job:
    job = Job.objects.filter(cluster_id=cluster.pk).order_by("process")[0]
    withdraw([job.pk])
    lifecycle.apply("match", [job.pk], actor=SYSTEM, attempt_number=1)
    lifecycle.apply("fail", [job.pk], actor=SYSTEM, reason="exit code 1", cause="payload")
    cycle(cluster)
    return job


def test_a_cluster_tells_its_progress(alice: APIClient, cluster: Cluster) -> None:
    shown = alice.get(f"{URL}{cluster.pk}/").json()

    assert shown["progress"] == {
        "size": 6, "not_yet_made": 2, "never_made": 0, "faulty": 0, "done": 0, "failed": 0,
        "killed": 0, "live": {"waiting": 4}, "ending": 0,
    }  # fmt: skip
    assert (shown["max_idle"], shown["labels"], shown["made"]) == (4, ["higgs"], 4)


def test_failures_are_counted_by_cause(alice: APIClient, cluster: Cluster) -> None:
    fail_one(cluster)

    shown = alice.get(f"{URL}{cluster.pk}/").json()

    assert shown["failure_causes"] == {"payload": 1}
    found = alice.get("/api/v1/jobs/", {"cluster": cluster.pk, "cause": "payload"}).json()
    assert len(found["results"]) == 1


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ({}, 1),
        ({"state": "active"}, 1),
        ({"state": "held"}, 0),
        ({"label": "higgs"}, 1),
        ({"label": "top"}, 0),
        ({"name": "swe"}, 1),
        ({"owner": "alice", "size": "5..7"}, 1),
        ({"owner": "bob"}, 0),
    ],
)
def test_clusters_are_filtered(
    alice: APIClient, cluster: Cluster, question: dict[str, Any], count: int
) -> None:
    assert len(alice.get(URL, question).json()["results"]) == count


def test_clusters_are_ordered(people: SimpleNamespace, alice: APIClient, cluster: Cluster) -> None:
    small = submit(people.alice, f"{PLAIN}queue 1\n").cluster

    found = alice.get(URL, {"sort": "-size", "page_size": 1}).json()

    assert [each["id"] for each in found["results"]] == [cluster.pk]
    [following] = alice.get(found["next"]).json()["results"]
    assert following["id"] == small.pk


def test_jobs_of_a_cluster_come_by_number(alice: APIClient, cluster: Cluster) -> None:
    page = alice.get(f"{URL}{cluster.pk}/jobs/", {"page_size": 3}).json()
    rest = alice.get(page["next"]).json()

    found = [*page["results"], *rest["results"]]
    assert [job["process"] for job in found] == [0, 1, 2, 3]
    assert {job["cluster_id"] for job in found} == {cluster.pk}
    listed = alice.get("/api/v1/jobs/", {"cluster": cluster.pk}).json()["results"]
    assert {job["id"] for job in listed} == {job["id"] for job in found}


def test_faulty_rows_are_told(people: SimpleNamespace, alice: APIClient, cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(next_process=5, faulty_count=1)
    cluster.faults.create(process=4, reason="too long")

    [fault] = alice.get(f"{URL}{cluster.pk}/faults/").json()["results"]

    assert fault == {"process": 4, "reason": "too long"}


def test_a_cluster_is_held_and_released(alice: APIClient, cluster: Cluster) -> None:
    held = alice.post(f"{URL}{cluster.pk}/hold/", {"reason": "look"}, format="json")
    released = alice.post(f"{URL}{cluster.pk}/release/", format="json")

    assert (held.json()["state"], released.json()["state"]) == ("held", "active")
    events = alice.get(f"{URL}{cluster.pk}/events/").json()["results"]
    assert [event["event"] for event in events] == ["release", "hold", "submit"]


def test_what_the_state_forbids_is_a_conflict(alice: APIClient, cluster: Cluster) -> None:
    answer = alice.post(f"{URL}{cluster.pk}/release/", format="json")

    assert answer.status_code == 409


def test_needs_of_all_jobs_are_changed(alice: APIClient, cluster: Cluster) -> None:
    change = {"reason": "larger", "memory_mb": 4000, "sites": ["UW"]}

    answer = alice.post(f"{URL}{cluster.pk}/change/", change, format="json")

    assert answer.status_code == 200, answer.content
    assert answer.json()["overrides"] == {"memory_mb": 4000, "sites": ["UW"]}


def test_priority_and_limits_are_changed(alice: APIClient, cluster: Cluster) -> None:
    alice.post(f"{URL}{cluster.pk}/prioritise/", {"reason": "x", "priority": 7}, format="json")
    answer = alice.post(f"{URL}{cluster.pk}/limits/", {"reason": "x", "max_idle": 9}, format="json")

    assert (answer.json()["overrides"], answer.json()["max_idle"]) == ({"priority": 7}, 9)


def test_failed_jobs_run_again_with_other_needs(alice: APIClient, cluster: Cluster) -> None:
    job = fail_one(cluster)
    body = {"reason": "more memory", "memory_mb": 8000, "banned_sites": ["UW"]}

    answer = alice.post(f"{URL}{cluster.pk}/rerun/", body, format="json")

    assert answer.status_code == 201, answer.content
    rerun = answer.json()
    assert (rerun["previous"], rerun["size"]) == (cluster.pk, 1)
    assert rerun["overrides"] == {"memory_mb": 8000, "banned_sites": ["UW"]}
    go_on(Cluster.objects.get(pk=rerun["id"]))
    assert Job.objects.get(cluster_id=rerun["id"]).process == job.process


def test_a_cluster_without_failures_is_not_run_again(alice: APIClient, cluster: Cluster) -> None:
    answer = alice.post(f"{URL}{cluster.pk}/rerun/", {"reason": "x"}, format="json")

    assert answer.status_code == 409


def test_a_removed_cluster_tells_what_was_never_made(alice: APIClient, cluster: Cluster) -> None:
    answer = alice.post(f"{URL}{cluster.pk}/remove/", {"reason": "enough"}, format="json")
    cycle(cluster)

    assert answer.json()["state"] == "removed"
    progress = alice.get(f"{URL}{cluster.pk}/").json()["progress"]
    assert (progress["never_made"], progress["killed"]) == (2, 4)


def test_others_look_and_do_not_touch(
    people: SimpleNamespace, as_user: Callable[[User], APIClient], cluster: Cluster
) -> None:
    bob = as_user(people.bob)

    assert bob.get(f"{URL}{cluster.pk}/").status_code == 200
    answer = bob.post(f"{URL}{cluster.pk}/hold/", {"reason": "look"}, format="json")
    assert answer.status_code == 403


@pytest.mark.parametrize("part", ["", "jobs/", "faults/", "events/", "description"])
def test_an_unknown_cluster_is_not_found(alice: APIClient, part: str) -> None:
    assert alice.get(f"{URL}999999/{part}").status_code == 404
