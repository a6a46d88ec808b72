"""Test pilots: sent once whatever the demand, counted apart from it, and judged."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from tests import factories
from tests.wms.pilots.claiming import ask, beat, in_threads, submit
from tests.wms.pilots.directing import direct, poll
from tests.wms.pilots.fake_element import FakeElement
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.jobs.models import Job
from wms.jobs.services import kill_jobs
from wms.pilots.models import Pilot, PilotCheck, PilotEvent, PilotManifest
from wms.pilots.pressure_models import PilotLimit
from wms.pilots.protocol.registration import (
    authenticate_pilot,
    end_pilot,
    register_pilot,
    secret_digest,
)
from wms.pilots.services import remove_pilot
from wms.pilots.testing.selectors import Verdict, queue_tests, report_of, verdict_of
from wms.pilots.testing.services import OpenTest, send_test_pilot
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.services import ban_site, save_site


def sent(queue: Queue, user: User, **options: bool) -> Pilot:
    return send_test_pilot(queue.pk, actor=Actor.person(user), reason="new cluster", **options)


def started(pilot: Pilot) -> Pilot:
    """The pilot once it has called in."""
    now = timezone.now()
    Pilot.objects.filter(pk=pilot.pk).update(secret_sha256=secret_digest("s" * 40))
    register_pilot(pilot.uuid, secret="s" * 40, token="t" * 64, node={"hostname": "n1"}, now=now)
    return authenticate_pilot(pilot.uuid, "t" * 64, now=now)


def result(pilot: Pilot, name: str, *, is_ok: bool = True) -> None:
    PilotCheck.objects.create(
        pilot=pilot, name=name, is_ok=is_ok, seconds=0.5, key=name, reason="" if is_ok else "no"
    )


def test_one_pilot_is_sent_where_nothing_waits_and_none_is_sent(
    make_queue, elements, sam: User
) -> None:
    queue = make_queue()
    Queue.objects.update(is_enabled=False)

    pilot = sent(queue, sam)
    assert (pilot.state, pilot.batch) == ("submitted", "")
    for _ in range(2):
        direct(timezone.now())
        poll(timezone.now())

    [only] = Pilot.objects.all()
    assert (only.pk, only.state) == (pilot.pk, "queued")
    [[secret]] = elements["site-a"].secrets.values()
    assert secret.startswith(f"{pilot.uuid}:")
    assert PilotEvent.objects.get(event="test").facts == {
        "reason": "new cluster", "takes_jobs": False,
    }  # fmt: skip
    assert AuditEntry.objects.get(action="send test pilot").target == f"pilot {pilot.pk}"
    report = report_of(only, [], timezone.now())
    assert (report.verdict, report.takes_jobs) == (Verdict.WAITING, False)
    assert "switched off" in report.closed


def test_its_checks_all_run_and_its_slot_is_not_kept(make_queue, elements, sam: User) -> None:
    queue = make_queue(hold_after_failure_s=600)
    sent(queue, sam)
    poll(timezone.now())

    [script] = elements["site-a"].scripts.values()
    [manifest] = PilotManifest.objects.all()
    assert json.loads(bytes(manifest.content))["runs_all_checks"] is True
    assert manifest.sha256 in script
    assert "HOLD_S = 0\n" in script
    pilot = Pilot.objects.get()
    Pilot.objects.update(secret_sha256=secret_digest("s" * 40))
    terms = register_pilot(pilot.uuid, secret="s" * 40, token="t" * 64, node={}, now=timezone.now())
    assert terms.hold_after_failure_s == 0


def test_a_second_test_of_a_queue_waits_for_the_end_of_the_first(make_queue, sam: User) -> None:
    queue = make_queue()
    first = sent(queue, sam)

    with pytest.raises(OpenTest) as refused:
        sent(queue, sam)
    assert (refused.value.pilot, refused.value.number) == (first.uuid, first.pk)
    assert Pilot.objects.count() == 1

    remove_pilot(first.uuid, actor=Actor.person(sam), reason="never mind")
    assert sent(queue, sam).pk != first.pk
    assert [line.verdict for line in queue_tests(sam, queue, most=5)] == [
        "waiting",
        "never_started",
    ]


@pytest.mark.django_db(transaction=True)
def test_of_two_clicks_at_once_one_sends_a_pilot(make_queue, sam: User) -> None:
    queue = make_queue()
    outcomes = []

    def click() -> None:
        try:
            outcomes.append(sent(queue, sam).pk)
        except OpenTest as refused:
            outcomes.append(refused.number)

    in_threads(click, click)

    assert outcomes == [Pilot.objects.get().pk] * 2


def test_it_takes_no_job_and_is_told_to_end(make_queue, alice: User, sam: User) -> None:
    queue = make_queue()
    job = submit(alice)
    pilot = sent(queue, sam)
    poll(timezone.now())

    running = started(pilot)
    answer = ask(running, now=timezone.now())
    heard = beat(running, now=timezone.now())

    assert answer.work is None
    assert heard.is_drained
    assert Job.objects.get(pk=job).state == "waiting"


def test_one_that_may_takes_jobs_like_any_other(make_queue, alice: User, sam: User) -> None:
    queue = make_queue()
    submit(alice)
    pilot = sent(queue, sam, takes_jobs=True)
    poll(timezone.now())

    running = started(pilot)

    assert ask(running, now=timezone.now()).work is not None
    assert not beat(running, now=timezone.now()).is_drained


@pytest.mark.parametrize("why", ["switched off", "banned", "private", "frontends"])
def test_jobs_are_not_taken_where_no_pilots_are_sent(
    make_queue, sam: User, olga: User, why: str
) -> None:
    queue = make_queue()
    if why == "private":
        Queue.objects.update(is_private=True)
    elif why == "frontends":
        FrontendEntry.objects.create(queue=queue, frontend=None, share=0)
    elif why == "banned":
        ban_site(queue.site.name, actor=Actor.person(sam), reason="it eats jobs")
    else:
        Queue.objects.update(is_enabled=False)

    with pytest.raises(Conflict) as refused:
        sent(queue, sam, takes_jobs=True)
    assert why in str(refused.value)
    assert sent(queue, sam).test == "checks"


def test_while_it_waits_the_jobs_get_their_own_pilots(make_queue, add_jobs, sam: User) -> None:
    queue = make_queue()
    add_jobs(2)
    sent(queue, sam)

    turn = direct(timezone.now())["site-a/main"]
    poll(timezone.now())

    assert turn.submitted == 2
    assert Pilot.objects.filter(test="").count() == 2
    assert direct(timezone.now()) == {}


@pytest.mark.slow
def test_it_is_never_taken_back_as_surplus(make_queue, add_jobs, sam: User) -> None:
    queue = make_queue(removal_margin=0, max_removals=10)
    jobs = add_jobs(3)
    now = timezone.now()
    direct(now)
    pilot = sent(queue, sam, takes_jobs=True)
    poll(now)
    kill_jobs(jobs, actor=factories.SYSTEM, reason="test")
    for minute in range(20):
        direct(now + timedelta(minutes=minute, seconds=1))

    assert Pilot.objects.get(state="queued") == pilot


def test_limits_of_pilots_leave_it_out(make_queue, sam: User) -> None:
    queue = make_queue()
    Queue.objects.update(max_pilots=0)
    with pytest.raises(Conflict):
        sent(queue, sam)

    Queue.objects.update(max_pilots=10)
    PilotLimit.objects.create(scope="whole", max_pilots=0)
    with pytest.raises(Conflict):
        sent(queue, sam)
    assert not Pilot.objects.exists()


def test_it_counts_within_the_limit_of_its_queue(make_queue, add_jobs, sam: User) -> None:
    queue = make_queue(max_pilots=3)
    sent(queue, sam)
    add_jobs(10)

    assert direct(timezone.now())["site-a/main"].submitted == 2
    assert Pilot.objects.count() == 3


def test_only_those_who_steer_the_site_send_one_with_a_reason(
    make_queue, alice: User, sam: User
) -> None:
    queue, people = make_queue(), factories.people()
    save_site(queue.site, actor=factories.SYSTEM, administrators=[people.tina])

    for who in (alice, people.tom):
        with pytest.raises(NotPermitted):
            sent(queue, who)
    with pytest.raises(ReasonRequired):
        send_test_pilot(queue.pk, actor=Actor.person(sam), reason=" ")
    with pytest.raises(NotFound):
        send_test_pilot(queue.pk + 1, actor=Actor.person(sam), reason="look")
    assert not Pilot.objects.exists()
    assert sent(queue, people.tina).test == "checks"


def test_a_refusal_ends_it_with_the_reason(make_queue, elements, sam: User) -> None:
    queue = make_queue()
    pilot = sent(queue, sam)
    elements.setdefault("site-a", FakeElement()).refuses_pilots = "no such partition"

    poll(timezone.now())

    pilot.refresh_from_db()
    assert pilot.state == "aborted"
    assert "no such partition" in pilot.state_reason
    assert verdict_of(pilot, []) == Verdict.NEVER_STARTED


def test_settings_that_make_no_pilot_end_it_with_the_reason(make_queue, sam: User) -> None:
    pilot = sent(make_queue(), sam)
    Queue.objects.update(checks=[{"name": "nowhere"}])

    poll(timezone.now())

    pilot.refresh_from_db()
    assert pilot.state == "aborted"
    assert "nowhere" in pilot.state_reason


def test_one_whose_answer_was_lost_is_found_and_not_sent_twice(
    make_queue, elements, sam: User
) -> None:
    queue = make_queue()
    pilot = sent(queue, sam)
    element = elements.setdefault("site-a", FakeElement())
    element.loses_answer = True
    now = timezone.now()

    for minutes in (0, 1, 3):
        poll(now + timedelta(minutes=minutes))

    pilot.refresh_from_db()
    assert pilot.state == "queued"
    assert element.calls.count("submit") == 1


def test_one_that_waits_for_its_submission_is_not_looked_for(make_queue, sam: User) -> None:
    pilot = sent(make_queue(), sam)
    Pilot.objects.update(created_at=timezone.now() - timedelta(hours=1))

    poll(timezone.now())

    pilot.refresh_from_db()
    assert pilot.state == "queued"
    assert timezone.now() - pilot.created_at < timedelta(minutes=1)


def test_verdicts_follow_states_and_checks(make_queue, sam: User) -> None:
    pilot = sent(make_queue(), sam)
    poll(timezone.now())

    def verdict() -> Verdict:
        row = Pilot.objects.get(pk=pilot.pk)
        return verdict_of(row, list(row.checks.order_by("pk")))

    assert verdict() == Verdict.WAITING
    running = started(pilot)
    assert verdict() == Verdict.CHECKING
    result(pilot, "disk")
    assert verdict() == Verdict.CHECKING
    beat(running, facts={"network": "node"}, now=timezone.now())
    assert verdict() == Verdict.FIT
    # No node has to be able to start containers.
    result(pilot, "containers", is_ok=False)
    assert verdict() == Verdict.FIT
    result(pilot, "clock", is_ok=False)
    assert verdict() == Verdict.UNFIT
    assert [
        check.name for check in report_of(running, list(pilot.checks.all()), timezone.now()).failed
    ] == ["clock"]


@pytest.mark.parametrize(("end", "verdict"), [("drained", "fit"), ("error", "cut_short")])
def test_an_end_without_checks_that_failed_is_judged_by_how_it_came(
    make_queue, sam: User, end: str, verdict: str
) -> None:
    pilot = sent(make_queue(), sam)
    poll(timezone.now())
    running = started(pilot)
    result(pilot, "disk")

    end_pilot(running, end=end, detail="", now=timezone.now())

    pilot.refresh_from_db()
    assert verdict_of(pilot, list(pilot.checks.all())) == verdict
