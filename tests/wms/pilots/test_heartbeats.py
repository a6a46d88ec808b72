from __future__ import annotations

from datetime import timedelta

import pytest

from tests.wms.pilots.claiming import NOW, ask, beat, running_pilot, submit
from wms.core.actors import Actor
from wms.core.errors import NotAuthenticated
from wms.core.models import AuditEntry, User
from wms.jobs import services as jobs
from wms.jobs.models import Attempt, JobEvent
from wms.jobs.steering import peek_at_job
from wms.pilots.models import Pilot, PilotEvent
from wms.pilots.references import AttemptRef
from wms.pilots.services import end_pilot
from wms.pilots.steering import drain_pilot, stop_after_job


@pytest.fixture
def pilot(make_queue) -> Pilot:
    return running_pilot(make_queue(cores=4, memory_mb=8000))


@pytest.fixture
def ref(pilot: Pilot, alice: User) -> AttemptRef:
    submit(alice)
    work = ask(pilot).work
    assert work is not None
    return work.attempt


def test_what_payloads_use_is_kept_with_their_attempts(pilot: Pilot, ref: AttemptRef) -> None:
    beat(pilot, [ref], usage={ref: {"wall_s": 5.0, "memory_mb": 100.0}}, sequence=1)

    assert Attempt.objects.get().usage == {"wall_s": 5.0, "memory_mb": 100.0}


def test_an_older_heartbeat_that_comes_late_undoes_nothing(pilot: Pilot, ref: AttemptRef) -> None:
    beat(pilot, [ref], usage={ref: {"wall_s": 9.0}}, load={"load_1min": 2.0}, sequence=3)
    beat(pilot, [ref], usage={ref: {"wall_s": 4.0}}, load={"load_1min": 1.0}, sequence=2)

    pilot.refresh_from_db()
    assert Attempt.objects.get().usage == {"wall_s": 9.0}
    assert (pilot.heartbeat_sequence, pilot.load) == (3, {"load_1min": 2.0})


def test_use_of_an_attempt_that_is_over_does_not_count(pilot: Pilot, ref: AttemptRef) -> None:
    jobs.kill_jobs([ref.job_id], actor=Actor.system("test"), reason="no")

    beat(pilot, [ref], usage={ref: {"wall_s": 5.0}}, sequence=1)

    assert Attempt.objects.get().usage is None


def test_the_reason_of_a_kill_is_told(pilot: Pilot, ref: AttemptRef) -> None:
    jobs.kill_jobs([ref.job_id], actor=Actor.system("test"), reason="wrong input")

    answer = beat(pilot, [ref])

    assert answer.kill == (ref,)
    assert answer.kill_reasons == {ref: "wrong input"}


def test_a_pilot_that_still_runs_what_was_taken_for_lost_is_written_down_once(
    pilot: Pilot, ref: AttemptRef
) -> None:
    jobs.reschedule_jobs_of_pilots(
        [pilot.pk], outcome=Attempt.Outcome.LOST, actor=Actor.system("test"), reason="silence"
    )

    for _ in range(3):
        assert beat(pilot, [ref]).kill == (ref,)

    late = JobEvent.objects.get(event="late")
    assert late.facts == {"attempt": ref.number, "message": "heartbeat"}


def test_a_peek_is_asked_for_in_several_answers_and_not_for_ever(
    pilot: Pilot, ref: AttemptRef, alice: User
) -> None:
    peek_at_job(ref.job_id, actor=Actor.person(alice), now=NOW)

    assert beat(pilot, [ref]).peek == (ref,)
    assert beat(pilot, [ref], now=NOW + timedelta(seconds=10)).peek == (ref,)
    assert beat(pilot, [ref], now=NOW + timedelta(minutes=10)).peek == ()


def test_a_drained_pilot_is_told_so_and_gets_no_job(
    pilot: Pilot, ref: AttemptRef, alice: User, sam: User
) -> None:
    submit(alice)

    drain_pilot(pilot.uuid, actor=Actor.person(sam), reason="new kernel")

    answer = beat(pilot, [ref])
    assert (answer.is_drained, answer.drain_reason) == (True, "new kernel")
    assert answer.kill == ()
    assert ask(pilot).reason == "the pilot is to take no more jobs: new kernel"
    assert PilotEvent.objects.get(event="drain").facts == {"reason": "new kernel"}
    assert AuditEntry.objects.get(action="drain pilot").target == f"pilot {pilot.pk}"


def test_the_pilot_of_a_job_is_stopped_after_it(pilot: Pilot, ref: AttemptRef, sam: User) -> None:
    stop_after_job(ref.job_id, actor=Actor.person(sam), reason="a bad disk")

    assert beat(pilot, [ref]).drain_reason == "a bad disk"


def test_a_wrong_token_moves_nothing(pilot: Pilot) -> None:
    pilot.token_sha256 = "0" * 64

    with pytest.raises(NotAuthenticated):
        beat(pilot)

    assert Pilot.objects.get().heartbeat_at is None


def test_a_pre_empted_pilot_costs_its_jobs_no_attempt(pilot: Pilot, ref: AttemptRef) -> None:
    for _ in range(2):
        end_pilot(pilot, reason="preempted", detail="SIGTERM", now=NOW)

    attempt = Attempt.objects.select_related("job").get()
    assert (attempt.job.state, attempt.job.max_attempts) == ("waiting", 6)
    assert attempt.outcome == "lost"
