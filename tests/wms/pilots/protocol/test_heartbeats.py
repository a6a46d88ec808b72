from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from tests import factories
from tests.wms.pilots.claiming import NOW, ask, beat, running_pilot, submit
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotAuthenticated, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.jobs import operations as jobs
from wms.jobs.attempts import rescheduling
from wms.jobs.models import Attempt, JobEvent
from wms.jobs.services import peek_at_job
from wms.pilots.models import Pilot, PilotEvent
from wms.pilots.monitoring import monitor
from wms.pilots.policy import steered_queues
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.registration import attempt_token, authenticate_pilot, end_pilot
from wms.pilots.services import drain_pilot, remove_pilot, stop_after_job
from wms.pilots.states import TOKEN_GRACE
from wms.sites.services import save_site


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
    rescheduling.reschedule_jobs_of_pilots(
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
    assert ask(pilot).reason.endswith(": new kernel")
    assert PilotEvent.objects.get(event="drain").facts == {"reason": "new kernel"}
    assert AuditEntry.objects.get(action="drain pilot").target == f"pilot {pilot.pk}"


def test_a_removed_pilot_stops_at_once_and_its_job_loses_no_attempt(
    pilot: Pilot, ref: AttemptRef, sam: User
) -> None:
    remove_pilot(pilot.uuid, actor=Actor.person(sam), reason="a black hole")

    removed = Pilot.objects.get()
    assert (removed.state, removed.state_reason) == ("removed", "a black hole")
    assert removed.ended_at is not None
    attempt = Attempt.objects.select_related("job").get()
    assert (attempt.outcome, attempt.job.state, attempt.job.max_attempts) == ("lost", "waiting", 6)
    assert AuditEntry.objects.get(action="remove pilot").reason == "a black hole"
    answer = beat(pilot, [ref])
    assert (answer.is_drained, answer.kill) == (True, (ref,))


def test_a_pilot_is_removed_once_with_a_reason_and_by_a_shifter(
    pilot: Pilot, alice: User, sam: User
) -> None:
    for actor, reason, refusal in (
        (Actor.person(alice), "no", NotPermitted),
        (Actor.person(sam), " ", ReasonRequired),
    ):
        with pytest.raises(refusal):
            remove_pilot(pilot.uuid, actor=actor, reason=reason)
    assert Pilot.objects.get().state == "running"

    remove_pilot(pilot.uuid, actor=Actor.person(sam), reason="a black hole")
    with pytest.raises(Conflict):
        remove_pilot(pilot.uuid, actor=Actor.person(sam), reason="again")
    with pytest.raises(NotFound):
        remove_pilot(uuid4(), actor=Actor.person(sam), reason="a black hole")


def test_administrators_of_a_site_steer_its_pilots_and_no_others(pilot: Pilot, sam: User) -> None:
    people = factories.people()
    tina, tom = people.tina, people.tom
    for site, administrator in ((pilot.queue.site, tina), (factories.site("Elsewhere"), tom)):
        save_site(site, actor=factories.SYSTEM, administrators=[administrator])

    with pytest.raises(NotPermitted):
        remove_pilot(pilot.uuid, actor=Actor.person(tom), reason="a black hole")
    removed = remove_pilot(pilot.uuid, actor=Actor.person(tina), reason="a black hole")

    assert removed.state == "removed"
    assert steered_queues(tina, [pilot.queue_id]) == {pilot.queue_id}
    assert steered_queues(tom, [pilot.queue_id]) == set()
    assert steered_queues(sam, [pilot.queue_id]) == [pilot.queue_id]


def test_the_pilot_of_a_job_is_stopped_after_it(pilot: Pilot, ref: AttemptRef, sam: User) -> None:
    stop_after_job(ref.job_id, actor=Actor.person(sam), reason="a bad disk")

    assert beat(pilot, [ref]).drain_reason == "a bad disk"


def test_a_wrong_token_moves_nothing(pilot: Pilot) -> None:
    pilot.token_sha256 = "0" * 64

    with pytest.raises(NotAuthenticated):
        beat(pilot)

    assert Pilot.objects.get().heartbeat_at is None


def test_the_token_of_a_pilot_ends_a_short_time_after_it(pilot: Pilot, ref: AttemptRef) -> None:
    """What it still sends in this time is answered as ever; what it runs is to be stopped."""
    end_pilot(pilot, end="lifetime", detail="", now=NOW)
    last = NOW + TOKEN_GRACE - timedelta(seconds=1)
    over = NOW + TOKEN_GRACE

    assert beat(pilot, [ref], now=last).kill == (ref,)
    assert authenticate_pilot(pilot.uuid, "t" * 64, now=last).pk == pilot.pk
    with pytest.raises(NotAuthenticated):
        beat(pilot, [ref], now=over)
    with pytest.raises(NotAuthenticated):
        authenticate_pilot(pilot.uuid, "t" * 64, now=over)
    with pytest.raises(NotAuthenticated):
        authenticate_pilot(pilot.uuid, attempt_token(pilot, ref), attempt=ref, now=over)
    assert Pilot.objects.get().heartbeat_at == last


def test_a_pilot_that_was_silent_for_hours_is_welcome_as_long_as_it_is_not_given_up(
    pilot: Pilot, ref: AttemptRef
) -> None:
    """A portal that was down for hours hears its pilots again."""
    beat(pilot, [ref])
    later = NOW + timedelta(hours=2)
    monitor.stall_silent(later)

    assert authenticate_pilot(pilot.uuid, "t" * 64, now=later).state == "stalled"
    assert beat(pilot, [ref], now=later).kill == ()
    assert Pilot.objects.get().state == "running"


def test_a_pre_empted_pilot_costs_its_jobs_no_attempt(pilot: Pilot, ref: AttemptRef) -> None:
    for _ in range(2):
        end_pilot(pilot, end="preempted", detail="SIGTERM", now=NOW)

    attempt = Attempt.objects.select_related("job").get()
    assert (attempt.job.state, attempt.job.max_attempts) == ("waiting", 6)
    assert attempt.outcome == "lost"
