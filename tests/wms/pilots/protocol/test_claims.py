"""Claims of pilots: one key and one job, free resources, jobs given back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from matching.task_queues.needs import Needs
from tests.statements import carried_out_by
from tests.wms.pilots.claiming import NOW, SYSTEM, ask, in_threads, job_of, running_pilot, submit
from wms.core.actors import Actor
from wms.core.errors import NotAuthenticated
from wms.core.models import User
from wms.jobs.attempts.ending import PayloadEnd, end_attempt, return_job
from wms.jobs.models import Attempt, Job
from wms.jobs.operations import JobSpec, create_workspace, submit_jobs
from wms.jobs.selectors import held_in_pilot
from wms.pilots.models import Pilot
from wms.pilots.monitoring import monitor
from wms.pilots.protocol import registration
from wms.pilots.protocol.claims import ClaimAnswer
from wms.pilots.protocol.refusals import RetryWhen
from wms.pilots.protocol.registration import end_pilot
from wms.taskqueues.models import WaitingJob

pytestmark = pytest.mark.django_db


def test_the_same_key_is_given_the_same_attempt_while_it_is_open(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue(cores=4))
    add_jobs(2)

    first = ask(pilot, key="a" * 32)
    again = ask(pilot, key="a" * 32)
    other = ask(pilot, key="b" * 32)

    assert first == again
    assert job_of(other) not in {None, job_of(first)}
    assert Attempt.objects.count() == 2


def test_the_same_key_is_given_its_job_again_even_when_nothing_is_free_any_more(
    make_queue, add_jobs
) -> None:
    pilot = running_pilot(make_queue(cores=1))
    add_jobs(2)

    assert job_of(ask(pilot, key="a" * 32)) == job_of(ask(pilot, key="a" * 32, cores=0))


def test_a_key_whose_attempt_was_closed_gets_no_second_job(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue(cores=4))
    add_jobs(2)
    work = ask(pilot, key="a" * 32).work
    assert work is not None
    return_job(
        work.job.pk, work.attempt.number, pilot_id=pilot.pk, reason="disk full", actor=SYSTEM
    )

    answer = ask(pilot, key="a" * 32)

    assert answer.work is None
    assert answer.reason.endswith("not_run")
    assert WaitingJob.objects.count() == 2


def test_a_key_of_another_pilot_is_another_key(make_queue, add_jobs) -> None:
    queue = make_queue()
    add_jobs(2)

    first = ask(running_pilot(queue), key="a" * 32)
    second = ask(running_pilot(queue), key="a" * 32)

    assert {job_of(first), job_of(second)} == set(Job.objects.values_list("pk", flat=True))


@pytest.mark.django_db(transaction=True)
def test_claims_at_once_under_one_key_get_one_job(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue(cores=8))
    add_jobs(8)
    found: list[int | None] = []

    in_threads(*[lambda: found.append(job_of(ask(pilot, key="a" * 32)))] * 6)

    assert len(found) == 6
    assert len(set(found)) == 1
    assert Attempt.objects.count() == 1


def test_a_pilot_claims_until_it_is_full_and_goes_on_when_a_job_has_ended(
    make_queue, add_jobs
) -> None:
    pilot = running_pilot(make_queue(cores=3))
    add_jobs(5)

    works = [ask(pilot).work for _ in range(3)]
    full = ask(pilot)

    assert full.work is None
    assert "no core" in full.reason
    assert works[0] is not None
    ended = PayloadEnd(exit_code=0)
    attempt = works[0].attempt
    end_attempt(attempt.job_id, attempt.number, pilot_id=pilot.pk, end=ended, actor=SYSTEM, now=NOW)
    assert job_of(ask(pilot)) is not None
    assert ask(pilot).work is None


@pytest.fixture
def poll_s(settings) -> float:
    """How often an idle pilot asks: one that asked in vain has to rest for half of it."""
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_POLL_S": 1.0}
    return 1.0


def test_who_asked_in_vain_a_moment_ago_is_told_no_without_a_draw(
    make_queue, add_jobs, poll_s: float
) -> None:
    queue = make_queue()
    pilot, other = running_pilot(queue), running_pilot(queue)
    assert "fits" in ask(pilot).reason
    add_jobs(2)

    assert ask(pilot, now=NOW + timedelta(seconds=0.4)).until is RetryWhen.REST
    assert ask(pilot, now=NOW - timedelta(seconds=0.4)).until is RetryWhen.REST
    assert ask(other).work is not None
    # Asking too soon makes the rest no longer; the draw took some milliseconds.
    assert ask(pilot, now=NOW + timedelta(seconds=0.9)).work is not None


def test_who_has_to_rest_costs_two_small_queries(make_queue, poll_s: float) -> None:
    pilot = running_pilot(make_queue())
    ask(pilot)
    answers = []

    assert carried_out_by(lambda: answers.append(ask(pilot))) == ["UPDATE", "SELECT"]
    assert [answer.until for answer in answers] == [RetryWhen.REST]


def test_a_longer_poll_period_makes_no_rest_beyond_a_second(make_queue, settings) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_POLL_S": 60.0}
    pilot = running_pilot(make_queue())
    ask(pilot)

    assert "again 1 s" in ask(pilot).reason
    assert "fits" in ask(pilot, now=NOW + timedelta(seconds=1.5)).reason


def test_an_open_attempt_is_given_again_to_who_has_to_rest(
    make_queue, add_jobs, poll_s: float
) -> None:
    pilot = running_pilot(make_queue(cores=2))
    add_jobs(1)
    given = ask(pilot, key="a" * 32)
    assert ask(pilot).work is None
    assert ask(pilot).until is RetryWhen.REST

    assert given.work is not None
    assert ask(pilot, key="a" * 32) == given


def test_who_was_given_a_job_need_not_rest(make_queue, add_jobs, poll_s: float) -> None:
    pilot = running_pilot(make_queue(cores=8))
    add_jobs(3)

    assert [job_of(ask(pilot)) is not None for _ in range(4)] == [True, True, True, False]


@pytest.mark.django_db(transaction=True)
def test_of_many_fruitless_claims_at_once_one_is_drawn_for(make_queue, poll_s: float) -> None:
    pilot = running_pilot(make_queue())
    answers: list[ClaimAnswer] = []

    in_threads(*[lambda: answers.append(ask(pilot))] * 6)

    assert [answer.until for answer in answers].count(RetryWhen.REST) == 5


def test_a_job_gets_as_many_free_cores_as_it_can_use(make_queue, alice: User) -> None:
    pilot = running_pilot(make_queue(cores=8))
    for most in (3, 16, 1):
        submit(alice, cores=1, max_cores=most)

    given = {}
    while work := ask(pilot).work:
        given[work.job.needs["max_cores"]] = work.cores

    # Which job comes first is drawn; each takes what it can, and the large one all that is left.
    assert sum(given.values()) == 8
    assert all(cores <= most for most, cores in given.items())
    assert given == {each.job.needs["max_cores"]: each.cores for each in Attempt.objects.all()}


@pytest.mark.parametrize(
    ("offer", "needs", "taken"),
    [
        ({"cores": 4, "memory_mb": 4000}, {"memory_mb": 1500}, 2),
        ({"cores": 4, "memory_mb": 4000}, {"cores": 2}, 2),
        ({"cores": 4, "memory_mb": 4000, "gpus": 3}, {"gpus": 1}, 3),
        ({"cores": 4, "memory_mb": 4000, "gpus": 0}, {"gpus": 1}, 0),
    ],
)
def test_cores_memory_and_gpus_are_never_given_twice(
    make_queue, add_jobs, offer: dict[str, int], needs: dict[str, int], taken: int
) -> None:
    pilot = running_pilot(make_queue(**offer))
    add_jobs(6, **needs)

    answers = [ask(pilot) for _ in range(6)]

    assert [job_of(answer) is not None for answer in answers] == [True] * taken + [False] * (
        6 - taken
    )


def test_disk_space_is_never_given_twice(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue(cores=8, memory_mb=8000, payload_limits={"disk_mb": 500}))
    pilot.node = {**pilot.node, "disk_mb": 1000}
    add_jobs(4, disk_mb=400)

    answers = [ask(pilot) for _ in range(3)]

    assert [job_of(answer) is not None for answer in answers] == [True, True, False]
    assert held_in_pilot(pilot.pk)["disk_mb"] == 800
    Attempt.objects.filter(job_id=job_of(answers[0])).update(outcome="failed")
    assert ask(pilot, disk_mb=399).work is None
    assert ask(pilot).work is not None


def test_a_pilot_that_says_it_has_less_gets_less(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue(cores=8, memory_mb=8000))
    add_jobs(1, cores=4, memory_mb=4000)

    assert ask(pilot, cores=3).work is None
    assert ask(pilot, memory_mb=3999).work is None
    assert ask(pilot, cores=4, memory_mb=4000).work is not None


def test_a_pilot_that_says_it_has_more_than_its_queue_gets_no_more(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue(cores=2))
    add_jobs(1, cores=4)

    answer = ask(pilot, cores=64)

    assert answer.work is None
    assert "cores 2, memory 2000 MB" in answer.reason


@pytest.mark.django_db(transaction=True)
def test_claims_at_once_never_give_more_than_the_pilot_has(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue(cores=5, memory_mb=4000))
    add_jobs(10, memory_mb=1000)

    in_threads(*[lambda: ask(pilot)] * 10)

    assert Attempt.objects.count() == 4


def test_a_job_whose_inputs_are_gone_fails_and_the_pilot_is_told(make_queue, alice: User) -> None:
    pilot = running_pilot(make_queue())
    spec = JobSpec("run", "/bin/true", Needs.of("alice"), input_files=("gone.txt",))
    workspace = create_workspace(alice, {})
    submit_jobs([spec], owner=alice, workspace=workspace, actor=Actor.person(alice))

    answer = ask(pilot)

    assert answer.work is None
    assert "gone.txt" in answer.reason
    assert Job.objects.get().state == "failed"


def test_a_job_that_is_drawn_and_waits_no_more_is_not_given(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue())
    add_jobs(1)
    Job.objects.update(state="killed")

    answer = ask(pilot)

    assert "not waiting" in answer.reason
    assert not Attempt.objects.exists()


def test_a_job_whose_pilot_dies_before_it_starts_waits_at_its_old_place(
    make_queue, add_jobs
) -> None:
    queue = make_queue()
    dying = running_pilot(queue)
    ids = add_jobs(11)
    assert job_of(ask(dying)) in ids[:10]

    end_pilot(dying, end="terminated", detail="", now=NOW)

    waiting = WaitingJob.objects.order_by("job_id").values_list("job_id", flat=True)
    assert list(waiting) == ids
    # One of the ten oldest is drawn: the job that came back is one of them again.
    assert job_of(ask(running_pilot(queue))) in ids[:10]


def test_all_jobs_of_a_pilot_that_falls_silent_wait_again(make_queue, add_jobs) -> None:
    queue = make_queue(cores=4)
    silent, other = running_pilot(queue), running_pilot(queue)
    add_jobs(3)
    for _ in range(3):
        assert ask(silent).work is not None
    Pilot.objects.filter(pk=other.pk).update(heartbeat_at=NOW + timedelta(minutes=2))

    assert monitor.stall_silent(NOW + timedelta(minutes=1)) == 1
    assert Job.objects.filter(state="stalled").count() == 3
    Pilot.objects.filter(pk=silent.pk).update(state_since=NOW)
    assert monitor.give_up_stalled(NOW + timedelta(minutes=60)) == 1

    assert WaitingJob.objects.count() == 3
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"lost"}


def test_a_pilot_that_has_ended_gets_nothing(make_queue, add_jobs) -> None:
    pilot = running_pilot(make_queue())
    add_jobs(1)
    end_pilot(pilot, end="idle", detail="", now=NOW)

    assert "has ended" in ask(pilot).reason
    with pytest.raises(NotAuthenticated):
        ask(registration.authenticate_pilot(pilot.uuid, "t" * 64, now=NOW))
