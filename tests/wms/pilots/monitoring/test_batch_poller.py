"""Batch poller: pilots of a batch system that answers, keeps silent, or lies."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from matching.task_queues.resources import Resource
from tests import factories
from tests.wms.elements.faulty import Fault, FaultyElement
from tests.wms.pilots.claiming import beat
from tests.wms.pilots.directing import direct, poll
from tests.wms.pilots.fake_element import FakeElement
from wms.elements.protocol import BatchState, PilotState, Unreachable
from wms.jobs.models import Job
from wms.pilots.models import Pilot
from wms.pilots.monitoring import monitor
from wms.pilots.pressure_models import ElementContact
from wms.pilots.protocol.claims import Work, claim_job
from wms.pilots.protocol.registration import (
    authenticate_pilot,
    end_pilot,
    register_pilot,
    secret_digest,
)
from wms.pilots.services import remove_pilot

RESOURCE = Resource("site-a", cpu_time_s=86_400, memory_mb=2000)


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def pilot(make_queue, add_jobs, now: datetime) -> Pilot:
    """A registered pilot that was sent for one waiting job."""
    make_queue()
    add_jobs(1)
    direct(now)
    return called_in(Pilot.objects.get(), now)


def called_in(made: Pilot, now: datetime) -> Pilot:
    token = secrets.token_hex(32)
    Pilot.objects.filter(pk=made.pk).update(secret_sha256=secret_digest("secret"))
    register_pilot(made.uuid, secret="secret", token=token, node={"hostname": "n1"}, now=now)
    return authenticate_pilot(made.uuid, token, now=timezone.now())


def fresh(pilot: Pilot) -> Pilot:
    return Pilot.objects.get(pk=pilot.pk)


def claimed(pilot: Pilot, now: datetime) -> Work | None:
    return claim_job(pilot, RESOURCE, claim_key=secrets.token_hex(16), now=now).work


def test_a_pilot_that_the_batch_system_reports_dead_frees_its_job_at_once(
    pilot: Pilot, elements, now: datetime
) -> None:
    claimed(pilot, now)
    elements["site-a"].states[pilot.native_id] = PilotState(BatchState.FAILED, exit_code=137)

    poll(now + timedelta(seconds=11))

    assert Job.objects.get().state == "waiting"
    dead = fresh(pilot)
    assert dead.state == "failed"
    assert dead.state_reason.endswith("exit code 137")


def test_a_pilot_that_was_heard_a_moment_ago_may_still_say_goodbye(
    pilot: Pilot, elements, now: datetime
) -> None:
    elements["site-a"].states[pilot.native_id] = PilotState(BatchState.DONE, exit_code=0)

    poll(now + timedelta(seconds=2))
    assert fresh(pilot).state == "running"
    end_pilot(fresh(pilot), end="idle", detail="", now=now)

    assert fresh(pilot).state == "done"


def test_without_an_answer_of_the_batch_system_nothing_changes(
    pilot: Pilot, elements, now: datetime
) -> None:
    claimed(pilot, now)
    elements["site-a"].fail_with = Unreachable("time-out")

    told = poll(now + timedelta(seconds=6))

    assert told["site-a/main"].fault == "time-out"
    assert fresh(pilot).state == "running"
    assert Job.objects.get().state == "matched"


def test_a_pilot_is_taken_for_gone_only_after_three_answers_without_it_and_a_long_time(
    pilot: Pilot, elements, now: datetime
) -> None:
    later = now + timedelta(seconds=61)
    record = elements["site-a"].states.pop(pilot.native_id)

    poll(later)
    elements["site-a"].states[pilot.native_id] = record
    poll(later)
    assert fresh(pilot).missing_polls == 0
    Pilot.objects.create(
        queue=pilot.queue, state="queued", secret_sha256="x", native_id="other.0", batch="other"
    )
    elements["site-a"].states["other.0"] = PilotState(BatchState.QUEUED)
    del elements["site-a"].states[pilot.native_id]
    for minutes in (1, 5, 15):
        poll(now + timedelta(minutes=minutes))
    assert fresh(pilot).state == "running"
    poll(now + timedelta(minutes=17))

    assert fresh(pilot).state == "failed"


def test_a_pilot_that_is_heard_lives_whatever_the_batch_system_says(
    pilot: Pilot, elements, now: datetime
) -> None:
    work = claimed(pilot, now)
    assert work is not None
    elements["site-a"].states.clear()

    for second in range(0, 60, 5):
        moment = now + timedelta(seconds=second)
        beat(fresh(pilot), [work.attempt], now=moment)
        poll(moment)

    assert fresh(pilot).state == "running"
    assert Job.objects.get().state == "matched"


def test_a_pilot_that_never_called_in_is_aborted(make_queue, add_jobs, elements, now) -> None:
    make_queue()
    add_jobs(1)
    direct(now)
    queued = Pilot.objects.get()
    elements["site-a"].states[queued.native_id] = PilotState(BatchState.FAILED, "node failure")

    poll(now)

    queued.refresh_from_db()
    assert queued.state == "aborted"
    assert "node failure" in queued.state_reason


def test_the_batch_system_forgets_a_pilot_a_day_after_its_end(
    pilot: Pilot, elements, now: datetime
) -> None:
    end_pilot(pilot, end="idle", detail="", now=now)

    poll(now + timedelta(hours=23))
    assert not Pilot.objects.get().is_forgotten
    assert monitor.queues_due(now + timedelta(hours=25)) == [pilot.queue_id]
    poll(now + timedelta(hours=25))
    assert monitor.queues_due(now + timedelta(hours=25)) == []

    assert elements["site-a"].forgotten == {pilot.native_id}


@pytest.fixture
def many(make_queue, add_jobs, elements, now: datetime) -> FaultyElement:
    """Forty pilots that wait, in a batch system that has answered once and can be made to lie."""
    make_queue(max_pilots=100, max_queued_pilots=100)
    faulty = FaultyElement(elements["site-a"])
    elements["site-a"] = faulty
    add_jobs(40)
    direct(now)
    poll(now)
    return faulty


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [Fault.TIMEOUT, Fault.REFUSED, Fault.LOST, Fault.TRUNCATED, Fault.EMPTY, Fault.ALIEN]
)
def test_no_waiting_pilot_is_given_up_and_none_more_is_sent_while_a_batch_system_lies(
    many: FaultyElement, now: datetime, fault: Fault
) -> None:
    many.fault, many.methods = fault, frozenset({"status"})

    for seconds in range(0, 600, 30):
        poll(now + timedelta(seconds=seconds))
        direct(now + timedelta(seconds=seconds))

    assert {pilot.state for pilot in Pilot.objects.all()} == {"queued"}
    assert Pilot.objects.count() == 40
    many.fault = None
    poll(now + timedelta(minutes=21))
    assert not Pilot.objects.filter(missing_polls__gt=0).exists()


@pytest.mark.slow
def test_an_answer_that_suddenly_knows_nothing_is_told_and_believed_when_it_stays(
    many: FaultyElement, now: datetime
) -> None:
    many.fault, many.methods = Fault.EMPTY, frozenset({"status"})

    told = poll(now + timedelta(seconds=30))

    words = "the answer knows 0 pilots, the one before knew 40: it is not acted upon"
    assert told["site-a/main"].fault == words
    assert ElementContact.objects.get(kind="poll").reason == words
    for minutes in range(1, 40):
        poll(now + timedelta(minutes=minutes))
    assert {pilot.state for pilot in Pilot.objects.all()} == {"aborted"}
    assert ElementContact.objects.get(kind="start").failures == 1


def test_a_few_pilots_are_guarded_against_an_empty_answer_too(
    make_queue, add_jobs, elements, now: datetime
) -> None:
    make_queue()
    add_jobs(3)
    direct(now)
    poll(now)
    elements["site-a"].states.clear()

    for seconds in range(0, 840, 60):
        poll(now + timedelta(seconds=seconds))

    assert {pilot.state for pilot in Pilot.objects.all()} == {"queued"}


def test_an_answer_without_a_removed_pilot_is_believed(
    make_queue, add_jobs, elements, now: datetime
) -> None:
    make_queue()
    add_jobs(1)
    direct(now)
    poll(now)
    removed = Pilot.objects.get()
    remove_pilot(removed.uuid, actor=factories.SYSTEM, reason="a mistake")
    poll(timezone.now())
    assert ElementContact.objects.get(kind="poll").seen_pilots == 0

    del elements["site-a"].states[removed.native_id]
    told = poll(timezone.now() + timedelta(seconds=10))

    assert told["site-a/main"].fault == ""
    assert fresh(removed).missing_polls == 1


def test_an_answer_without_those_that_the_poll_before_cancelled_is_believed(
    many: FaultyElement, now: datetime
) -> None:
    held = {pilot.native_id: PilotState(BatchState.HELD) for pilot in Pilot.objects.all()}
    many.inner.states |= held
    poll(now + timedelta(seconds=30))
    assert {pilot.state for pilot in Pilot.objects.all()} == {"removed"}

    told = poll(now + timedelta(seconds=60))

    assert told["site-a/main"].fault == ""


def test_ends_that_are_known_explain_a_smaller_answer(
    make_queue, add_jobs, elements, now: datetime
) -> None:
    make_queue()
    add_jobs(3)
    direct(now)
    poll(now)
    for pilot in Pilot.objects.all():
        end_pilot(called_in(pilot, now), end="idle", detail="", now=now + timedelta(seconds=1))
        del elements["site-a"].states[pilot.native_id]
    add_jobs(1)
    direct(now + timedelta(seconds=2))

    told = poll(now + timedelta(seconds=10))

    assert told["site-a/main"].fault == ""


def test_a_batch_system_that_does_not_answer_is_asked_less_and_less_often(
    pilot: Pilot, elements, now: datetime
) -> None:
    elements["site-a"].fail_with = Unreachable("time-out")
    pauses = []
    for _ in range(8):
        poll(now)
        contact = ElementContact.objects.get(kind="poll")
        pauses.append((contact.next_at - now).total_seconds())
        assert monitor.queues_due(now) == []

    assert 12 <= pauses[0] <= 18
    assert pauses[3] > 3 * pauses[0]
    assert 480 <= pauses[-1] <= 720
    assert contact.failing_since == now
    elements["site-a"].fail_with = None
    poll(now)
    assert ElementContact.objects.get(kind="poll").failures == 0


def test_a_held_pilot_is_cancelled_with_the_reason_of_the_batch_system(
    make_queue, add_jobs, elements, now: datetime
) -> None:
    make_queue()
    add_jobs(1)
    direct(now)
    held = Pilot.objects.get()
    elements["site-a"].states[held.native_id] = PilotState(BatchState.HELD, "no such account")

    poll(now)

    held = fresh(held)
    assert held.state == "removed"
    assert held.state_reason.endswith("no such account")
    assert elements["site-a"].states[held.native_id].state == BatchState.CANCELLED


def test_a_pilot_that_waits_for_too_long_is_cancelled(
    make_queue, add_jobs, elements, now: datetime
) -> None:
    make_queue(queued_lifetime_s=3600)
    add_jobs(1)
    direct(now)

    poll(now + timedelta(minutes=59))
    assert Pilot.objects.get().state == "queued"
    poll(now + timedelta(minutes=61))

    assert Pilot.objects.get().state == "removed"


def test_a_batch_system_is_reminded_of_a_pilot_that_it_was_to_cancel(
    make_queue, add_jobs, elements, now: datetime
) -> None:
    make_queue(queued_lifetime_s=60)
    elements["site-a"] = FaultyElement(FakeElement(), Fault.TIMEOUT, frozenset({"cancel"}))
    add_jobs(1)
    direct(now)
    poll(now + timedelta(minutes=2))
    removed = Pilot.objects.get()
    assert removed.state == "removed"
    assert elements["site-a"].inner.states[removed.native_id].state == BatchState.QUEUED

    elements["site-a"].fault = None
    poll(now + timedelta(minutes=3))

    assert elements["site-a"].inner.states[removed.native_id].state == BatchState.CANCELLED


def test_the_words_of_the_batch_system_are_kept_with_the_pilot(
    make_queue, add_jobs, elements, now: datetime
) -> None:
    make_queue()
    add_jobs(1)
    direct(now)
    queued = Pilot.objects.get()
    elements["site-a"].states[queued.native_id] = PilotState(BatchState.QUEUED, "Priority")

    poll(now)
    poll(now + timedelta(seconds=30))

    queued = fresh(queued)
    assert (queued.batch_state, queued.batch_reason) == ("queued", "Priority")
    assert queued.batch_since == now


def test_a_part_of_an_adopted_batch_is_believed_only_after_some_time(
    make_queue, add_jobs, elements, now: datetime
) -> None:
    make_queue()
    fake = FakeElement()
    faulty = FaultyElement(fake, Fault.TRUNCATED, frozenset({"adopt"}))
    elements["site-a"] = faulty
    fake.loses_answer = True
    add_jobs(4)
    direct(now)
    fake.loses_answer = False

    poll(now + timedelta(minutes=3))
    assert {pilot.state for pilot in Pilot.objects.all()} == {"submitted"}
    faulty.fault = None
    poll(now + timedelta(minutes=4))

    assert {pilot.state for pilot in Pilot.objects.all()} == {"queued"}
