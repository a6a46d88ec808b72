"""What checks of worker nodes found, by pilot and by site."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

from django.utils import timezone
from rest_framework.test import APIClient

from portal.api.pilots.shapes import CHECKS_SHOWN
from tests import factories
from wms.pilots.models import Pilot, PilotCheck
from wms.pilots.program.checks import MOST_RESULTS, CheckResult, record_checks
from wms.pilots.program.published import Said


def found(key: str, *, reason: str = "", name: str = "disk") -> CheckResult:
    kind = "node" if reason else ""
    return CheckResult(key, name, not reason, kind, reason, {"disk_free_mb": 5}, 0.25)


def record(pilot: Pilot, *results: CheckResult) -> None:
    record_checks(pilot, results, now=timezone.now())


def test_a_pilot_tells_what_checks_of_its_node_found(alice: APIClient) -> None:
    pilot = factories.pilot()
    reason = "5 MB of disk are free, needed are 100"
    record(pilot, found("0"), found("1", reason=reason))

    address = f"/api/v1/pilots/{pilot.uuid}/"
    failed, passed = alice.get(f"{address}checks/").json()["results"]

    assert (passed["name"], passed["is_ok"], passed["reason"]) == ("disk", True, "")
    assert (failed["is_ok"], failed["kind"], failed["seconds"]) == (False, "node", 0.25)
    assert failed["reason"] == reason
    assert failed["metrics"] == {"disk_free_mb": 5}
    assert alice.get(address).json()["checks"] == [passed, failed]


def test_results_come_in_pages_and_a_pilots_own_answer_has_the_first(alice: APIClient) -> None:
    pilot = factories.pilot()
    record(pilot, *(found(str(number), name=f"own{number}") for number in range(CHECKS_SHOWN + 5)))

    page = alice.get(f"/api/v1/pilots/{pilot.uuid}/checks/?page_size=3").json()
    shown = alice.get(f"/api/v1/pilots/{pilot.uuid}/").json()["checks"]

    assert [each["name"] for each in page["results"]] == ["own104", "own103", "own102"]
    assert page["next"]
    assert [each["name"] for each in shown] == [f"own{number}" for number in range(CHECKS_SHOWN)]


def test_a_pilot_that_tells_without_end_is_not_kept_without_end(alice: APIClient) -> None:
    pilot = factories.pilot()
    for start in range(0, MOST_RESULTS + 500, 500):
        record(pilot, *(found(str(start + number)) for number in range(500)))

    assert pilot.checks.count() == MOST_RESULTS


def test_a_site_tells_which_nodes_failed_within_a_day(alice: APIClient) -> None:
    here, there = factories.site("Here"), factories.site("There")
    pilot, other = factories.pilot(here.queues.get()), factories.pilot(there.queues.get())
    record(pilot, found("0"), found("1", reason="too little"), found("2", reason="long ago"))
    record(other, found("0", reason="elsewhere"))
    PilotCheck.objects.filter(key="2").update(created_at=timezone.now() - timedelta(days=2))

    [told] = alice.get("/api/v1/sites/Here/failed-checks/").json()["results"]

    assert told["reason"] == "too little"
    assert (told["pilot"], told["queue"]) == (str(pilot.uuid), pilot.queue.name)
    assert told["host"] == "node1"


def test_what_is_not_there_is_not_found(alice: APIClient) -> None:
    assert alice.get(f"/api/v1/pilots/{uuid.uuid4()}/checks/").status_code == 404
    assert alice.get("/api/v1/sites/Nowhere/failed-checks/").status_code == 404


def test_nobody_reads_them_without_an_account(db: None, client: APIClient) -> None:
    pilot = factories.pilot()

    assert client.get(f"/api/v1/pilots/{pilot.uuid}/checks/").status_code == 401
    assert client.get("/api/v1/sites/UW/failed-checks/").status_code == 401


def test_a_pilot_tells_what_checks_published_of_its_node(alice: APIClient) -> None:
    pilot = factories.pilot()
    said = Said({"Count": 2, "Cpus": 99}, {"LD_PRELOAD": "x"})
    record(pilot, replace(found("0", name="gpu"), said=said))

    answer = alice.get(f"/api/v1/pilots/{pilot.uuid}/").json()

    assert answer["published"] == {"gpu": {"Count": 2}}
    assert answer["variables"] == {}
    [check] = answer["checks"]
    assert "Cpus" in check["skipped"]
    assert "LD_PRELOAD" in check["skipped"]
