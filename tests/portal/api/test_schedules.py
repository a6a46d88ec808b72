"""Schedules by the API and on their pages."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from tests.portal.api.submissions import FILES, dag_form
from wms.bulk import execution
from wms.schedules import submitting
from wms.schedules.models import Schedule

URL = "/api/v1/schedules/"


def _form(**more: Any) -> dict[str, Any]:
    return dag_form(
        name="weekly", cron="0 6 * * mon", time_zone="Europe/Zurich", labels="campaign=mc27", **more
    )


def test_a_schedule_is_made_listed_and_read(alice: APIClient) -> None:
    made = alice.post(URL, _form(grace_s="7200", allows_overlap="true"))

    told = made.json()
    assert made.status_code == 201, made.content
    assert (told["cron"], told["time_zone"], told["labels"]) == (
        "0 6 * * mon", "Europe/Zurich", ["campaign=mc27"],
    )  # fmt: skip
    assert (told["grace_s"], told["allows_overlap"], told["kept_runs"]) == (7200, True, 100)
    assert told["files"] == ["analysis.dag", "job.sub", "run.sh"]
    [listed] = alice.get(f"{URL}?state=active&label=campaign=mc27").json()["results"]
    assert (listed["id"], listed["next_at"]) == (told["id"], told["next_at"])
    assert alice.get(f"{URL}{told['id']}/").json() == told
    assert alice.post(URL, _form()).status_code == 409


@pytest.mark.parametrize(
    ("field", "value"),
    [("cron", "x"), ("time_zone", "Mars"), ("grace_s", "1"), ("kept_runs", "x"), ("other", "1")],
)
def test_faulty_parts_are_refused_with_their_field(
    alice: APIClient, field: str, value: str
) -> None:
    answer = alice.post(URL, {**_form(), field: value})

    assert answer.status_code == 400
    assert [fault["field"] for fault in answer.json()["findings"]] == [field]
    assert not Schedule.objects.exists()


def test_a_schedule_is_paused_resumed_and_removed(alice: APIClient) -> None:
    number = alice.post(URL, _form()).json()["id"]

    def act(name: str) -> Any:
        return alice.post(f"{URL}{number}/{name}/", {"reason": "why"}, format="json")

    assert act("resume").status_code == 409
    assert act("pause").json()["next_at"] is None
    assert act("resume").json()["next_at"]
    assert act("remove").json()["state"] == "removed"
    assert act("pause").status_code == 409


def test_its_times_are_told(alice: APIClient) -> None:
    number = alice.post(URL, _form()).json()["id"]
    next_at = Schedule.objects.get().next_at
    assert next_at is not None
    submitting.run_cycle(next_at)

    [run] = alice.get(f"{URL}{number}/runs/").json()["results"]

    assert (run["outcome"], run["dag_state"]) == ("submitted", "idle")


def test_pages_make_show_and_steer_a_schedule(people: SimpleNamespace) -> None:
    browser = Client()
    browser.force_login(people.alice)
    form = {
        "dag": SimpleUploadedFile("weekly.dag", b"JOB A job.sub\n"),
        "files": [SimpleUploadedFile(name, content) for name, content in FILES.items()],
        "do": "schedule", "schedule_name": "weekly", "cron": "0 6 * * mon", "time_zone": "UTC",
        "labels": "night",
    }  # fmt: skip

    shown = browser.post("/dags/submit/", form, follow=True)

    schedule = Schedule.objects.get()
    assert (schedule.name, schedule.labels, schedule.grace_s) == ("weekly", ["night"], 3600)
    assert shown.redirect_chain[-1][0] == f"/schedules/{schedule.pk}/"
    assert "weekly" in browser.get("/schedules/").content.decode()
    assert schedule.next_at is not None
    submitting.run_cycle(schedule.next_at)
    address = f"/schedules/{schedule.pk}/steer/pause/"
    paused = browser.post(address, {"reason": "why", "seen": "active"}, follow=True)
    assert "is paused" in paused.content.decode()
    assert "submitted" in paused.content.decode()
    stale = browser.post(address, {"reason": "why", "seen": "active"})
    assert stale.status_code == 409
    faulty = {**form, "cron": "x", "dag": SimpleUploadedFile("weekly.dag", b"JOB A job.sub\n")}
    faulty["files"] = [SimpleUploadedFile(name, content) for name, content in FILES.items()]
    assert "five fields" in browser.post("/dags/submit/", faulty).content.decode()


def test_its_dag_is_submitted_at_once_and_told(alice: APIClient) -> None:
    number = alice.post(URL, _form()).json()["id"]
    address = f"{URL}{number}/run/"

    missing = alice.post(address, {}, format="json")
    done = alice.post(address, {"reason": "try it"}, format="json")
    again = alice.post(address, {"reason": "try it"}, format="json")

    assert (missing.status_code, done.status_code, again.status_code) == (400, 200, 409)
    [run] = alice.get(f"{URL}{number}/runs/").json()["results"]
    assert (run["outcome"], run["asked_by"]) == ("submitted", "alice")
    assert (done.json()["last_outcome"], done.json()["last_dag"]) == ("submitted", run["dag"])
    [listed] = alice.get(f"{URL}?outcome=submitted&sort=next").json()["results"]
    assert listed["id"] == number
    assert alice.get(f"{URL}?outcome=missed").json()["results"] == []


def test_a_repeated_request_with_a_key_submits_one_dag(alice: APIClient) -> None:
    number = alice.post(URL, _form() | {"allows_overlap": "true"}).json()["id"]

    def run() -> Any:
        return alice.post(f"{URL}{number}/run/", {"reason": "try it"}, format="json",
                          headers={"Idempotency-Key": "monday"})  # fmt: skip

    first, second = run(), run()

    assert (first.status_code, second.status_code) == (200, 200)
    assert second["Idempotency-Replayed"] == "true"
    assert len(alice.get(f"{URL}{number}/runs/").json()["results"]) == 1


def test_labels_and_priority_are_changed(alice: APIClient) -> None:
    number = alice.post(URL, _form()).json()["id"]

    def act(name: str, **given: Any) -> Any:
        return alice.post(f"{URL}{number}/{name}/", {"reason": "why", **given}, format="json")

    assert act("label", add=["night"]).json()["labels"] == ["campaign=mc27", "night"]
    assert act("prioritise", priority=4).json()["priority"] == 4
    refused = act("prioritise", priority=11)
    assert refused.status_code == 400
    [fault] = refused.json()["findings"]
    assert (fault["field"], fault["message"]) == ("priority", "must be from 0 to 10, not 11")


def test_many_are_paused_in_two_steps(alice: APIClient) -> None:
    numbers = [alice.post(URL, {**_form(), "name": name}).json()["id"] for name in ("a", "b")]
    body = {"list": "schedules", "filter": {"state": ["active"]}, "action": "pause"}

    preview = alice.post(
        "/api/v1/bulk/", {**body, "reason": "no disk", "dry_run": True}, format="json"
    ).json()
    confirmed = {"operation_token": preview["operation_token"], "expected_count": 2}
    alice.post("/api/v1/bulk/", confirmed, format="json")
    execution.run_cycle(timezone.now())

    states = dict(Schedule.objects.values_list("pk", "state"))
    assert states == dict.fromkeys(numbers, "paused")


def test_the_list_offers_what_is_done_to_many_and_has_its_filters(
    alice: APIClient, people: SimpleNamespace
) -> None:
    alice.post(URL, _form())
    browser = Client()
    browser.force_login(people.alice)

    page = browser.get("/schedules/?state=!removed&name=week").content.decode()

    offered = ["run", "pause", "resume", "prioritise", "label", "remove"]
    assert re.findall(r'name="action" value="([^"]+)"', page) == offered
    assert "weekly" in page
    assert "weekly" not in browser.get("/schedules/?outcome=failed").content.decode()


def test_the_terms_that_are_given_are_changed(alice: APIClient) -> None:
    made = alice.post(URL, _form()).json()

    def change(**given: Any) -> Any:
        return alice.post(f"{URL}{made['id']}/change/", {"reason": "why", **given}, format="json")

    told = change(cron="0 7 * * tue", allows_overlap=True).json()

    assert (told["cron"], told["allows_overlap"]) == ("0 7 * * tue", True)
    assert (told["name"], told["time_zone"]) == ("weekly", "Europe/Zurich")
    assert told["next_at"] != made["next_at"]
    assert change(cron="x").json()["findings"][0]["field"] == "cron"
    assert change().status_code == 400
    alice.post(f"{URL}{made['id']}/remove/", {"reason": "why"}, format="json")
    assert change(kept_runs=3).status_code == 409


def test_a_page_changes_a_schedule_that_is_as_it_was_shown(
    alice: APIClient, people: SimpleNamespace
) -> None:
    number = alice.post(URL, _form()).json()["id"]
    browser, address = Client(), f"/schedules/{number}/change/"
    browser.force_login(people.alice)
    shown = browser.get(address)
    given = {
        "seen": shown.context["form"].version, "reason": "why", "name": "weekly",
        "cron": "0 7 * * tue", "time_zone": "Europe/Zurich", "allows_overlap": "false",
        "grace_s": "3600", "kept_runs": "100",
    }  # fmt: skip

    faulty = browser.post(address, {**given, "grace_s": "1"})
    changed = browser.post(address, given, follow=True)
    stale = browser.post(address, {**given, "cron": "0 8 * * tue"})

    assert faulty.status_code == 400
    assert changed.redirect_chain[-1][0] == f"/schedules/{number}/"
    assert stale.status_code == 409
    assert Schedule.objects.get().cron == "0 7 * * tue"
    assert "0 7 * * tue" in stale.content.decode()
