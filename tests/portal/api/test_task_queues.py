"""TaskQueues, their policy, and running limits through the API."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from matching.task_queues.needs import Needs
from tests import factories
from wms.accounting.models import AccountingGroup
from wms.accounting.services import save_group
from wms.core.models import AuditEntry, User
from wms.jobs.models import RunningLimit
from wms.sites.models import Queue
from wms.taskqueues import priorities
from wms.taskqueues.models import TaskQueue, TaskQueuePolicy
from wms.taskqueues.operations import Entry, enqueue

QUEUES = "/api/v1/task-queues/"
POLICY = "/api/v1/task-queue-policy/"
LIMITS = "/api/v1/running-limits/"
SETTINGS: dict[str, Any] = {
    "cpu_segments_s": [500, 5000],
    "law": "uniform",
    "default_share": 2000.0,
    "uses_feedback": True,
    "max_correction": 2.0,
}


@pytest.fixture
def olga(people: SimpleNamespace, as_user: Callable[[User], APIClient]) -> APIClient:
    """The operator at the API."""
    return as_user(people.olga)


def _fill(owner: str, first_job: int, jobs: int = 1, *, priority: int = 1, **needs: object) -> int:
    """A TaskQueue with jobs of these ids."""
    wanted = Needs.of(owner, **needs)  # type: ignore[arg-type]
    enqueue([Entry(first_job + number, wanted, priority) for number in range(jobs)])
    return TaskQueue.objects.get(key=wanted.key()).pk


def test_a_list_tells_needs_jobs_and_parts_in_the_draws(alice: APIClient) -> None:
    few = _fill("alice", 1, 2, owner_group="physics", sites=["UW"], gpus=1)
    many = _fill("alice", 10, 6)
    priorities.recompute()

    first, second = alice.get(QUEUES).json()["results"]

    assert (first["id"], second["id"]) == (many, few)
    assert (second["waiting_jobs"], second["priority"], second["share"]) == (2, 1000, 0.5)
    assert (
        second["needs"] == Needs.of("alice", owner_group="physics", sites=["UW"], gpus=1).as_dict()
    )
    assert second["oldest_at"] is not None


@pytest.mark.parametrize("sort", ["-waiting", "oldest", "-priority", "waiting"])
def test_pages_lead_from_one_to_the_next(alice: APIClient, sort: str) -> None:
    made = {_fill("alice", 10 * number, 1 + number % 2, memory_mb=number) for number in range(1, 8)}

    walked: list[int] = []
    address = f"{QUEUES}?sort={sort}&page_size=3&owner=alice"
    while address:
        page = alice.get(address).json()
        walked += [line["id"] for line in page["results"]]
        address = page["next"]

    assert len(walked) == 7
    assert set(walked) == made


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("cursor=made-up", "cursor"),
        ("page_size=0", "page_size"),
        ("sort=size", "sort"),
        ("cpu_time_s=0", "cpu_time_s"),
        ("queue=short", "queue"),
        ("tag=a%00", "tag"),
    ],
)
def test_a_bad_parameter_is_refused_with_its_name(alice: APIClient, query: str, field: str) -> None:
    answer = alice.get(f"{QUEUES}?{query}")

    assert answer.status_code == 400
    assert [finding["field"] for finding in answer.json()["findings"]] == [field]


def test_the_filters_are_those_of_the_page(alice: APIClient) -> None:
    pk = _fill("bob", 1, tags=["ssd"], job_type="User")
    _fill("alice", 2)

    for query in ("owner=bob", "tag=ssd", "job_type=User", "site=UW&owner=bob"):
        assert [line["id"] for line in alice.get(f"{QUEUES}?{query}").json()["results"]] == [pk]


def test_one_tells_where_it_can_run_and_how_its_priority_came_about(alice: APIClient) -> None:
    factories.site("UW", queues=["short", "long"])
    Queue.objects.filter(name="long").update(memory_mb=20_000)
    save_group(AccountingGroup(name="physics", share=600), actor=factories.SYSTEM)
    pk = _fill("alice", 5, 12, priority=2, owner_group="physics", memory_mb=10_000)
    priorities.recompute()

    told = alice.get(f"{QUEUES}{pk}/").json()

    fits = {fit["queue"]: fit["refusal"] for fit in told["queues"]}
    assert fits["long"] == ""
    assert {"10000", "4000"} <= set(fits["short"].split())
    assert (told["verdict"], told["unknown"]) == ("waiting its turn", [])
    assert told["origin"]["group_share"] == 600
    assert told["priorities"] == [{"priority": 2, "jobs": 12, "weight": 2.0, "part": 1.0}]
    assert [line["job"] for line in told["oldest"]] == list(range(5, 15))
    assert (told["id"], told["waiting_jobs"], told["share"]) == (pk, 12, 1.0)


def test_one_that_is_not_there_is_not_found(alice: APIClient) -> None:
    assert alice.get(f"{QUEUES}1/").status_code == 404


def test_everybody_reads_the_policy_and_operators_set_it(alice: APIClient, olga: APIClient) -> None:
    assert alice.get(POLICY).json()["cpu_segments_s"] == [500, 5000, 50_000, 300_000]
    assert alice.put(POLICY, SETTINGS, format="json").status_code == 403
    assert not TaskQueuePolicy.objects.exists()

    answer = olga.put(POLICY, SETTINGS, format="json")

    assert (answer.status_code, answer.json()) == (200, SETTINGS)
    assert alice.get(POLICY).json() == SETTINGS
    assert AuditEntry.objects.get(actor="olga").target == "TaskQueue policy"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"cpu_segments_s": [5000, 500]}, "cpu_segments_s"),
        ({"cpu_segments_s": []}, "cpu_segments_s"),
        ({"cpu_segments_s": [0]}, "cpu_segments_s.0"),
        ({"law": "dice"}, "law"),
        ({"default_share": -1}, "default_share"),
        ({"default_share": None}, "default_share"),
        ({"default_share": "nan"}, "default_share"),
        ({"half_life": 3}, "half_life"),
    ],
)
def test_a_fault_of_the_policy_is_told_with_its_field(
    olga: APIClient, values: dict[str, Any], field: str
) -> None:
    answer = olga.put(POLICY, SETTINGS | values, format="json")

    assert answer.status_code == 400
    assert field in {finding["field"] for finding in answer.json()["findings"]}
    assert not TaskQueuePolicy.objects.exists()


def test_the_policy_is_set_as_a_whole(olga: APIClient) -> None:
    answer = olga.put(POLICY, {"law": "uniform"}, format="json")

    assert answer.status_code == 400
    assert len(answer.json()["findings"]) == 4


def test_a_running_limit_is_made_read_changed_and_deleted(
    alice: APIClient, olga: APIClient, people: SimpleNamespace
) -> None:
    site = factories.site("T2_X")
    factories.job(people.alice)
    factories.claim(factories.pilot(site.queues.get()))

    made = olga.post(LIMITS, {"site": "T2_X", "maximum": 50, "note": "disk"}, format="json")
    address = f"{LIMITS}{made.json()['id']}/"
    seen = alice.get(address).json()
    changed = olga.put(address, {"job_type": "User", "min_interval_s": 2.5}, format="json")
    listed = alice.get(LIMITS).json()["results"]
    gone = olga.delete(address)

    assert made.status_code == 201
    assert (seen["site"], seen["maximum"], seen["running"]) == ("T2_X", 50, 1)
    assert changed.status_code == 200
    assert (listed[0]["site"], listed[0]["job_type"], listed[0]["maximum"]) == (None, "User", None)
    assert listed[0]["min_interval_s"] == 2.5
    assert gone.status_code == 204
    assert not RunningLimit.objects.exists()
    assert AuditEntry.objects.filter(actor="olga").count() == 3


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "maximum"),
        ({"maximum": -1}, "maximum"),
        ({"maximum": 10**12}, "maximum"),
        ({"maximum": 1, "site": "Nowhere"}, "site"),
        ({"maximum": 1, "owner_group": "nobody"}, "owner_group"),
        ({"maximum": 1, "site": "a\0"}, "site"),
        ({"maximum": 1, "job_type": "a\0"}, "job_type"),
        ({"min_interval_s": 1e9}, "min_interval_s"),
        ({"min_interval_s": "nan"}, "min_interval_s"),
        ({"maximum": 1, "jobtype": "User"}, "jobtype"),
    ],
)
def test_a_fault_of_a_running_limit_is_told_with_its_field(
    olga: APIClient, values: dict[str, Any], field: str
) -> None:
    answer = olga.post(LIMITS, values, format="json")

    assert answer.status_code == 400
    assert field in {finding["field"] for finding in answer.json()["findings"]}
    assert not RunningLimit.objects.exists()


def test_a_misspelt_field_is_answered_with_those_that_can_be_set(olga: APIClient) -> None:
    answer = olga.post(LIMITS, {"jobtype": "User"}, format="json")

    [finding] = answer.json()["findings"]
    assert finding["field"] == "jobtype"
    assert "site, job_type, owner_group" in finding["message"]


def test_a_second_limit_for_the_same_is_refused(olga: APIClient) -> None:
    olga.post(LIMITS, {"maximum": 5}, format="json")

    assert olga.post(LIMITS, {"maximum": 6}, format="json").status_code == 400


def test_only_operators_change_running_limits(alice: APIClient) -> None:
    limit = RunningLimit.objects.create(maximum=5)
    address = f"{LIMITS}{limit.pk}/"

    refused = [
        alice.post(LIMITS, {"maximum": 1, "job_type": "User"}, format="json"),
        alice.put(address, {"maximum": 1}, format="json"),
        alice.delete(address),
    ]

    assert [answer.status_code for answer in refused] == [403, 403, 403]
    assert RunningLimit.objects.get().maximum == 5


def test_groups_tell_their_share_in_the_draws(alice: APIClient) -> None:
    group = AccountingGroup(name="physics", share=600, has_job_sharing=True)
    save_group(group, actor=factories.SYSTEM)

    (told,) = alice.get("/api/v1/groups/").json()["results"]

    assert (told["share"], told["has_job_sharing"]) == (600, True)


def test_queues_tell_for_whom_they_are(alice: APIClient, people: SimpleNamespace) -> None:
    site = factories.site()
    Queue.objects.filter(site=site).update(owner=people.bob, gpus=2, required_tags=["gpu"])

    (told,) = alice.get(f"/api/v1/sites/{site.name}/").json()["queues"]

    assert (told["owner"], told["owner_group"], told["gpus"]) == ("bob", None, 2)
    assert told["required_tags"] == ["gpu"]
