from __future__ import annotations

import threading
from collections import Counter

import pytest
from django.db import connections, transaction

from matching.needs import Needs
from matching.resources import Resource
from wms.core.models import User
from wms.taskqueues.models import TaskQueue, Ticket, WaitingJob
from wms.taskqueues.selectors import demands
from wms.taskqueues.services import Entry, claim, enqueue, remove_empty, withdraw

NODE = Resource("site-a", cpu_time_s=300_000, cores=4, memory_mb=4000, platform="linux")


def put(first_id: int, count: int = 1, **needs: object) -> None:
    wanted = Needs.of("alice", **needs)  # type: ignore[arg-type]
    enqueue([Entry(first_id + n, wanted) for n in range(count)])


def drain(resource: Resource = NODE) -> list[int]:
    taken = []
    while (job_id := claimed(resource)) is not None:
        taken.append(job_id)
    return taken


@transaction.atomic
def claimed(resource: Resource = NODE) -> int | None:
    found = claim(resource)
    return None if found is None else found.job_id


def test_jobs_with_equal_needs_share_a_task_queue(alice: User) -> None:
    put(1, 3, cpu_time_s=10)
    put(4, 2, cpu_time_s=499)
    put(6, 1, cpu_time_s=501)

    assert [(demand.needs.cpu_time_s, demand.waiting_jobs) for demand in demands()] == [
        (500, 5),
        (5_000, 1),
    ]


def test_the_highest_cpu_segment_goes_first_and_then_the_oldest_job(alice: User) -> None:
    put(1, cpu_time_s=400)
    put(2, 2, cpu_time_s=40_000)
    put(4, cpu_time_s=4_000)

    assert [sorted(drain()[:2])] == [[2, 3]]


@pytest.mark.parametrize(
    "needs",
    [
        {"cores": 5},
        {"memory_mb": 4001},
        {"sites": ["site-b"]},
        {"banned_sites": ["site-a"]},
        {"platforms": ["arm"]},
        {"tags": ["gpu"]},
    ],
)
def test_a_job_that_does_not_fit_is_not_given(alice: User, needs: dict[str, object]) -> None:
    put(1, **needs)

    assert claimed(NODE) is None
    assert NODE.refusal(Needs.of("alice", **needs)) != ""  # type: ignore[arg-type]
    assert WaitingJob.objects.count() == 1


def test_a_job_is_not_given_to_a_node_with_too_little_time(alice: User) -> None:
    put(1, cpu_time_s=501)

    assert claimed(Resource("site-a", cpu_time_s=4_999, memory_mb=10)) is None
    assert claimed(Resource("site-a", cpu_time_s=5_000, memory_mb=10)) == 1


def test_a_job_that_fits_is_given_whatever_else_it_says(alice: User) -> None:
    put(1, cores=4, memory_mb=4000, sites=["site-a", "b"], banned_sites=["c"], platforms=["linux"])

    assert claimed(NODE) == 1


def test_the_draw_is_in_proportion_to_the_priorities(alice: User) -> None:
    put(1, 400, memory_mb=1)
    put(1001, 400, memory_mb=2)
    Ticket.objects.filter(task_queue__memory_mb=2).update(priority=4.0)
    Ticket.objects.filter(task_queue__memory_mb=1).update(priority=1.0)

    drawn = Counter("heavy" if (claimed(NODE) or 0) > 1000 else "light" for _ in range(400))

    # 4 : 1 gives 320 of 400 with a binomial spread of 8; six of it on either side is sure.
    assert 272 <= drawn["heavy"] <= 368


def test_a_withdrawn_job_is_not_given(alice: User) -> None:
    put(1, 2)

    withdraw([1])

    assert drain() == [2]


def test_a_claim_that_is_rolled_back_leaves_the_job_in_its_place(alice: User) -> None:
    put(1, 2)

    with transaction.atomic():
        assert claimed(NODE) in {1, 2}
        transaction.set_rollback(True)

    assert sorted(drain()) == [1, 2]


def test_empty_task_queues_go_and_those_with_jobs_stay(alice: User) -> None:
    put(1, memory_mb=1)
    put(2, memory_mb=2)
    withdraw([1])

    assert remove_empty() == 1
    assert TaskQueue.objects.get().memory_mb == 2
    assert drain() == [2]


def _in_threads(*works) -> None:
    errors: list[Exception] = []

    def guarded(work) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told by the assertion below
            errors.append(error)
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.django_db(transaction=True)
def test_many_claims_at_once_give_each_job_exactly_once(alice: User) -> None:
    put(1, 200)
    put(201, 100, memory_mb=5)
    taken: list[int] = []

    _in_threads(*[lambda: taken.extend(drain())] * 6)

    assert sorted(taken) == list(range(1, 301))


@pytest.mark.django_db(transaction=True)
def test_a_claim_does_not_wait_for_another_one_that_is_not_committed(alice: User) -> None:
    put(1, 2)
    other: list[int | None] = []

    with transaction.atomic():
        assert claimed(NODE) == 1
        _in_threads(lambda: other.append(claimed(NODE)), lambda: None)

    assert other == [2]


@pytest.mark.django_db(transaction=True)
def test_no_job_is_lost_when_its_task_queue_is_removed_at_that_moment(alice: User) -> None:
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

    _in_threads(submit_jobs, empty_and_sweep, empty_and_sweep)
    taken.extend(drain())

    assert sorted(taken) == list(range(1, 151))
