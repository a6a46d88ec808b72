from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.db.models import Sum

from matching.task_queues.needs import Needs
from matching.task_queues.requirements import requirements_value
from matching.task_queues.resources import JobKind, Resource
from tests.wms.taskqueues.claiming import NODE, claimed, drain, put
from wms.core.models import User
from wms.taskqueues import operations as services
from wms.taskqueues.models import Tally, TaskQueue, WaitingJob
from wms.taskqueues.operations import Entry, claim, enqueue, remove_empty, withdraw
from wms.taskqueues.selectors import demands

pytestmark = pytest.mark.usefixtures("alice")


def counted() -> int:
    return Tally.objects.aggregate(jobs=Sum("jobs"))["jobs"] or 0


def test_jobs_with_equal_needs_share_a_task_queue() -> None:
    put(1, 3, cpu_time_s=10)
    put(4, 2, cpu_time_s=499)
    put(6, 1, cpu_time_s=501)

    assert [(demand.needs.cpu_time_s, demand.waiting_jobs) for demand in demands()] == [
        (500, 5),
        (5_000, 1),
    ]


def test_a_task_queue_keeps_all_needs_of_its_jobs() -> None:
    needs = Needs.of(
        "alice", owner_group="physics", setup="test", cpu_time_s=70, cores=2, max_cores=4,
        memory_mb=10, gpus=1, sites=["a"], banned_sites=["b"], queues=["a/q"], platforms=["x", "y"],
        pilot_types=["generic"], submit_pools=["p"], middlewares=["ssh"], tags=["t"],
        job_type="User", requirements="Cpus > 1",
    )  # fmt: skip

    enqueue([Entry(1, needs)])

    assert [demand.needs for demand in demands()] == [needs]
    assert TaskQueue.objects.get().key == needs.key()


def test_the_highest_cpu_segment_goes_first() -> None:
    put(1, cpu_time_s=400)
    put(2, 2, cpu_time_s=40_000)
    put(4, cpu_time_s=4_000)

    found = drain()

    assert sorted(found[:2]) == [2, 3]
    assert found[2:] == [4, 1]


@pytest.mark.parametrize(
    "needs",
    [
        {"cores": 5},
        {"memory_mb": 4001},
        {"gpus": 1},
        {"setup": "test"},
        {"sites": ["site-b"]},
        {"banned_sites": ["site-a"]},
        {"queues": ["site-a/other"]},
        {"platforms": ["arm"]},
        {"pilot_types": ["private"]},
        {"tags": ["gpu"]},
        {"requirements": "Cpus > 4"},
        {"requirements": "NodeColour == 1"},
    ],
)
def test_a_job_that_does_not_fit_is_not_given(needs: dict[str, Any]) -> None:
    put(1, **needs)

    assert claimed(NODE) is None
    assert WaitingJob.objects.count() == 1


def test_a_job_is_not_given_to_a_node_with_too_little_time() -> None:
    put(1, cpu_time_s=501)

    assert claimed(Resource("site-a", cpu_time_s=4_999, memory_mb=10)) is None
    assert claimed(Resource("site-a", cpu_time_s=5_000, memory_mb=10)) == 1


def test_a_job_that_fits_is_given_whatever_else_it_says() -> None:
    put(
        1, cores=4, max_cores=8, memory_mb=4000, sites=["site-a", "b"], banned_sites=["c"],
        platforms=["linux"], job_type="User", pilot_types=["generic"], submit_pools=["p"],
        middlewares=["ssh"], requirements="Cpus == 4 && Site == \"site-a\" && NodeColour == 1",
    )  # fmt: skip

    assert claimed(NODE, facts={"colour": 1}) == 1


def test_a_claim_tells_the_needs_of_the_job() -> None:
    put(1, cores=2, max_cores=3, job_type="User")

    with transaction.atomic():
        found = claim(NODE)

    assert found is not None
    assert found.needs == Needs.of("alice", cores=2, max_cores=3, job_type="User")


def test_a_task_queue_whose_requirements_fail_makes_room_for_the_next() -> None:
    put(1, 5, requirements="Memory > 100000", priority=10)
    put(6)

    assert claimed(NODE) == 6
    assert claimed(NODE) is None


@pytest.mark.slow
def test_requirements_that_fail_keep_nobody_busy_for_long_and_others_get_theirs(
    monkeypatch: pytest.MonkeyPatch, charlie: User
) -> None:
    evaluated: list[Needs] = []

    def value(needs: Needs, ad: object) -> bool:
        evaluated.append(needs)
        return requirements_value(needs, ad) is True

    monkeypatch.setattr(services, "requirements_value", value)
    for number in range(100):
        put(number, memory_mb=number, requirements="Memory > 100000", cpu_time_s=501)
        put(1000 + number, requirements=f"MY.RequestMemory > {number}", cpu_time_s=501)
    put(5000, owner="charlie", requirements="Memory > 100")
    put(5001)

    assert sorted(drain(NODE)) == [5000, 5001]
    # In each of the three claims one of the first kind, and of the other as many as an owner may.
    assert len(evaluated) <= 3 * 22


def test_what_fails_for_one_job_may_pass_for_another_where_the_needs_are_seen() -> None:
    put(1, requirements="RequestMemory > 5", memory_mb=1, priority=10)
    put(2, requirements="RequestMemory > 5", memory_mb=6, priority=0)

    assert drain(NODE) == [2]


def test_a_kind_that_is_refused_at_the_last_moment_is_left_out_and_drawn_anew() -> None:
    put(1, 5, job_type="User", memory_mb=1, priority=10)
    put(6, 5, job_type="User", memory_mb=2, priority=10)
    put(11, job_type="Merge")
    asked: list[Needs] = []

    def refuses(needs: Needs) -> JobKind | None:
        asked.append(needs)
        return JobKind("User") if needs.job_type == "User" else None

    assert claimed(NODE, refuses=refuses) == 11
    assert claimed(NODE, refuses=refuses) is None
    # Asked once for the kind in each claim, not for each of its TaskQueues.
    assert [needs.job_type for needs in asked].count("User") <= 2


@pytest.mark.parametrize("kind", [JobKind("User"), JobKind("", "physics"), JobKind()])
def test_kinds_that_a_resource_leaves_out_are_not_given(kind: JobKind) -> None:
    put(1, job_type="User", owner_group="physics")

    assert claimed(Resource("site-a", cpu_time_s=500, excluded=(kind,))) is None
    assert claimed(Resource("site-a", cpu_time_s=500, excluded=(JobKind("Merge"),))) == 1


def test_private_pilots_get_jobs_of_their_identity_and_generic_ones_any(charlie: User) -> None:
    put(1, owner="alice", owner_group="physics")
    put(2, owner="charlie", owner_group="physics")
    put(3, owner="charlie")
    here = {"site": "site-a", "cpu_time_s": 500, "pilot_type": "private"}

    of_charlie = Resource(**here, owner="charlie", owner_groups=("physics",))
    of_the_group = Resource(**here, owner_groups=("physics",))

    assert drain(of_charlie) == [2]
    assert drain(of_the_group) == [1]
    assert drain() == [3]


def test_a_pilot_may_want_only_jobs_with_its_tag() -> None:
    put(1, 3)
    put(4, tags=["gpu"])
    put(5, tags=["gpu", "large"], cpu_time_s=5)

    here = Resource("site-a", cpu_time_s=500, tags=("gpu",), required_tags=("gpu",))

    assert drain(here) == [4]


def test_a_withdrawn_job_is_not_given_and_its_queue_goes(
    django_capture_on_commit_callbacks: Any,
) -> None:
    put(1, 2)
    with django_capture_on_commit_callbacks(execute=True):
        withdraw([1, 99])
    assert drain() == [2]
    put(3)
    with django_capture_on_commit_callbacks(execute=True):
        withdraw([3])

    assert not TaskQueue.objects.exists()
    assert not Tally.objects.exists()


def test_a_claim_that_is_rolled_back_leaves_the_job_in_its_place() -> None:
    put(1, 2)

    with transaction.atomic():
        assert claimed(NODE) in {1, 2}
        transaction.set_rollback(True)

    assert sorted(drain()) == [1, 2]
    assert counted() == 0


def test_a_job_that_comes_back_has_its_old_place(settings: Any) -> None:
    put(1, 30)
    withdraw([1])
    put(1)

    oldest = WaitingJob.objects.order_by("job_id")[:10]

    assert [job.job_id for job in oldest] == list(range(1, 11))


def test_a_job_that_waits_already_is_neither_moved_nor_counted_twice() -> None:
    put(1, 2)
    put(1, memory_mb=5, priority=9)

    assert counted() == 2
    assert WaitingJob.objects.get(job_id=1).priority == 1


def test_the_last_claim_takes_the_task_queue_with_it(
    django_capture_on_commit_callbacks: Any,
) -> None:
    put(1, 2)

    with django_capture_on_commit_callbacks(execute=True):
        claimed()
    assert TaskQueue.objects.count() == 1
    with django_capture_on_commit_callbacks(execute=True):
        claimed()

    assert not TaskQueue.objects.exists()
    assert not Tally.objects.exists()


def test_empty_task_queues_go_and_those_with_jobs_stay() -> None:
    put(1, memory_mb=1)
    put(2, memory_mb=2)
    withdraw([1])

    assert remove_empty() == 1
    assert TaskQueue.objects.get().memory_mb == 2
    assert drain() == [2]


def test_an_emptied_task_queue_that_is_still_there_keeps_nobody_from_a_job() -> None:
    for number in range(1, 31):
        put(number, memory_mb=number)
    withdraw(range(1, 30))

    assert TaskQueue.objects.count() == 30
    assert claimed() == 30


def test_a_hundred_thousand_jobs_join_with_a_handful_of_statements(
    django_assert_max_num_queries: Any,
) -> None:
    wanted = [Needs.of("alice", memory_mb=number) for number in range(50)]
    entries = [Entry(number, wanted[number % 50]) for number in range(100_000)]

    with django_assert_max_num_queries(16):
        enqueue(entries)

    assert counted() == WaitingJob.objects.count() == 100_000
    assert {demand.waiting_jobs for demand in demands()} == {2000}
