"""Many clients at once: no job is lost, none is given twice, nobody waits for another."""

from __future__ import annotations

import random
import threading

import pytest
from django.db import transaction
from django.db.models import Count, Sum

from tests.wms.taskqueues.claiming import claimed, drain, in_threads, put
from wms.taskqueues.models import Tally, TaskQueue, Ticket, WaitingJob
from wms.taskqueues.operations import remove_empty, withdraw
from wms.taskqueues.priorities import recompute
from wms.taskqueues.waiting import fold_tally

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alice")]


def assert_counts_are_right() -> None:
    """The tally, the rows, and the tickets tell the same."""
    tallied = Tally.objects.values("task_queue_id", "priority").annotate(n=Sum("jobs"))
    rows = WaitingJob.objects.values("task_queue_id", "priority").annotate(n=Count("pk"))
    counts = {(r["task_queue_id"], r["priority"]): r["n"] for r in tallied if r["n"]}
    assert counts == {(r["task_queue_id"], r["priority"]): r["n"] for r in rows}
    assert set(Ticket.objects.values_list("pk", flat=True)) == set(
        TaskQueue.objects.values_list("pk", flat=True)
    )


def test_many_claims_at_once_give_each_job_exactly_once() -> None:
    put(1, 200)
    put(201, 100, memory_mb=5)
    taken: list[int] = []

    in_threads(*[lambda: taken.extend(drain())] * 6)

    assert sorted(taken) == list(range(1, 301))
    assert not TaskQueue.objects.exists()
    assert_counts_are_right()


def test_a_claim_does_not_wait_for_another_one_that_is_not_committed() -> None:
    put(1, 2)
    other: list[int | None] = []

    with transaction.atomic():
        mine = claimed()
        in_threads(lambda: other.append(claimed()))

    assert {mine, *other} == {1, 2}


def test_a_task_queue_gives_its_eleventh_job_while_the_oldest_ten_are_being_taken() -> None:
    put(1, 12)
    others: list[int | None] = []

    with transaction.atomic():
        mine = [claimed() for _ in range(10)]
        in_threads(lambda: others.extend([claimed(), claimed(), claimed()]))

    assert sorted([*mine, *others[:2]]) == list(range(1, 13))
    assert others[2] is None


def test_a_claim_does_not_wait_for_a_submission_or_a_recomputation() -> None:
    put(1, 2)
    found: list[int | None] = []

    with transaction.atomic():
        put(3, 2)
        put(5, memory_mb=7)
        recompute()
        in_threads(lambda: found.append(claimed()))

    assert found[0] in {1, 2}


def test_two_submissions_to_one_task_queue_do_not_wait_for_each_other() -> None:
    put(1)

    with transaction.atomic():
        put(2)
        in_threads(lambda: put(3))

    assert sorted(drain()) == [1, 2, 3]


def test_two_submissions_that_make_the_same_task_queues_make_them_once() -> None:
    barrier = threading.Barrier(4)

    def submit(first: int) -> None:
        barrier.wait()
        for number in range(20):
            put(first + number, memory_mb=number)

    in_threads(*[lambda first=first: submit(first) for first in (1, 101, 201, 301)])

    assert TaskQueue.objects.count() == 20
    assert WaitingJob.objects.count() == 80
    assert_counts_are_right()


@pytest.mark.slow
def test_no_job_is_lost_when_its_task_queue_is_removed_at_that_moment() -> None:
    stop = threading.Event()

    def submit_jobs() -> None:
        try:
            for number in range(1, 151):
                put(number, memory_mb=number % 2)
        finally:
            stop.set()

    taken: list[int] = []

    def empty_and_sweep() -> None:
        while not stop.is_set():
            taken.extend(drain())
            remove_empty()

    in_threads(submit_jobs, empty_and_sweep, empty_and_sweep)
    taken.extend(drain())

    assert sorted(taken) == list(range(1, 151))
    assert_counts_are_right()


class Traffic:
    """Submissions, withdrawals, claims and housekeeping until all is submitted."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.taken: list[int] = []
        self.withdrawn: list[int] = []

    def submit(self, first: int) -> None:
        rng = random.Random(first)
        for number in range(first, first + 120, 4):
            put(number, 4, memory_mb=rng.randrange(6), priority=rng.randrange(11))

    def take_back(self) -> None:
        rng = random.Random(7)
        for _ in range(30):
            some = [rng.randrange(1, 241) for _ in range(3)]
            with transaction.atomic():
                rows = WaitingJob.objects.filter(job_id__in=some).order_by("job_id")
                mine = list(rows.select_for_update().values_list("job_id", flat=True))
                withdraw(mine)
            self.withdrawn += mine

    def submit_all(self) -> None:
        try:
            in_threads(lambda: self.submit(1), lambda: self.submit(121), self.take_back)
        finally:
            self.over.set()

    def keep_house(self) -> None:
        while not self.over.is_set():
            recompute()
            fold_tally()
            remove_empty()

    def claim(self) -> None:
        while not self.over.is_set():
            self.taken += drain()


@pytest.mark.slow
def test_everything_at_once_loses_and_doubles_nothing() -> None:
    traffic = Traffic()

    in_threads(
        traffic.submit_all, traffic.keep_house, traffic.keep_house, traffic.claim, traffic.claim
    )

    assert sorted([*traffic.taken, *traffic.withdrawn, *drain()]) == list(range(1, 241))
    remove_empty()
    assert not TaskQueue.objects.exists()
    assert_counts_are_right()
