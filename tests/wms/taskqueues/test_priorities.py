from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.task_queues.needs import Needs
from matching.task_queues.weighted_draws import job_weight
from tests.wms.taskqueues.claiming import drain, put
from wms.accounting.models import AccountingGroup, Submitter
from wms.core.models import InboxEntry, User
from wms.taskqueues.models import Tally, TaskQueuePolicy, Ticket
from wms.taskqueues.operations import Entry, enqueue, withdraw
from wms.taskqueues.priorities import TOPIC, recompute, run_cycle
from wms.taskqueues.tasks import PRIORITIES
from wms.taskqueues.waiting import fold_tally

pytestmark = pytest.mark.usefixtures("alice", "charlie")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def group(name: str, share: float, *, has_job_sharing: bool = False) -> AccountingGroup:
    return AccountingGroup.objects.create(name=name, share=share, has_job_sharing=has_job_sharing)


def priorities() -> dict[int, float]:
    """By the memory that tells the TaskQueues apart here."""
    return dict(Ticket.objects.values_list("task_queue__memory_mb", "priority"))


def test_a_users_part_is_spread_in_proportion_to_the_sums_of_job_priorities() -> None:
    put(1, 3, memory_mb=1, priority=2)
    put(4, 1, memory_mb=2, priority=9)
    put(5, 5, memory_mb=3, priority=0)

    recompute()

    whole = 3 * 2 + 9 + 5e-5
    assert priorities() == pytest.approx(
        {1: 1000 * 6 / whole, 2: 1000 * 9 / whole, 3: 1000 * 5e-5 / whole}
    )


def test_a_group_shares_equally_among_its_users_unless_it_shares_its_jobs() -> None:
    group("physics", 600)
    group("prod", 900, has_job_sharing=True)
    for first, name in ((10, "physics"), (20, "prod")):
        put(first, 2, owner="alice", owner_group=name, memory_mb=first)
        put(first + 2, owner="charlie", owner_group=name, memory_mb=first + 1)

    recompute()

    assert priorities() == pytest.approx({10: 300, 11: 300, 20: 600, 21: 300})


def test_a_new_task_queue_has_its_priority_at_once_and_the_others_follow() -> None:
    put(1, memory_mb=1)
    recompute()

    put(2, 3, memory_mb=2)

    assert priorities() == pytest.approx({1: 1000, 2: 750})
    assert Ticket.objects.filter(starts_at=None).count() == 1
    recompute()
    assert priorities() == pytest.approx({1: 250, 2: 750})
    assert not Ticket.objects.filter(starts_at=None).exists()


def test_a_large_submission_does_not_wait_for_statistics(alice: User) -> None:
    put(1)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE taskqueues_tally, taskqueues_taskqueue, taskqueues_ticket")
    enqueue([Entry(10 + n, Needs.of("alice", memory_mb=n)) for n in range(1000)])

    sent = explained_plan(recompute)

    assert "Nested Loop" not in sent


def explained_plan(work: Callable[[], object]) -> str:
    """The plans of the statements that contain `placed`, as they are run by this work."""
    found: list[str] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "placed" in sql:
            execute(f"EXPLAIN {sql}", params, many, context)
            found.extend(row[0] for row in context["cursor"].fetchall())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        work()
    assert found
    return "\n".join(found)


def test_tickets_have_a_length_however_small_their_part_is() -> None:
    group("large", 1e12)
    put(1, owner_group="large", memory_mb=1)
    put(2, memory_mb=2, priority=0)
    put(3, memory_mb=3, priority=10)

    recompute()

    starts = [t.starts_at for t in Ticket.objects.order_by("task_queue_id")]
    assert len(set(starts)) == 3
    assert starts == sorted(starts)


def test_a_task_queue_that_lost_its_ticket_gets_a_new_one() -> None:
    put(1)
    Ticket.objects.all().delete()

    run_cycle(NOW, last=None)

    assert drain() == [1]


def test_with_many_users_in_a_group_each_keeps_a_part() -> None:
    User.objects.bulk_create([User(username=f"u{n}") for n in range(50)])
    for n in range(50):
        put(n, owner=f"u{n}", memory_mb=n)

    recompute()

    assert priorities() == pytest.approx(dict.fromkeys(range(50), 20.0))


def test_an_emptied_task_queue_keeps_hardly_any_priority() -> None:
    put(1, memory_mb=1)
    put(2, memory_mb=2)
    withdraw([1])

    recompute()

    assert priorities()[1] < 1e-8
    assert priorities()[2] == pytest.approx(1000)


def test_use_beyond_the_share_lowers_it_unless_feedback_is_off(alice: User, charlie: User) -> None:
    put(1, owner="alice", memory_mb=1)
    put(2, owner="charlie", memory_mb=2)
    Submitter.objects.create(user=alice, real_priority=30.5)
    Submitter.objects.create(user=charlie, real_priority=10.5)

    TaskQueuePolicy.objects.create(pk=1, uses_feedback=False)
    recompute()
    assert priorities() == pytest.approx({1: 500, 2: 500})
    TaskQueuePolicy.objects.all().delete()
    recompute()
    # Wanted are halves, used were 3/4 and 1/4: factors 2/3 and 2, of 1000 in all.
    assert priorities() == pytest.approx({1: 250, 2: 750})
    TaskQueuePolicy.objects.create(pk=1, max_correction=1)
    recompute()
    assert priorities() == pytest.approx({1: 500, 2: 500})


@st.composite
def waiting_jobs(draw: st.DrawFn) -> list[dict[str, Any]]:
    return draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "owner": st.sampled_from(["alice", "charlie"]),
                    "owner_group": st.sampled_from(["", "physics", "prod"]),
                    "memory_mb": st.integers(0, 3),
                    "cpu_time_s": st.sampled_from([1, 600]),
                    "priority": st.integers(0, 10),
                    "count": st.integers(1, 3),
                }
            ),
            min_size=1,
            max_size=10,
        )
    )


def expected_priorities(jobs: list[dict[str, Any]]) -> dict[tuple[Any, ...], float]:
    """The rule in plain words, for groups physics (300) and prod (900, shares its jobs)."""
    weights: dict[tuple[Any, ...], float] = defaultdict(float)
    for job in jobs:
        segment = 500 if job["cpu_time_s"] == 1 else 5000
        key = (job["owner_group"], job["owner"], job["memory_mb"], segment)
        weights[key] += job["count"] * job_weight(job["priority"])
    found = {}
    for key, weight in weights.items():
        name = key[0]
        members = {other[1] for other in weights if other[0] == name}
        pool = [o for o in weights if o[0] == name and (name == "prod" or o[1] == key[1])]
        part = 900 if name == "prod" else {"": 1000, "physics": 300}[name] / len(members)
        found[key] = part * weight / sum(weights[other] for other in pool)
    return found


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs=waiting_jobs())
def test_priorities_are_those_of_the_plain_rule_and_tickets_lie_side_by_side(
    jobs: list[dict[str, Any]],
) -> None:
    with transaction.atomic():
        group("physics", 300)
        group("prod", 900, has_job_sharing=True)
        for number, job in enumerate(jobs):
            put(100 * number, **job)

        recompute()

        rows = Ticket.objects.select_related("task_queue__owner").order_by("starts_at")
        found = {
            (t.task_queue.owner_group, t.task_queue.owner.username, t.task_queue.memory_mb,
             t.cpu_time_s): t.priority for t in rows
        }  # fmt: skip
        assert found == pytest.approx(expected_priorities(jobs))
        for segment_s in {ticket.cpu_time_s for ticket in rows}:
            end = 0.0
            for ticket in [t for t in rows if t.cpu_time_s == segment_s]:
                assert ticket.starts_at == pytest.approx(end, abs=1e-6)
                end += ticket.priority
        transaction.set_rollback(True)


def test_priorities_are_computed_when_task_queues_appear_or_go_and_every_two_minutes() -> None:
    assert run_cycle(NOW, last=None)["recomputed_at"] == NOW.isoformat()
    assert run_cycle(NOW + timedelta(seconds=119), last=NOW)["recomputed_at"] == NOW.isoformat()

    put(1)
    soon = NOW + timedelta(seconds=5)
    report = run_cycle(soon, last=NOW)
    assert (report["changed"], report["recomputed_at"]) == (1, soon.isoformat())
    assert not InboxEntry.objects.filter(topic=TOPIC).exists()

    later = soon + timedelta(seconds=120)
    assert run_cycle(later, last=soon)["recomputed_at"] == later.isoformat()


def test_the_loop_remembers_when_it_recomputed_last() -> None:
    put(1)

    first = PRIORITIES.run_cycle(NOW)

    assert first["recomputed_at"] == NOW.isoformat()


def test_a_removed_task_queue_makes_the_others_be_recomputed(
    django_capture_on_commit_callbacks: Any,
) -> None:
    put(1, memory_mb=1)
    put(2, memory_mb=2)
    run_cycle(NOW, last=None)

    with django_capture_on_commit_callbacks(execute=True):
        withdraw([1])
    run_cycle(NOW, last=NOW)

    assert priorities() == pytest.approx({2: 1000})


def test_the_count_is_folded_without_changing_it() -> None:
    put(1, 3, priority=2)
    put(4, 2, priority=2)
    put(6, 1, priority=3)
    withdraw([1, 6])

    fold_tally()

    assert list(Tally.objects.values_list("priority", "jobs")) == [(2, 4)]
    assert len(drain()) == 4
