"""Actions on jobs and pilots, and their output, on pages."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.core.models import AuditEntry
from wms.jobs.accounting import account_attempts
from wms.jobs.models import Attempt, Job
from wms.jobs.output.streams import append_to_stream
from wms.pilots.models import Pilot
from wms.pilots.monitoring.accounting import account_pilots
from wms.pilots.protocol.logs import append_to_log
from wms.pilots.protocol.registration import end_pilot

pytestmark = pytest.mark.django_db


def logged_in(name: str) -> Client:
    client = Client()
    client.force_login(factories.person(name))
    return client


def printed(claimed: factories.Claimed, content: bytes) -> None:
    append_to_stream(
        claimed.job.pk, claimed.number, pilot_id=claimed.pilot.pk, kind="stdout", offset=0,
        content=content, now=timezone.now(),
    )  # fmt: skip


def test_output_is_shown_while_the_job_runs_and_can_be_downloaded(
    claimed: factories.Claimed,
) -> None:
    printed(claimed, b"step 1 of 9\n<b>")
    client = logged_in("bob")

    page = client.get(f"/jobs/{claimed.job.pk}/").content.decode()
    address = f"/jobs/{claimed.job.pk}/attempts/1/streams/stdout"
    download = client.get(address)

    assert "of 9\n&lt;b&gt;" in page
    assert address in page
    assert b"".join(download.streaming_content) == b"step 1 of 9\n<b>"
    assert download["Content-Disposition"].startswith("attachment")


def test_use_and_who_stopped_it_are_shown_with_the_attempt(claimed: factories.Claimed) -> None:
    Attempt.objects.update(
        usage={"wall_s": 61.0, "disk_mb": 12.0, "processes": 3}, outcome="failed",
        stopped_by="watchdog", reason="memory over its limit",
    )  # fmt: skip

    page = logged_in("bob").get(f"/jobs/{claimed.job.pk}/").content.decode()

    assert "disk 12 MB, 3 processes" in page
    assert "by the watchdog" in page
    assert "1 min 1 s" in page


def test_the_owner_kills_a_job_with_a_reason(claimed: factories.Claimed) -> None:
    address = f"/jobs/{claimed.job.pk}/steer/kill/"

    without = logged_in("alice").post(address, {"reason": ""})
    answer = logged_in("alice").post(address, {"reason": "wrong input"})

    assert without.status_code == 400
    assert "Give a reason" in without.content.decode()
    assert answer.status_code == 302
    assert Job.objects.get().state_reason == "wrong input"
    assert AuditEntry.objects.get(action="kill job").actor == "alice"


def test_another_user_is_offered_nothing_and_refused(claimed: factories.Claimed) -> None:
    client = logged_in("bob")

    assert "steer-kill" not in client.get(f"/jobs/{claimed.job.pk}/").content.decode()
    assert client.post(f"/jobs/{claimed.job.pk}/steer/kill/", {"reason": "x"}).status_code == 403
    assert client.post(f"/jobs/{claimed.job.pk}/steer/peek/").status_code == 403
    assert Job.objects.get().state == "running"


def test_a_shifter_asks_for_output_and_stops_the_pilot_after_the_job(
    claimed: factories.Claimed,
) -> None:
    client = logged_in("sam")

    client.post(f"/jobs/{claimed.job.pk}/steer/peek/")
    client.post(f"/jobs/{claimed.job.pk}/steer/stop/", {"reason": "a bad disk"})

    assert Attempt.objects.get().peek_until is not None
    assert Pilot.objects.get().drain_reason == "a bad disk"
    page = client.get(f"/pilots/{claimed.pilot.pk}/").content.decode()
    assert "a bad disk" in page
    assert "steer-drain" not in page


def test_a_pilot_is_drained_once(claimed: factories.Claimed) -> None:
    client, address = logged_in("sam"), f"/pilots/{claimed.pilot.pk}/drain/"

    assert client.post(address, {"reason": "new kernel"}).status_code == 302
    again = client.post(address, {"reason": "once more"})

    assert again.status_code == 409
    assert "new kernel" in again.content.decode()


def test_the_log_that_a_pilot_sent_is_shown_and_downloaded(claimed: factories.Claimed) -> None:
    append_to_log(claimed.pilot.pk, offset=0, content=b"registered\n", now=timezone.now())
    client = logged_in("bob")

    assert "registered" in client.get(f"/pilots/{claimed.pilot.pk}/log/").content.decode()
    whole = client.get(f"/pilots/{claimed.pilot.pk}/log/file")
    assert b"".join(whole.streaming_content) == b"registered\n"


def test_a_pilot_without_a_fence_is_a_warning(claimed: factories.Claimed) -> None:
    client, address = logged_in("bob"), f"/pilots/{claimed.pilot.pk}/"
    assert "not fenced in" not in client.get(address).content.decode()

    pilot = Pilot.objects.get()
    Pilot.objects.update(node={**pilot.node, "fence": "none"})

    assert "not fenced in" in client.get(address).content.decode()


def test_the_accounts_of_an_ended_pilot_are_shown(claimed: factories.Claimed) -> None:
    claimed.end()
    totals = {"cores": 1, "lifetime_s": 3.0, "validation_s": 0.3}
    end_pilot(claimed.pilot, end="idle", detail="", totals=totals, now=timezone.now())
    account_attempts()
    account_pilots()

    page = logged_in("bob").get(f"/pilots/{claimed.pilot.pk}/").content.decode()

    assert "Core-seconds" in page
    assert page.count(' % <span class="quiet">of the ') == 4


def test_efficiency_is_told_by_site_user_and_day_and_at_the_site(db: None) -> None:
    factories.people()
    factories.site("UW")
    today = timezone.now().date()
    add_uses(
        [
            Use(today, "UW", "alice", CoreSeconds(useful_s=5400.0, lost_s=1800.0), attempts=3),
            Use(today, "UW", "", CoreSeconds(idle_s=7200.0), pilots=2),
        ]
    )
    client = logged_in("bob")

    by_site = client.get("/efficiency/").content.decode()
    by_user = client.get("/efficiency/?by=user&days=30").content.decode()
    by_day = client.get("/efficiency/?by=day&site=UW").content.decode()
    at_site = client.get("/sites/UW/").content.decode()

    assert "37.5 %" in by_site
    assert "75.0 %" in by_user
    assert str(today) in by_day
    assert "37.5 %" in at_site


@pytest.mark.parametrize("query", ["by=planet", "days=0", "days=x", "days=9999", "speed=1"])
def test_a_question_that_makes_no_sense_is_told(db: None, query: str) -> None:
    answer = logged_in("bob").get(f"/efficiency/?{query}")

    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.content.decode()
