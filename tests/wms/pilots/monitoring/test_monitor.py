from __future__ import annotations

import secrets
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from matching.task_queues.resources import Resource
from tests import factories
from tests.wms.pilots.claiming import beat
from tests.wms.pilots.directing import direct, poll
from wms.core.errors import NotAuthenticated
from wms.elements.protocol import Unreachable
from wms.jobs.models import Attempt, Job
from wms.pilots.models import Pilot
from wms.pilots.monitoring import monitor
from wms.pilots.protocol.attempt_refs import AttemptRef
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
    made = Pilot.objects.get()
    Pilot.objects.filter(pk=made.pk).update(secret_sha256=secret_digest("secret"))
    register_pilot(made.uuid, secret="secret", token="t" * 64, node={"hostname": "n1"}, now=now)
    return authenticate_pilot(made.uuid, "t" * 64, now=now)


def fresh(pilot: Pilot) -> Pilot:
    return authenticate_pilot(pilot.uuid, "t" * 64, now=timezone.now())


def claimed(pilot: Pilot, now: datetime) -> Work | None:
    return claim_job(pilot, RESOURCE, claim_key=secrets.token_hex(16), now=now).work


def test_a_registration_is_answered_again_for_the_same_token_only(pilot: Pilot, now) -> None:
    register_pilot(pilot.uuid, secret="secret", token="t" * 64, node={}, now=now)

    with pytest.raises(NotAuthenticated):
        register_pilot(pilot.uuid, secret="secret", token="u" * 64, node={}, now=now)
    with pytest.raises(NotAuthenticated):
        register_pilot(pilot.uuid, secret="wrong", token="t" * 64, node={}, now=now)
    with pytest.raises(NotAuthenticated):
        authenticate_pilot(pilot.uuid, "u" * 64, now=now)


def test_a_silent_pilot_is_stalled_and_welcomed_back(pilot: Pilot, now: datetime) -> None:
    work = claimed(pilot, now)
    assert work is not None
    later = now + timedelta(seconds=31)

    assert monitor.stall_silent(later) == 1
    assert Job.objects.get().state == "stalled"
    answer = beat(fresh(pilot), [work.attempt], now=later)

    assert answer.kill == ()
    assert fresh(pilot).state == "running"
    assert Job.objects.get().state == "running"


@pytest.fixture
def other(pilot: Pilot, now: datetime) -> Pilot:
    """A second pilot, which has been heard for long."""
    return Pilot.objects.create(
        queue=pilot.queue,
        state="running",
        state_since=now - timedelta(minutes=10),
        heartbeat_at=now + timedelta(seconds=60),
        token_sha256=secret_digest("other"),
        secret_sha256="x",
        native_id="other.0",
    )


def test_while_nobody_is_heard_silence_may_last_much_longer(pilot: Pilot, now: datetime) -> None:
    work = claimed(pilot, now)
    assert work is not None
    monitor.stall_silent(now + timedelta(seconds=31))

    assert monitor.give_up_stalled(now + timedelta(minutes=40)) == 0
    beat(fresh(pilot), [work.attempt], now=now + timedelta(minutes=40))
    assert Job.objects.get().state == "running"

    Pilot.objects.update(state="stalled", state_since=now)
    assert monitor.give_up_stalled(now + timedelta(minutes=46)) == 1


def test_pilots_get_time_to_be_heard_after_an_outage(
    pilot: Pilot, other: Pilot, now: datetime
) -> None:
    monitor.stall_silent(now + timedelta(minutes=20))
    assert fresh(pilot).state == "stalled"
    back = now + timedelta(minutes=30)

    Pilot.objects.filter(pk=other.pk).update(
        state="running", state_since=back, heartbeat_at=back + timedelta(seconds=30)
    )

    assert monitor.give_up_stalled(back + timedelta(seconds=30)) == 0


def test_the_job_of_a_pilot_that_stays_silent_runs_elsewhere(
    pilot: Pilot, other: Pilot, now: datetime
) -> None:
    work = claimed(pilot, now)
    assert work is not None
    monitor.stall_silent(now + timedelta(seconds=31))

    assert monitor.give_up_stalled(now + timedelta(seconds=59)) == 0
    assert monitor.give_up_stalled(now + timedelta(seconds=61)) == 1

    assert Job.objects.get().state == "waiting"
    assert Attempt.objects.get().outcome == "lost"
    assert fresh(pilot).state == "failed"
    late = beat(fresh(pilot), [work.attempt], now=now + timedelta(seconds=70))
    assert late.kill == (work.attempt,)
    assert late.is_drained
    with pytest.raises(NotAuthenticated):
        claimed(fresh(pilot), now)


def test_a_batch_system_that_has_never_been_asked_is_asked_in_the_first_round(
    pilot: Pilot, now: datetime
) -> None:
    assert monitor.queues_due(now) == [pilot.queue_id]
    assert monitor.run_cycle(now)["asked"] == 1


def test_a_batch_system_that_was_asked_just_now_is_left_alone(pilot: Pilot, now: datetime) -> None:
    poll(now)

    assert monitor.queues_due(now) == []
    assert monitor.queues_due(now + timedelta(seconds=6)) == [pilot.queue_id]


def test_an_outage_of_our_own_costs_no_pilot(pilot: Pilot, now: datetime) -> None:
    work = claimed(pilot, now)
    assert work is not None
    Pilot.objects.update(heartbeat_at=now - timedelta(hours=1))

    monitor.run_cycle(now)
    assert fresh(pilot).state == "stalled"
    beat(fresh(pilot), [work.attempt], now=now)

    assert fresh(pilot).state == "running"
    assert Job.objects.get().state == "running"


def test_a_heartbeat_is_answered_with_the_attempts_to_stop(pilot: Pilot, now: datetime) -> None:
    work = claimed(pilot, now)
    assert work is not None
    strange = AttemptRef(work.attempt.job_id, 7)

    answer = beat(fresh(pilot), [work.attempt, strange], now=now)

    assert answer.kill == (strange,)
    assert not answer.is_drained


def test_a_pilot_that_says_goodbye_gives_its_job_back(pilot: Pilot, now: datetime) -> None:
    claimed(pilot, now)

    end_pilot(fresh(pilot), end="terminated", detail="SIGTERM", now=now)
    end_pilot(fresh(pilot), end="terminated", detail="SIGTERM", now=now)

    assert Job.objects.get().state == "waiting"
    assert fresh(pilot).state_reason == "terminated: SIGTERM"


def test_a_job_whose_input_does_not_exist_fails_with_its_name(
    pilot: Pilot, add_jobs, now: datetime
) -> None:
    factories.describe(Job.objects.all(), input_files=["gone.dat"])

    assert claimed(pilot, now) is None

    job = Job.objects.get()
    assert job.state == "failed"
    assert "gone.dat" in job.state_reason


def test_the_last_pilot_of_a_queue_is_cancelled_however_late_its_batch_system_answers(
    pilot: Pilot, elements, now: datetime
) -> None:
    element = elements["site-a"]
    remove_pilot(pilot.uuid, actor=factories.SYSTEM, reason="a black hole")
    element.fail_with = Unreachable("no answer")
    poll(now)
    minute = timedelta(minutes=1)
    assert monitor.queues_due(now + 10 * minute) == [pilot.queue_id]

    element.fail_with = None
    poll(now + 10 * minute)
    assert element.states[pilot.native_id].state == "cancelled"
    poll(now + 11 * minute)
    assert monitor.queues_due(now + 20 * minute) == []
