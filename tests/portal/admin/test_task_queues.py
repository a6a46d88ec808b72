"""TaskQueues, their policy and running limits in the administration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from tests import factories
from wms.core.models import AuditEntry
from wms.jobs.models import RunningLimit
from wms.taskqueues.models import TaskQueue, TaskQueuePolicy

QUEUES = "/admin/taskqueues/taskqueue/"
POLICY = "/admin/taskqueues/taskqueuepolicy/1/change/"
LIMITS = "/admin/jobs/runninglimit/"
SETTINGS = {
    "cpu_segments_s": "500,5000",
    "law": "uniform",
    "default_share": "2000",
    "max_correction": "3",
}
LIMIT: dict[str, Any] = {"job_type": "User", "owner_group": "", "maximum": "50", "note": "disk"}


def _errors(answer: HttpResponse) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return {name: list(errors) for name, errors in answer.context["adminform"].form.errors.items()}


def test_task_queues_are_listed_with_what_waits_in_them(
    olga: Client, people: SimpleNamespace
) -> None:
    factories.job(people.alice)
    factories.job(people.alice)

    listed = olga.get(QUEUES).content.decode()

    assert "8 min 20 s" in listed
    assert '<td class="field-waiting">2</td>' in listed
    assert '<td class="field-priority">1000</td>' in listed
    assert olga.get(f"{QUEUES}?o=7").status_code == 200


def test_a_task_queue_is_read_only(olga: Client, people: SimpleNamespace) -> None:
    factories.job(people.alice)
    address = f"{QUEUES}{TaskQueue.objects.get().pk}/change/"

    assert olga.get(address).status_code == 200
    assert olga.post(address, {"cores": "7"}).status_code == 403
    assert olga.get(f"{QUEUES}add/").status_code == 403


def test_the_policy_is_changed_on_its_page(olga: Client) -> None:
    assert olga.get("/admin/taskqueues/taskqueuepolicy/", follow=True).status_code == 200
    assert not TaskQueuePolicy.objects.exists()

    answer = olga.post(POLICY, SETTINGS)

    assert answer.status_code == 302, _errors(answer)
    policy = TaskQueuePolicy.objects.get()
    assert (policy.cpu_segments_s, policy.law, policy.default_share) == (
        [500, 5000],
        "uniform",
        2000,
    )
    assert AuditEntry.objects.get(actor="olga").target == "TaskQueue policy"


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"cpu_segments_s": "5000,500"}, "cpu_segments_s", "500 follows 5000"),
        ({"cpu_segments_s": "0"}, "cpu_segments_s", "greater than or equal to 1"),
        ({"cpu_segments_s": "long"}, "cpu_segments_s", "Enter a whole number"),
        ({"law": "dice"}, "law", "dice is not one of"),
        ({"default_share": "0"}, "default_share", "greater than or equal to 0.001"),
        ({"max_correction": "nan"}, "max_correction", "Enter a number"),
    ],
)
def test_a_fault_of_the_policy_is_shown_at_its_field(
    olga: Client, values: dict[str, str], field: str, words: str
) -> None:
    errors = _errors(olga.post(POLICY, SETTINGS | values))

    assert list(errors) == [field]
    assert words in errors[field][0]
    assert not TaskQueuePolicy.objects.exists()


def test_a_running_limit_is_made_changed_and_deleted(olga: Client) -> None:
    site = factories.site("T2_X")

    added = olga.post(f"{LIMITS}add/", LIMIT | {"site": site.pk})
    limit = RunningLimit.objects.get()
    listed = olga.get(LIMITS).content.decode()
    changed = olga.post(f"{LIMITS}{limit.pk}/change/", LIMIT | {"site": site.pk, "maximum": "5"})
    limit.refresh_from_db()
    deleted = olga.post(f"{LIMITS}{limit.pk}/delete/", {"post": "yes"})

    assert [answer.status_code for answer in (added, changed, deleted)] == [302, 302, 302]
    assert "at T2_X" in listed
    assert limit.maximum == 5
    assert not RunningLimit.objects.exists()
    entries = AuditEntry.objects.filter(actor="olga").order_by("pk")
    assert [entry.action.split()[0] for entry in entries] == ["create", "change", "delete"]
    [target] = {entry.target for entry in entries}
    assert target == f"limit of {limit}"


def test_a_change_of_a_running_limit_keeps_its_last_match(olga: Client) -> None:
    limit = RunningLimit.objects.create(min_interval_s=60, last_match_at="2026-11-21T10:00:00Z")

    answer = olga.post(f"{LIMITS}{limit.pk}/change/", LIMIT)

    assert answer.status_code == 302, _errors(answer)
    limit.refresh_from_db()
    assert limit.last_match_at is not None
    assert (limit.maximum, limit.min_interval_s) == (50, None)


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"maximum": ""}, "maximum", "set a maximum"),
        ({"maximum": "-1"}, "maximum", "greater than or equal to 0"),
        ({"owner_group": "nobody"}, "owner_group", "there is no group nobody"),
        ({"min_interval_s": "1e9"}, "min_interval_s", "less than or equal to 86400"),
    ],
)
def test_a_fault_of_a_running_limit_is_shown_at_its_field(
    olga: Client, values: dict[str, str], field: str, words: str
) -> None:
    errors = _errors(olga.post(f"{LIMITS}add/", LIMIT | values))

    assert list(errors) == [field]
    assert words in errors[field][0]


def test_there_is_one_running_limit_for_a_kind_at_a_place(olga: Client) -> None:
    olga.post(f"{LIMITS}add/", LIMIT)

    answer = olga.post(f"{LIMITS}add/", LIMIT)

    assert answer.status_code == 200
    assert RunningLimit.objects.count() == 1


def test_the_history_of_a_limit_with_the_longest_names_is_kept(
    olga: Client, people: SimpleNamespace
) -> None:
    site = factories.site("S" * 64)
    group = factories.accounting(people.alice, "g" * 64)
    data = {"site": site.pk, "job_type": "t" * 64, "owner_group": group.name, "maximum": 3}

    answer = olga.post("/admin/jobs/runninglimit/add/", data)

    assert answer.status_code == 302, answer.context["adminform"].form.errors
    limit = RunningLimit.objects.get()
    page = olga.get(f"/admin/jobs/runninglimit/{limit.pk}/history/")
    assert [each.entry.action for each in page.context["changes"]] == ["create running limit"]
