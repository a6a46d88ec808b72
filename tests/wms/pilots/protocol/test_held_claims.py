"""Held claims: a pilot's claim waits until there is a job."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connections

from tests.wms.pilots.claiming import job_of, running_pilot, submit
from wms.core.models import User
from wms.pilots.models import Pilot
from wms.pilots.protocol.claims import ClaimAnswer
from wms.pilots.protocol.held_claims import claim_and_wait
from wms.pilots.protocol.refusals import RetryWhen
from wms.pilots.protocol.waiting_list import WAITING_LIST
from wms.sites.selectors import queue_offer
from wms.taskqueues.models import WaitingJob

pytestmark = pytest.mark.django_db(transaction=True)

Answer = tuple[ClaimAnswer, bool]


@pytest.fixture(autouse=True)
def _room_hears(db: None, settings) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_POLL_S": 1.0}
    WAITING_LIST._listener.start()
    _until(lambda: WAITING_LIST._listener.hears)


def _until(is_so: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(1000):
        if is_so():
            return
        waiting.wait(0.02)
    raise AssertionError("it did not come to that")


def _ask(pilot: Pilot, wait_s: float = 5.0) -> Answer:
    offer = queue_offer(pilot.queue)
    return claim_and_wait(pilot, offer, claim_key=secrets.token_hex(16), wait_s=wait_s)


@contextmanager
def _asking(*pilots: Pilot) -> Iterator[dict[int, Answer]]:
    """Each of the pilots asks meanwhile, one after another; all have their answer at the end."""
    answers: dict[int, Answer] = {}

    def ask(pilot: Pilot) -> None:
        try:
            answers[pilot.pk] = _ask(pilot)
        finally:
            connections.close_all()

    threads = []
    for number, pilot in enumerate(pilots, 1):
        threads.append(threading.Thread(target=ask, args=(pilot,)))
        threads[-1].start()
        _until(lambda number=number: len(WAITING_LIST._slots) == number)  # type: ignore[misc]
        _until(lambda pilot=pilot: Pilot.objects.get(pk=pilot.pk).fruitless_at is not None)  # type: ignore[misc]
    yield answers
    for thread in threads:
        thread.join()


def test_who_waits_is_given_a_job_when_it_comes(make_queue, alice: User) -> None:
    pilot = running_pilot(make_queue())

    with _asking(pilot) as answers:
        job = submit(alice)

    answer, is_held = answers[pilot.pk]
    assert (job_of(answer), is_held) == (job, False)


def test_who_waits_in_vain_is_told_so_and_that_it_was_held(make_queue) -> None:
    answer, is_held = _ask(running_pilot(make_queue()), wait_s=0.2)

    assert (answer.work, answer.until, is_held) == (None, RetryWhen.JOBS, True)


def test_a_job_that_the_longest_waiting_cannot_run_goes_to_the_next(
    make_queue, alice: User
) -> None:
    small, large = running_pilot(make_queue("b", cores=1)), running_pilot(make_queue(cores=8))

    with _asking(small, large) as answers:
        job = submit(alice, cores=4)

    assert (job_of(answers[small.pk][0]), job_of(answers[large.pk][0])) == (None, job)


def test_jobs_of_one_submission_call_so_many_pilots(make_queue, add_jobs) -> None:
    queue = make_queue()
    pilots = [running_pilot(queue) for _ in range(3)]

    with _asking(*pilots) as answers:
        add_jobs(3)

    assert not WaitingJob.objects.exists()
    assert None not in {job_of(answer) for answer, _ in answers.values()}


def test_who_has_to_rest_looks_when_it_has_rested(make_queue, alice: User) -> None:
    pilot = running_pilot(make_queue())
    _ask(pilot, wait_s=0.01)
    job = submit(alice)

    answer, _ = _ask(pilot)

    assert job_of(answer) == job


def test_who_is_to_take_no_more_jobs_does_not_wait(make_queue) -> None:
    pilot = running_pilot(make_queue())
    Pilot.objects.filter(pk=pilot.pk).update(drain_reason="x")

    answer, is_held = _ask(pilot)

    assert (answer.work, answer.until, is_held) == (None, RetryWhen.OTHER, False)


def test_who_finds_no_place_is_answered_at_once(make_queue, settings) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_HELD_CLAIMS": 0}

    answer, is_held = _ask(running_pilot(make_queue()))

    assert (answer.work, is_held) == (None, False)


def test_who_is_gone_when_a_job_comes_is_not_given_it(make_queue, alice: User) -> None:
    pilot = running_pilot(make_queue())
    looked = threading.Event()

    def is_there() -> bool:
        looked.set()
        return False

    submitting = threading.Thread(target=_submit_when_somebody_waits, args=(alice,))
    submitting.start()
    answer, is_held = claim_and_wait(
        pilot, queue_offer(pilot.queue), claim_key="a" * 32, wait_s=5.0, is_there=is_there
    )
    submitting.join()

    assert (answer.work, is_held, looked.is_set()) == (None, False, True)
    assert WaitingJob.objects.count() == 1


def _submit_when_somebody_waits(owner: User) -> None:
    try:
        _until(lambda: Pilot.objects.exclude(fruitless_at=None).exists())
        submit(owner)
    finally:
        connections.close_all()


def test_who_waits_lets_others_work_meanwhile(make_queue) -> None:
    pilot = running_pilot(make_queue())
    seen: list[str] = []

    @contextmanager
    def resting() -> Iterator[None]:
        seen.append("rests")
        yield
        seen.append("works")

    claim_and_wait(
        pilot, queue_offer(pilot.queue), claim_key="a" * 32, wait_s=0.01, resting=resting
    )

    assert seen == ["rests", "works"]
