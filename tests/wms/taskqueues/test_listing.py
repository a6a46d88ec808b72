"""Lists of TaskQueues: what waits, in which order, and how a priority came about."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from matching.task_queues.needs import Needs
from tests import factories
from wms.accounting.models import AccountingGroup
from wms.accounting.services import save_group
from wms.core.errors import NotFound
from wms.core.models import User
from wms.taskqueues import listing, priorities
from wms.taskqueues.listing import Border, Order
from wms.taskqueues.models import TaskQueue, WaitingJob
from wms.taskqueues.operations import Entry, enqueue, withdraw

_WAIT = """
INSERT INTO taskqueues_waitingjob (task_queue_id, priority, job_id)
SELECT %s, 1, id FROM generate_series(%s, %s) AS id
"""


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


def _fill(owner: str, first_job: int, jobs: int, *, priority: int = 1, **needs: object) -> int:
    """A TaskQueue with jobs of these ids."""
    wanted = Needs.of(owner, **needs)  # type: ignore[arg-type]
    enqueue([Entry(first_job + number, wanted, priority) for number in range(jobs)])
    return TaskQueue.objects.get(key=wanted.key()).pk


def _ids(user: User, order: Order, *, limit: int = 50, after: Border | None = None) -> list[int]:
    chosen = listing.visible_task_queues(user)
    page = listing.task_queue_page(chosen, order=order, after=after, limit=limit)
    return [line.id for line in page.lines]


def test_the_orders_put_first_what_matters_most(people: SimpleNamespace) -> None:
    some = _fill("alice", 1, 3)
    many = _fill("alice", 100, 5, cores=2)
    urgent = _fill("bob", 200, 1, priority=9)
    now = timezone.now()
    for pk, days in ((some, 1), (many, 2), (urgent, 3)):
        WaitingJob.objects.filter(task_queue=pk).update(enqueued_at=now - timedelta(days=days))
    priorities.recompute()

    assert _ids(people.vera, Order.WAITING) == [many, some, urgent]
    assert _ids(people.vera, Order.OLDEST) == [urgent, many, some]
    assert _ids(people.vera, Order.PRIORITY) == [urgent, many, some]


@pytest.mark.parametrize("order", list(Order))
def test_pages_follow_each_other_without_loss_or_repetition(
    people: SimpleNamespace, order: Order
) -> None:
    for number in range(7):
        _fill("alice", 100 * number + 1, 1 + number // 3, memory_mb=number)
    chosen = listing.visible_task_queues(people.alice)

    walked: list[int] = []
    border: Border | None = None
    while True:
        page = listing.task_queue_page(chosen, order=order, after=border, limit=2)
        walked += [line.id for line in page.lines]
        if page.following is None:
            break
        border = Border.parse(str(page.following), order)

    assert walked == _ids(people.alice, order)
    assert len(walked) == 7


@pytest.mark.parametrize("text", ["", "x", "5", "5_x", "x_5", "1e5_3", "5_-1", "5_" + "9" * 30])
def test_a_border_that_was_made_up_is_none(text: str) -> None:
    assert Border.parse(text, Order.WAITING) is None


def test_a_line_tells_what_waits_and_since_when(people: SimpleNamespace) -> None:
    pk = _fill("alice", 1, 2, sites=["UW"], tags=["ssd"], max_cores=4, gpus=1)
    _fill("bob", 10, 1)
    WaitingJob.objects.filter(job_id=2).update(enqueued_at=timezone.now() - timedelta(hours=1))
    priorities.recompute()
    chosen = listing.visible_task_queues(people.alice)

    line = listing.task_queue_page(chosen, order=Order.WAITING, after=None, limit=9).lines[0]

    assert line.id == pk
    assert (line.needs.owner, line.needs.sites, line.needs.tags) == ("alice", ("UW",), ("ssd",))
    assert (line.needs.max_cores, line.needs.gpus, line.waiting_jobs) == (4, 1, 2)
    assert line.oldest_at == WaitingJob.objects.get(job_id=1).enqueued_at
    assert line.share == pytest.approx(0.5)


def test_an_emptied_task_queue_is_in_no_list(people: SimpleNamespace) -> None:
    pk = _fill("alice", 1, 2)
    withdraw([1, 2])
    chosen = listing.visible_task_queues(people.alice)

    assert TaskQueue.objects.filter(pk=pk).exists()
    assert _ids(people.alice, Order.WAITING) == []
    assert listing.counts_by_segment(chosen) == {}


def test_only_the_chosen_ones_are_listed_and_counted(people: SimpleNamespace) -> None:
    short = _fill("alice", 1, 2, cpu_time_s=10)
    _fill("alice", 10, 2, cpu_time_s=5000)
    _fill("bob", 20, 2, cpu_time_s=10)
    chosen = listing.visible_task_queues(people.alice).filter(owner=people.alice)

    page = listing.task_queue_page(chosen.filter(cpu_time_s=500), order=Order.WAITING, after=None,
                                   limit=9)  # fmt: skip

    assert [line.id for line in page.lines] == [short]
    assert listing.counts_by_segment(chosen) == {500: 1, 5000: 1}


def test_who_is_not_active_sees_none(people: SimpleNamespace) -> None:
    pk = _fill("alice", 1, 2)
    people.bob.is_active = False

    assert _ids(people.bob, Order.WAITING) == []
    with pytest.raises(NotFound):
        listing.find_task_queue_detail(people.bob, pk)


def test_the_detail_counts_by_job_priority_and_names_the_oldest_jobs(
    people: SimpleNamespace,
) -> None:
    pk = _fill("alice", 100, 20, priority=1)
    _fill("alice", 50, 3, priority=5)

    detail = listing.find_task_queue_detail(people.alice, pk, oldest=5)

    assert [(line.priority, line.jobs) for line in detail.priorities] == [(5, 3), (1, 20)]
    assert [line.part for line in detail.priorities] == pytest.approx([15 / 35, 20 / 35])
    assert [job.job_id for job in detail.oldest] == [50, 51, 52, 100, 101]
    assert detail.line.waiting_jobs == 23


def _group(name: str, *, share: float, has_job_sharing: bool = False) -> None:
    group = AccountingGroup(name=name, share=share, has_job_sharing=has_job_sharing)
    save_group(group, actor=factories.SYSTEM)


def test_the_detail_tells_how_the_priority_came_about(people: SimpleNamespace) -> None:
    _group("physics", share=600)
    heavy = _fill("alice", 1, 3, owner_group="physics")
    _fill("alice", 10, 1, owner_group="physics", cores=2)
    _fill("bob", 20, 1, owner_group="physics")
    _fill("charlie", 30, 1)
    priorities.recompute()

    detail = listing.find_task_queue_detail(people.alice, heavy)

    origin = detail.origin
    assert (origin.group_share, origin.users, origin.part) == (600, 2, 300)
    assert (origin.pool_task_queues, origin.has_job_sharing) == (2, False)
    assert origin.pool_priority == pytest.approx(300)
    assert origin.group_priority == pytest.approx(600)
    assert origin.whole == pytest.approx(1600)
    assert detail.line.priority == pytest.approx(225)
    assert detail.line.share == pytest.approx(225 / 1600)


def test_with_job_sharing_the_group_is_one_pool(people: SimpleNamespace) -> None:
    _group("physics", share=600, has_job_sharing=True)
    pk = _fill("alice", 1, 2, owner_group="physics")
    _fill("bob", 20, 1, owner_group="physics")
    priorities.recompute()

    origin = listing.find_task_queue_detail(people.alice, pk).origin

    assert (origin.has_job_sharing, origin.part, origin.pool_task_queues) == (True, 600, 2)
    assert origin.pool_priority == pytest.approx(600)


def test_the_oldest_jobs_are_found_by_the_index(people: SimpleNamespace) -> None:
    """However many wait: one looks them up, and passes by no jobs of other TaskQueues."""
    old, young = _fill("alice", 1, 1), _fill("alice", 9000, 50, cores=2)
    with connection.cursor() as cursor:
        # What is left of jobs that are gone makes the index look dearer than the primary key's.
        with transaction.atomic():
            cursor.execute(_WAIT, [old, 10**6, 10**6 + 30_000])
            transaction.set_rollback(True)
        cursor.execute(_WAIT, [old, 2, 5000])
        cursor.execute("ANALYZE taskqueues_waitingjob")
    page = listing._with_jobs(TaskQueue.objects.all()).annotate(key=listing._KEYS["oldest"])

    plans = [page.order_by("key").explain(), listing._by_age(young, 1)[:10].explain()]

    for plan in plans:
        assert "waiting_by_queue_and_age" in plan
        assert "taskqueues_waitingjob_pkey" not in plan
        assert "Scan on taskqueues_waitingjob" not in plan
