"""Operations are carried out in batches: whole, once, and as the person may at that moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection, transaction
from django.utils import timezone

from tests import factories
from tests.wms.bulk.conftest import finish, outcomes
from wms.actions.jobs import JOBS
from wms.bulk import execution
from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.services import stop
from wms.core.actors import Actor
from wms.core.models import AuditEntry, Role, User
from wms.dags.models import Dag, DagEvent, NodeEvent
from wms.dags.services.dags import hold_dags, remove_dags
from wms.jobs.models import Job, JobEvent
from wms.sites.models import Site, SiteEvent

Make = Callable[..., BulkOperation]


def _jobs(owner: User, count: int) -> list[Job]:
    return [factories.job(owner, name=f"job{number}") for number in range(count)]


def test_all_dags_of_an_operation_are_held_with_one_audit_entry_and_an_event_each(
    people: SimpleNamespace, order: Make
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(3)]

    done = finish(order(people.alice, "dags", dags, "hold", reason="disk full"))

    assert (done.state, done.done_count, done.pending_count) == ("done", 3, 0)
    assert set(Dag.objects.values_list("state", flat=True)) == {"held"}
    events = DagEvent.objects.filter(event="hold")
    assert {(e.dag_id, e.actor, e.reason, e.facts["operation"]) for e in events} == {
        (dag.pk, "alice", "disk full", done.pk) for dag in dags
    }
    [entry] = AuditEntry.objects.filter(actor="alice").exclude(action="submit DAG")
    assert (entry.action, entry.target) == ("bulk hold dags", f"bulk operation {done.pk}")
    assert (entry.reason, entry.facts["objects"]) == ("disk full", 3)


def test_what_does_not_fit_is_skipped_and_says_why(people: SimpleNamespace, order: Make) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(2)]
    operation = order(people.alice, "dags", dags, "hold")
    remove_dags([dags[0].pk], actor=Actor.person(people.alice), reason="no use")

    done = finish(operation)

    assert outcomes(done) == {
        dags[0].pk: ("skipped", "it is removed"),
        dags[1].pk: ("done", ""),
    }
    assert (done.done_count, done.skipped_count) == (1, 1)


def test_after_a_role_was_taken_away_what_is_left_is_skipped_and_says_why(
    people: SimpleNamespace, order: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = _jobs(people.alice, 4)
    operation = order(people.sam, "jobs", jobs, "hold")
    BulkOperation.objects.filter(pk=operation.pk).update(batch_limit=2)
    assert execution.run_batch(operation.pk) == 2
    User.objects.filter(pk=people.sam.pk).update(role=Role.USER)

    done = finish(operation)

    assert (done.done_count, done.skipped_count, done.failed_count) == (2, 2, 0)
    skipped = [reason for outcome, reason in outcomes(done).values() if outcome == "skipped"]
    assert len(skipped) == 2
    for reason in skipped:
        assert reason.startswith("sam ")
        assert JOBS.refusal in reason
    assert Job.objects.filter(state="held").count() == 2


def test_an_account_that_was_switched_off_does_nothing_more(
    people: SimpleNamespace, order: Make
) -> None:
    jobs = _jobs(people.alice, 2)
    operation = order(people.alice, "jobs", jobs, "kill")
    User.objects.filter(pk=people.alice.pk).update(is_active=False)

    done = finish(operation)

    assert done.skipped_count == 2
    assert not Job.objects.filter(state="killed").exists()


def test_a_worker_that_is_killed_in_a_batch_loses_and_doubles_nothing(
    people: SimpleNamespace, order: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = _jobs(people.alice, 6)
    operation = order(people.alice, "jobs", jobs, "hold")
    BulkOperation.objects.filter(pk=operation.pk).update(batch_limit=3)
    settle = execution._store_outcomes

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(execution, "_store_outcomes", die)
    with pytest.raises(KeyboardInterrupt), transaction.atomic():
        execution.run_batch(operation.pk)
    assert not Job.objects.filter(state="held").exists()
    assert not JobEvent.objects.filter(event="hold").exists()
    monkeypatch.setattr(execution, "_store_outcomes", settle)

    done = finish(operation)

    assert done.done_count == 6
    assert JobEvent.objects.filter(event="hold").count() == 6
    assert set(BulkItem.objects.values_list("outcome", flat=True)) == {"done"}


@pytest.mark.django_db(transaction=True)
def test_a_database_session_that_dies_in_a_batch_takes_all_of_it_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = factories.people()
    operation = _confirmed(people.alice, _jobs(people.alice, 4))
    BulkOperation.objects.filter(pk=operation.pk).update(batch_limit=2)
    assert execution._run_safely(operation.pk) == 2

    def die(*_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with monkeypatch.context() as patch:
        patch.setattr(execution, "_store_outcomes", die)
        assert execution._run_safely(operation.pk) == 0
    connection.close()

    assert Job.objects.filter(state="held").count() == 2
    done = finish(operation)
    assert (done.state, done.done_count) == ("done", 4)
    assert JobEvent.objects.filter(event="hold").count() == 4


@pytest.mark.django_db(transaction=True)
def test_two_executors_at_once_act_on_each_object_once() -> None:
    people = factories.people()
    jobs = _jobs(people.alice, 24)
    make = _confirmed(people.alice, jobs)
    BulkOperation.objects.filter(pk=make.pk).update(batch_limit=2)
    start = threading.Barrier(2)
    counts = []

    def work() -> None:
        start.wait()
        number = 0
        while execution._run_safely(make.pk):
            number += 1
        counts.append(number)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    done = finish(make)
    assert (done.state, done.done_count, done.failed_count) == ("done", 24, 0)
    assert JobEvent.objects.filter(event="hold").count() == 24
    assert done.events.filter(event="end").count() == 1


def _confirmed(owner: User, jobs: list[Job]) -> BulkOperation:
    from wms.bulk.services import Confirmation, Selection, confirm, freeze

    actor = Actor.person(owner)
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs])
    made = freeze(Selection("jobs", rows), action="hold", actor=actor)
    return confirm(made.pk, Confirmation(reason="wait"), actor=actor)


@pytest.mark.django_db(transaction=True)
def test_a_batch_passes_over_what_another_worker_has() -> None:
    people = factories.people()
    operation = _confirmed(people.alice, _jobs(people.alice, 4))
    BulkOperation.objects.filter(pk=operation.pk).update(batch_limit=2)
    taken, go_on = threading.Event(), threading.Event()

    def hold_first_batch() -> None:
        with transaction.atomic():
            execution.run_batch(operation.pk)
            taken.set()
            go_on.wait()
        connection.close()

    other = threading.Thread(target=hold_first_batch)
    # Begun, so that the two do not meet at the row of the operation.
    with transaction.atomic():
        BulkOperation.objects.filter(pk=operation.pk).update(state="running")
    other.start()
    taken.wait()
    pending = BulkItem.objects.filter(operation=operation, outcome="pending").order_by("pk")
    with transaction.atomic():
        free = list(pending.select_for_update(skip_locked=True))
    go_on.set()
    other.join()

    assert len(free) == 2
    assert finish(operation).done_count == 4


@pytest.mark.slow
def test_one_object_that_is_refused_spoils_no_other(people: SimpleNamespace, order: Make) -> None:
    site = factories.site()
    ended = [factories.finish(factories.running_dag(people.alice, at=site, name=f"d{n}.dag"))
             for n in range(2)]  # fmt: skip
    hold_dags([], actor=Actor.person(people.alice), reason="x")
    Dag.objects.filter(pk__in=[dag.pk for dag in ended]).update(state="failed")
    # The newest rescue of the first names a node that there is not.
    Dag.objects.filter(pk=ended[0].pk).update(dag_files=["nowhere.dag"])

    done = finish(order(people.alice, "dags", ended, "rescue"))

    item_outcomes = outcomes(done)
    assert item_outcomes[ended[0].pk][0] == "failed"
    assert "nowhere.dag" in item_outcomes[ended[0].pk][1]
    new = Dag.objects.get(previous_run=ended[1])
    outcome, message = item_outcomes[ended[1].pk]
    assert (outcome, message.endswith(f"DAG {new.pk}")) == ("done", True)
    assert DagEvent.objects.get(dag=new, event="submit").facts["operation"] == done.pk


def test_a_mistake_of_ours_fails_its_object_and_is_logged(
    people: SimpleNamespace, order: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = _jobs(people.alice, 3)
    operation = order(people.alice, "jobs", jobs, "hold")
    JobEvent.objects.filter(job=jobs[1]).delete()
    # A priority that the database refuses when the job is enqueued again.
    factories.describe(Job.objects.filter(pk=jobs[1].pk), needs={})
    released = order(people.alice, "jobs", jobs, "release")
    finish(operation)

    done = finish(released)

    item_outcomes = outcomes(done)
    assert (done.done_count, done.failed_count) == (2, 1)
    outcome, message = item_outcomes[jobs[1].pk]
    assert (outcome, message.startswith(execution._INTERNAL_ERROR)) == ("failed", True)


def test_a_stopped_operation_begins_nothing_more(people: SimpleNamespace, order: Make) -> None:
    jobs = _jobs(people.alice, 4)
    operation = order(people.alice, "jobs", jobs, "hold")
    BulkOperation.objects.filter(pk=operation.pk).update(batch_limit=1)
    execution.run_batch(operation.pk)

    stop(operation.pk, actor=Actor.person(people.sam))

    done = finish(operation)
    assert (done.state, done.done_count, done.pending_count) == ("stopped", 1, 3)
    assert AuditEntry.objects.filter(action="stop bulk operation", actor="sam").count() == 1


def test_a_batch_that_takes_too_long_is_tried_with_fewer_objects(
    people: SimpleNamespace, order: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = order(people.alice, "jobs", _jobs(people.alice, 2), "hold")
    BulkOperation.objects.filter(pk=operation.pk).update(batch_limit=5)

    def slow(*_: object) -> dict:
        raise SoftTimeLimitExceeded

    with monkeypatch.context() as patch:
        patch.setattr(execution, "_attempt", slow)
        for _ in range(2):
            with pytest.raises(SoftTimeLimitExceeded):
                execution.run_cycle(timezone.now())

    operation.refresh_from_db()
    assert (operation.batch_limit, operation.failed_count) == (1, 1)
    assert operation.pending_count == 1
    results = {outcome for outcome, _ in outcomes(finish(operation)).values()}
    assert results == {"done", "failed"}


def test_a_cycle_goes_round_all_operations_until_they_are_done(
    people: SimpleNamespace, order: Make
) -> None:
    first = order(people.alice, "jobs", _jobs(people.alice, 3), "hold")
    second = order(people.bob, "jobs", _jobs(people.bob, 3), "kill")

    report = execution.run_cycle(timezone.now())
    execution.run_cycle(timezone.now())

    assert (report["operations"], report["objects"]) == (2, 6)
    assert set(BulkOperation.objects.values_list("state", flat=True)) == {"done"}
    assert first.pk != second.pk


def test_jobs_of_a_held_dag_are_not_released_one_by_one(
    people: SimpleNamespace, order: Make
) -> None:
    dag = factories.running_dag(people.alice)
    hold_dags([dag.pk], actor=Actor.person(people.alice), reason="wait")

    done = finish(order(people.alice, "jobs", Job.objects.filter(topic_key=dag.pk), "release"))

    [(outcome, reason)] = set(outcomes(done).values())
    assert outcome == "skipped"
    assert "DAG is held" in reason
    assert set(Job.objects.values_list("state", flat=True)) == {"held"}


@pytest.mark.slow
def test_the_nodes_of_failed_jobs_run_again(people: SimpleNamespace, order: Make) -> None:
    dag = factories.running_dag(people.alice, node_count=2)
    worker = factories.pilot(dag.site.queues.get())
    while factories.run_job(worker, exit_code=1) is not None:
        factories.turn()
    single = factories.job(people.alice)
    failed = list(Job.objects.filter(state="failed"))

    done = finish(order(people.alice, "jobs", [*failed, single], "rerun"))

    item_outcomes = outcomes(done)
    assert {item_outcomes[job.pk][0] for job in failed} == {"done"}
    messages = " ".join(item_outcomes[job.pk][1] for job in failed)
    assert "node A1" in messages
    assert "node A2" in messages
    outcome, reason = item_outcomes[single.pk]
    assert outcome == "skipped"
    assert "no DAG" in reason
    events = NodeEvent.objects.filter(dag=dag, event="rerun")
    assert {event.facts["operation"] for event in events} == {done.pk}


@pytest.mark.slow
def test_the_failed_nodes_of_dags_run_again(people: SimpleNamespace, order: Make) -> None:
    dag = factories.running_dag(people.alice, node_count=2)
    worker = factories.pilot(dag.site.queues.get())
    while factories.run_job(worker, exit_code=1) is not None:
        factories.turn()

    done = finish(order(people.alice, "dags", [dag], "rerun"))

    assert outcomes(done) == {dag.pk: ("done", "2 nodes run again")}
    dag.refresh_from_db()
    assert (dag.state, dag.failed_count) == ("idle", 0)


def test_the_priority_of_waiting_jobs_is_changed_where_they_wait(
    people: SimpleNamespace, order: Make
) -> None:
    jobs = _jobs(people.alice, 2)

    done = finish(order(people.alice, "jobs", jobs, "prioritise", priority=7))

    assert done.done_count == 2
    assert set(Job.objects.values_list("priority", flat=True)) == {7}
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT priority FROM taskqueues_waitingjob")
        assert cursor.fetchall() == [(7,)]
    event = JobEvent.objects.filter(event="prioritise").first()
    assert event.facts["priority"] == [1, 7]
    assert event.facts["operation"] == done.pk


def test_sites_are_banned_and_pilots_drained(people: SimpleNamespace, order: Make) -> None:
    sites = [factories.site("A"), factories.site("B")]
    pilots = [factories.pilot(site.queues.get()) for site in sites]

    banned = finish(order(people.sam, "sites", sites, "ban", reason="fire"))
    drained = finish(order(people.sam, "pilots", pilots, "drain", reason="fire"))
    again = finish(order(people.sam, "pilots", pilots, "drain", reason="fire"))
    by_alice = finish(order(people.alice, "pilots", pilots, "drain", reason="fire"))
    removed = finish(order(people.sam, "pilots", pilots[:1], "remove", reason="fire"))

    assert (banned.done_count, drained.done_count) == (2, 2)
    assert set(Site.objects.values_list("state", flat=True)) == {"banned"}
    assert {e.facts["operation"] for e in SiteEvent.objects.filter(event="ban")} == {banned.pk}
    assert {why for _, why in outcomes(again).values()} == {"it drains already"}
    assert by_alice.skipped_count == 2
    assert removed.done_count == 1
    pilots[0].refresh_from_db()
    assert pilots[0].state == "removed"


def test_a_rematch_takes_its_arguments_along(people: SimpleNamespace, order: Make) -> None:
    dag, idle = factories.running_dag(people.alice), factories.dag(people.alice)

    done = finish(
        order(people.alice, "dags", [dag, idle], "rematch", lets_finish=True, avoid_min=90)
    )

    assert outcomes(done)[idle.pk] == ("skipped", "it is idle")
    facts = DagEvent.objects.get(event="rematch").facts
    assert facts == facts | {"lets_finish": True, "avoid_s": 5400, "operation": done.pk}
