"""Failures are grouped as they happen: each once, whatever is killed, repeated or run twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import product

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests import factories
from wms.core.actors import Actor
from wms.core.models import InboxEntry, User
from wms.dags.engine import transitions
from wms.dags.states import NodeCause
from wms.failures import grouping
from wms.failures.counting import start_of
from wms.failures.models import Category, Failure, FailureBin, FailureGroup, FailureRule
from wms.failures.rules import locked_rule_book
from wms.failures.selectors import Window, bins_in, failures_in
from wms.failures.services import delete_rule, resolve_groups, save_rule
from wms.jobs import operations as jobs
from wms.jobs.models import Job, JobEvent
from wms.pilots import lifecycle as pilots
from wms.pilots.protocol.registration import end_pilot

SYSTEM = Actor.system("test")


def run() -> dict[str, int]:
    return grouping.run_cycle(timezone.now())


@pytest.fixture
def fail(db: None) -> Callable[..., None]:
    """Let so many jobs of a user fail with an exit code."""

    def make(owner: User, *, count: int = 1, exit_code: int = 1) -> None:
        worker = factories.pilot()
        for _ in range(count):
            factories.job(owner)
            assert factories.run_job(worker, exit_code=exit_code) is not None

    return make


def test_failures_with_one_cause_are_one_group(fail: Callable[..., None], alice: User) -> None:
    fail(alice, count=3, exit_code=7)
    fail(alice, exit_code=9)

    run()

    found = {text[-1]: total for text, total in FailureGroup.objects.values_list("text", "total")}
    assert found == {"7": 3, "9": 1}


def test_a_group_tells_when_where_and_what_sort_of_cause(
    fail: Callable[..., None], alice: User
) -> None:
    before = timezone.now()
    fail(alice, count=2)

    run()

    group = FailureGroup.objects.get()
    assert before <= group.first_seen < group.last_seen <= timezone.now()
    assert group.category == Category.PAYLOAD
    assert group.sample == JobEvent.objects.filter(event="fail").latest("pk").reason
    assert set(group.bins.values_list("span", "site_name", "count")) == {
        ("hour", "", 2),
        ("day", "", 2),
        ("hour@", "UW", 2),
        ("day@", "UW", 2),
    }


def test_the_same_failure_announced_twice_counts_once(
    fail: Callable[..., None], alice: User
) -> None:
    fail(alice)
    entry = InboxEntry.objects.get(topic="failed-jobs")
    run()

    entry.pk = None
    entry.save(force_insert=True)
    run()

    assert FailureGroup.objects.get().total == Failure.objects.count() == 1
    assert not InboxEntry.objects.filter(topic="failed-jobs").exists()


def test_a_cycle_that_is_killed_leaves_everything_for_the_next(
    fail: Callable[..., None], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(alice, count=2)

    with monkeypatch.context() as patched:
        patched.setattr(grouping, "_regress", _killed)
        with pytest.raises(KeyboardInterrupt):
            run()

    assert not FailureGroup.objects.exists()
    run()
    assert FailureGroup.objects.get().total == 2


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_more_than_a_batch_is_caught_up_with_in_one_cycle(
    fail: Callable[..., None], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "BATCH", 2)
    fail(alice, count=5)

    assert run()["grouped"] == 5
    assert FailureGroup.objects.get().total == 5


def test_a_cycle_out_of_time_leaves_the_rest(
    fail: Callable[..., None], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "BATCH", 2)
    monkeypatch.setattr(grouping, "_CYCLE_S", -1.0)
    fail(alice, count=5)

    assert [run()["grouped"] for _ in range(4)] == [2, 2, 1, 0]


def test_a_hold_by_a_person_is_no_failure_but_one_by_an_expression_is(
    alice: User, sam: User
) -> None:
    one, other = factories.job(alice), factories.job(alice)
    jobs.hold_jobs([one.pk], actor=Actor.person(sam), reason="let me look")
    jobs.hold_jobs([other.pk], actor=SYSTEM, reason="periodic_hold is true")

    run()

    assert list(Failure.objects.values_list("subject_id", flat=True)) == [other.pk]


def test_a_failed_pilot_is_a_failure_of_its_site(db: None) -> None:
    pilot = factories.queued_pilot()
    pilots.apply("abort", [pilot.pk], actor=SYSTEM, reason="unfit: no disk on node12")

    run()

    failure = Failure.objects.get()
    assert (failure.kind, failure.subject_id, failure.site_name) == ("pilot", pilot.pk, "UW")
    assert failure.group.text.endswith("node<n>")


@pytest.mark.parametrize(
    ("reason", "max_attempts", "causes"),
    [
        ("error", 2, {"pilot": "error: disk"}),
        ("error", 1, {"pilot": "error: disk", "job": "the pilot ended (error: disk)"}),
        ("preempted", 2, {"job": "the pilot ended (preempted: disk)"}),
    ],
)
def test_a_job_that_runs_again_because_its_pilot_failed_is_told_by_the_pilot(
    alice: User, reason: str, max_attempts: int, causes: dict[str, str]
) -> None:
    job = factories.job(alice)
    Job.objects.filter(pk=job.pk).update(max_attempts=max_attempts)
    claimed = factories.claim(factories.pilot())
    assert claimed is not None
    claimed.start()
    end_pilot(claimed.pilot, end=reason, detail="disk", now=timezone.now())

    run()

    assert dict(FailureGroup.objects.values_list("kind", "text")) == causes


def test_a_job_that_a_pilot_gave_back_is_told_whatever_the_words_of_both(alice: User) -> None:
    factories.job(alice)
    claimed = factories.claim(factories.pilot())
    assert claimed is not None
    claimed.give_back("the pilot has no room: disk")
    pilots.apply("fail", [claimed.pilot.pk], actor=SYSTEM, reason="disk")

    run()

    assert set(FailureGroup.objects.values_list("kind", flat=True)) == {"job", "pilot"}


def test_what_a_failure_looks_like_is_told_by_its_cause(alice: User) -> None:
    dag = factories.running_dag(alice, node_count=2)
    by_script, with_dag = dag.nodes.order_by("ordinal")
    dag.nodes.update(state="pre_running")
    for node, cause in ((by_script, NodeCause.SCRIPT), (with_dag, NodeCause.DAG_ENDED)):
        reason = f"{cause}: its PRE script: exit code 1"
        transitions.move("fail", [node.pk], dag_id=dag.pk, actor=SYSTEM, reason=reason, cause=cause)

    run()

    guesses = {each.subject_id: each.group.category for each in Failure.objects.all()}
    assert guesses == {by_script.pk: Category.PAYLOAD, with_dag.pk: Category.UNKNOWN}


def test_a_node_whose_script_fails_is_told_and_one_whose_job_fails_is_not(alice: User) -> None:
    dag = factories.running_dag(alice, node_count=2)
    first, second = dag.nodes.order_by("ordinal")
    dag.nodes.filter(pk=second.pk).update(state="pre_running")
    transitions.move("fail", [first.pk], dag_id=dag.pk, actor=SYSTEM, reason="exit code 1")
    transitions.move(
        "fail", [second.pk], dag_id=dag.pk, actor=SYSTEM, reason="PRE script: exit code 1"
    )

    run()

    failure = Failure.objects.get()
    assert (failure.kind, failure.subject_id, failure.dag_id) == ("node", second.pk, dag.pk)
    assert failure.owner_id == alice.pk


def test_a_resolved_group_that_happens_again_has_regressed(
    fail: Callable[..., None], alice: User, sam: User
) -> None:
    fail(alice)
    run()
    group = FailureGroup.objects.get()
    resolve_groups([group.pk], actor=Actor.person(sam), reason="new image")

    run()
    group.refresh_from_db()
    assert group.state == "resolved"
    fail(alice)
    run()

    group.refresh_from_db()
    assert group.state == "regressed"
    assert [event.event for event in group.events.order_by("pk")] == ["resolve", "regress"]


def test_the_bins_of_a_window_add_up_to_the_list_behind_them(
    fail: Callable[..., None], alice: User
) -> None:
    fail(alice, count=4)
    run()
    now, group = timezone.now(), FailureGroup.objects.get()
    # As if they had happened at other times.
    for hours, failure in zip((0, 5, 30, 200), Failure.objects.order_by("pk"), strict=True):
        move_back(failure, timedelta(hours=hours))

    for window, at_sites in product(Window, (False, True)):
        bins = bins_in(window, now=now, at_sites=at_sites)
        counted = sum(bins.values_list("count", flat=True))
        assert counted == failures_in(alice, window, now=now, group_id=group.pk).count()


def move_back(failure: Failure, by: timedelta) -> None:
    for span in FailureBin.Span:
        old = start_of(span, failure.at)
        new = start_of(span, failure.at - by)
        found = FailureBin.objects.get(span=span, start=old)
        if old != new:
            FailureBin.objects.filter(pk=found.pk).update(count=found.count - 1)
            FailureBin.objects.create(
                group=found.group, span=span, start=new, site_name=found.site_name, count=1
            )
    Failure.objects.filter(pk=failure.pk).update(at=failure.at - by)


def test_old_bins_are_forgotten_and_the_total_stays(fail: Callable[..., None], alice: User) -> None:
    fail(alice)
    run()

    grouping.run_cycle(timezone.now() + timedelta(days=9))
    assert set(FailureBin.objects.values_list("span", flat=True)) == {"day", "day@"}
    grouping.run_cycle(timezone.now() + timedelta(days=402))

    assert not FailureBin.objects.exists()
    assert FailureGroup.objects.get().total == 1


@pytest.fixture
def regrouped(fail: Callable[..., None], alice: User) -> FailureRule:
    """Two groups by exit code, and the rule that keeps the codes apart."""
    fail(alice, count=3, exit_code=7)
    fail(alice, count=2, exit_code=9)
    run()
    assert FailureGroup.objects.count() == 2
    return FailureRule.objects.get(name="Exit codes and signals")


def test_a_changed_rule_regroups_what_was_grouped_before(
    regrouped: FailureRule, olga: User
) -> None:
    delete_rule(regrouped.pk, version=1, actor=Actor.person(olga))

    run()

    group = FailureGroup.objects.get()
    assert (group.text.split()[-1], group.total) == ("<n>", 5)
    assert sum(group.bins.filter(span="day").values_list("count", flat=True)) == 5
    assert set(group.failures.values_list("rules_version", flat=True)) == {2}


def test_regrouping_goes_on_where_it_was_killed_and_tells_how_far_it_is(
    regrouped: FailureRule, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "BATCH", 2)
    monkeypatch.setattr(grouping, "_CYCLE_S", -1.0)
    delete_rule(regrouped.pk, version=1, actor=Actor.person(olga))

    told = []
    for _ in range(3):
        run()
        book = locked_rule_book()
        told.append((book.regrouped, book.to_regroup, book.finished_at is not None))

    assert told == [(2, 5, False), (4, 5, False), (5, 5, True)]
    assert FailureGroup.objects.get().total == 5


def test_a_group_made_by_regrouping_keeps_what_people_decided(
    regrouped: FailureRule, olga: User, sam: User
) -> None:
    groups = list(FailureGroup.objects.values_list("pk", flat=True))
    resolve_groups(groups, actor=Actor.person(sam), reason="new image")
    regrouped.is_enabled = False
    save_rule(regrouped, version=1, actor=Actor.person(olga))

    run()

    group = FailureGroup.objects.get()
    assert (group.state, group.state_reason) == ("resolved", "new image")


def test_a_group_that_lost_failures_tells_anew_when_it_was_seen(
    fail: Callable[..., None], alice: User, olga: User
) -> None:
    fail(alice, exit_code=7)
    run()
    rule = FailureRule(position=1, name="Sevens", pattern="code 7", placeholder="seven")
    fail(alice, exit_code=9)
    run()

    save_rule(rule, version=1, actor=Actor.person(olga))
    run()

    texts = set(FailureGroup.objects.values_list("text", flat=True))
    assert any(text.endswith("exit <seven>") for text in texts)
    for group in FailureGroup.objects.all():
        times = list(group.failures.values_list("at", flat=True))
        assert (group.first_seen, group.last_seen) == (min(times), max(times))


@pytest.mark.django_db(transaction=True)
def test_failures_that_another_cycle_is_at_are_passed_over(alice: User) -> None:
    worker = factories.pilot(factories.site().queues.get())
    factories.job(alice)
    factories.run_job(worker, exit_code=1)
    with transaction.atomic():
        locked_rule_book()
    entry = InboxEntry.objects.get(topic="failed-jobs")

    with _another_session() as other:
        other.execute("SELECT id FROM core_inboxentry WHERE id = %s FOR UPDATE", [entry.pk])
        assert grouping.group_announced(timezone.now()) == 0

    assert grouping.group_announced(timezone.now()) == 1


class _another_session:
    """A second session with the database, with its transaction."""

    def __enter__(self) -> object:
        self._connection = connection.copy()
        self._connection.set_autocommit(False)
        return self._connection.cursor()

    def __exit__(self, *_: object) -> None:
        self._connection.rollback()
        self._connection.close()
