"""The draws in the database against `matching.task_queues.weighted_draws`, with fixed seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from django.db import connection, transaction

from matching.task_queues.resources import Resource
from matching.task_queues.weighted_draws import Law, chances, job_weight
from tests import chi_square
from tests.wms.taskqueues.claiming import NODE, claimed, put
from wms.taskqueues import waiting
from wms.taskqueues.draws import draw
from wms.taskqueues.models import TaskQueue, TaskQueuePolicy, Ticket

pytestmark = [pytest.mark.usefixtures("alice"), pytest.mark.slow]

DRAWS = 600
#: Priorities of TaskQueues by the memory that tells them apart here.
PRIORITIES = {1: 1.0, 2: 2.0, 3: 5.0, 4: 9.0, 5: 0.5}
LAWS = list(Law)


def seed(value: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(%s)", [value])


def use(law: Law) -> None:
    TaskQueuePolicy.objects.create(pk=1, law=law.value)


def give_priorities(priorities: Mapping[int, float], *, are_placed: bool) -> None:
    starts_at = 0.0
    for memory_mb, priority in priorities.items():
        tickets = Ticket.objects.filter(task_queue__memory_mb=memory_mb)
        tickets.update(priority=priority, starts_at=starts_at if are_placed else None)
        starts_at += priority


def counts_of(drawn: Callable[[], int], among: list[int]) -> list[int]:
    found = Counter(drawn() for _ in range(DRAWS))
    assert set(found) <= set(among)
    return [found[each] for each in among]


def drawn_memory(resource: Resource = NODE) -> int:
    candidate = draw.Draw(resource).next()
    assert candidate is not None
    return candidate.needs.memory_mb


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("are_placed", [True, False])
def test_task_queues_are_drawn_by_their_priorities(law: Law, are_placed: bool) -> None:
    use(law)
    for memory_mb in PRIORITIES:
        put(memory_mb, memory_mb=memory_mb)
    give_priorities(PRIORITIES, are_placed=are_placed)
    seed(0.1)

    counts = counts_of(drawn_memory, list(PRIORITIES))

    chi_square.assert_drawn(counts, chances(list(PRIORITIES.values()), law))


def test_new_task_queues_and_those_with_a_place_are_drawn_together() -> None:
    for memory_mb in PRIORITIES:
        put(memory_mb, memory_mb=memory_mb)
    give_priorities(PRIORITIES, are_placed=True)
    # Three lost their places: one at the beginning, one in the middle and the last one.
    Ticket.objects.filter(task_queue__memory_mb__in=[1, 3, 5]).update(starts_at=None)
    seed(0.2)

    counts = counts_of(drawn_memory, list(PRIORITIES))

    chi_square.assert_drawn(counts, chances(list(PRIORITIES.values()), Law.EXPONENTIAL))


@pytest.mark.parametrize("points", [0, 1, 3])
def test_those_that_do_not_fit_leave_the_proportions_of_the_others_as_they_are(
    points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few points miss often: then every TaskQueue is looked at, with the same chances.
    monkeypatch.setattr(draw, "_POINTS", points)
    for memory_mb in PRIORITIES:
        put(memory_mb, memory_mb=memory_mb, sites=["site-b"] if memory_mb in {3, 4} else [])
    give_priorities(PRIORITIES, are_placed=True)
    fitting = {memory_mb: PRIORITIES[memory_mb] for memory_mb in (1, 2, 5)}
    seed(0.3)

    counts = counts_of(drawn_memory, list(fitting))

    chi_square.assert_drawn(counts, chances(list(fitting.values()), Law.EXPONENTIAL))


@pytest.mark.parametrize("law", LAWS)
def test_the_second_draw_is_among_the_others(law: Law) -> None:
    use(law)
    for memory_mb in (1, 2, 3):
        put(memory_mb, memory_mb=memory_mb)
    give_priorities({1: 1.0, 2: 2.0, 3: 100.0}, are_placed=True)

    for _ in range(20):
        drawing = draw.Draw(NODE)
        found = [drawing.next() for _ in range(4)]
        memories = [candidate.needs.memory_mb for candidate in found if candidate]
        assert sorted(memories) == [1, 2, 3]
        assert found[3] is None


def taken_job(law: Law) -> int:
    """A job that is drawn from the only TaskQueue, and put back."""
    task_queue_id = TaskQueue.objects.values_list("pk", flat=True).get()
    with transaction.atomic():
        taken = waiting.take(task_queue_id, law)
        transaction.set_rollback(True)
    assert taken is not None
    return taken.job_id


@pytest.mark.parametrize("law", LAWS)
def test_every_job_counts_with_its_priority(law: Law) -> None:
    jobs = {1: 4, 3: 2, 8: 1}
    first = 1
    for priority, count in jobs.items():
        put(first, count, priority=priority)
        first += 100
    seed(0.4)

    counts = counts_of(lambda: [1, 3, 8][taken_job(law) // 100], list(jobs))

    each = chances([job_weight(p) for p, count in jobs.items() for _ in range(count)], law)
    expected = [sum(each[:4]), sum(each[4:6]), each[6]]
    chi_square.assert_drawn(counts, expected)


def test_of_the_drawn_priority_the_oldest_ten_are_equally_likely() -> None:
    put(1, 40)
    seed(0.5)

    counts = counts_of(lambda: taken_job(Law.EXPONENTIAL), list(range(1, 11)))

    chi_square.assert_drawn(counts, [0.1] * 10)


def test_priority_ten_goes_before_all_and_priority_zero_after_all() -> None:
    put(1, 5, priority=0)
    put(11, 5, priority=5)
    put(21, 5, priority=10)

    found = [claimed() for _ in range(15)]

    assert [number // 10 for number in found if number] == [2] * 5 + [1] * 5 + [0] * 5
