"""Who is told of what, once."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests import factories
from tests.wms.notices.hearing import SYSTEM, happens, hears, told
from wms.core.actors import Actor
from wms.core.models import ControlLoop, InboxEntry, User
from wms.dags.models import Dag
from wms.failures import grouping
from wms.failures.models import FailureGroup
from wms.failures.services import resolve_groups
from wms.notices import fanout
from wms.notices.models import Notice
from wms.notices.occurrences import TOPICS
from wms.pilots.lifecycle import apply as apply_to_pilots
from wms.sites.downtimes.services import add_downtime, cancel_downtimes
from wms.sites.services import ban_site, note_at_site


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def dag(people: SimpleNamespace) -> Dag:
    return factories.dag(people.alice)


@pytest.mark.parametrize(
    ("event", "kind", "words"),
    [
        ("complete", "completed", "is completed"),
        ("fail", "failed", "has failed"),
        ("hold", "held", "is held"),
        ("halt", "halted", "is halted"),
        ("remove", "removed", "was removed"),
    ],
)
def test_who_asked_for_a_dag_is_told_how_it_goes(
    people: SimpleNamespace, dag: Dag, event: str, kind: str, words: str
) -> None:
    hears(people.bob, "dag", dag=dag)

    happens(event, dag)

    assert told(people.bob) == [(kind, f"DAG {dag.pk} (analysis) {words}")]
    assert told(people.charlie) == []
    assert Notice.objects.get().text == "disk full"


@pytest.mark.parametrize(
    ("rule", "event"),
    [
        ("my-dags-ended", "complete"),
        ("my-dags-ended", "remove"),
        ("my-dags-failed", "fail"),
        ("my-dags-held", "hold"),
        ("my-dags-held", "halt"),
    ],
)
def test_a_rule_tells_owners_of_their_own_dags_only(
    people: SimpleNamespace, dag: Dag, rule: str, event: str
) -> None:
    for user in (people.alice, people.bob):
        hears(user, rule)

    happens(event, dag)

    assert len(told(people.alice)) == 1
    assert told(people.bob) == []


def test_one_is_told_once_though_two_subscriptions_fit(people: SimpleNamespace, dag: Dag) -> None:
    hears(people.alice, "my-dags-failed")
    hears(people.alice, "dag", dag=dag)

    happens("fail", dag)

    assert len(told(people.alice)) == 1


def test_nobody_is_told_of_what_they_did_themselves(people: SimpleNamespace, dag: Dag) -> None:
    for user in (people.alice, people.sam):
        hears(user, "dag", dag=dag)

    happens("hold", dag, actor=Actor.person(people.sam))

    [(kind, title)] = told(people.alice)
    assert kind == "held"
    for fact in (str(dag.pk), "analysis", "sam"):
        assert fact in title
    assert told(people.sam) == []


def test_who_is_switched_off_is_told_nothing(people: SimpleNamespace, dag: Dag) -> None:
    hears(people.bob, "dag", dag=dag)
    User.objects.filter(pk=people.bob.pk).update(is_active=False)

    happens("fail", dag)

    assert told(people.bob) == []


@pytest.mark.slow
def test_owners_are_told_once_that_a_dag_is_failing_and_how_much(people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice, node_count=3)
    hears(people.alice, "my-dags-failed")
    worker = factories.pilot()

    factories.run_job(worker, exit_code=1)
    factories.turn()
    grouping.run_cycle(timezone.now())
    first = told(people.alice)
    Notice.objects.update(read_at=timezone.now())
    factories.run_job(worker, exit_code=1)
    factories.turn()
    grouping.run_cycle(timezone.now())

    assert first == [("failing", f"DAG {dag.pk} (analysis) is failing")]
    assert told(people.alice) == first
    notice = Notice.objects.get()
    assert notice.count == 2
    assert "0 of 3" in notice.text
    assert "2 failed" in notice.text
    assert notice.read_at is None, "what has grown is unread again"


def test_a_cause_is_told_when_it_is_new_and_when_it_is_back(people: SimpleNamespace) -> None:
    factories.running_dag(people.alice, node_count=4)
    for user in (people.alice, people.bob):
        hears(user, "my-failures")
    worker = factories.pilot()

    factories.run_job(worker, exit_code=3)
    grouping.run_cycle(timezone.now())
    factories.run_job(worker, exit_code=3)
    grouping.run_cycle(timezone.now())
    new = told(people.alice)
    [group] = FailureGroup.objects.all()
    resolve_groups([group.pk], actor=Actor.person(people.sam), reason="mended")
    factories.run_job(worker, exit_code=3)
    grouping.run_cycle(timezone.now())

    assert [kind for kind, _ in told(people.alice)] == ["new-cause", "regressed"]
    assert told(people.alice)[:1] == new
    assert all(title.endswith(group.text) for _, title in told(people.alice))
    assert told(people.bob) == [], "nothing of his failed"


def test_causes_of_pilots_that_belong_to_nobody_are_told_to_nobody(
    people: SimpleNamespace,
) -> None:
    hears(people.alice, "my-failures")

    pilot = factories.queued_pilot()
    apply_to_pilots("abort", [pilot.pk], actor=SYSTEM, reason="no such queue")
    grouping.run_cycle(timezone.now())

    assert told(people.alice) == []


def test_a_site_is_told_to_who_asked_for_it_or_for_all(people: SimpleNamespace) -> None:
    factories.site("UW")
    factories.site("CERN")
    hears(people.alice, "site", site="UW")
    hears(people.bob, "site", site="CERN")
    hears(people.charlie, "site")

    ban_site("UW", actor=Actor.person(people.sam), reason="eats jobs")

    expected = [("banned", "Site UW is banned, by sam")]
    assert told(people.alice) == expected
    assert told(people.bob) == []
    assert told(people.charlie) == expected


def test_a_worker_node_that_is_suspected_is_told_to_who_asked_for_its_site(
    people: SimpleNamespace,
) -> None:
    site = factories.site("UW")
    hears(people.tina, "site", site="UW")

    with transaction.atomic():
        note_at_site(
            site, "suspect", actor=SYSTEM, reason="worker node wn1: 9 of 9 payloads failed there",
            facts={"host": "wn1"}, at=timezone.now(),
        )  # fmt: skip

    [(kind, title)] = told(people.tina)
    assert (kind, "UW" in title) == ("node-suspected", True)


def test_a_downtime_is_told_when_it_begins_and_when_it_ends(people: SimpleNamespace) -> None:
    site, now = factories.site(), timezone.now()
    hears(people.alice, "site")
    add_downtime(
        site.name, start=now + timedelta(hours=1), end=now + timedelta(hours=3), reason="disks",
        actor=SYSTEM, now=now,
    )  # fmt: skip

    assert told(people.alice, now=now) == []
    begun = [("downtime-begun", "The downtime of site UW has begun")]
    assert told(people.alice, now=now + timedelta(hours=1)) == begun
    assert told(people.alice, now=now + timedelta(hours=2)) == begun
    ended = [*begun, ("downtime-ended", "The downtime of site UW has ended")]
    assert told(people.alice, now=now + timedelta(hours=3)) == ended
    assert told(people.alice, now=now + timedelta(days=9)) == ended


def test_a_downtime_that_is_cancelled_while_it_runs_has_ended(people: SimpleNamespace) -> None:
    site, now = factories.site(), timezone.now()
    hears(people.alice, "site")
    row = add_downtime(
        site.name, start=now - timedelta(hours=1), end=now + timedelta(hours=3), reason="disks",
        actor=SYSTEM, now=now,
    )  # fmt: skip
    told(people.alice, now=now)

    cancel_downtimes([row.pk], actor=SYSTEM, now=now + timedelta(minutes=5))

    assert [kind for kind, _ in told(people.alice, now=now + timedelta(minutes=6))] == [
        "downtime-begun", "downtime-ended"
    ]  # fmt: skip


def test_a_downtime_that_was_cancelled_before_it_began_is_not_told(
    people: SimpleNamespace,
) -> None:
    site, now = factories.site(), timezone.now()
    hears(people.alice, "site")
    row = add_downtime(
        site.name, start=now + timedelta(hours=1), end=now + timedelta(hours=3), reason="disks",
        actor=SYSTEM, now=now,
    )  # fmt: skip
    cancel_downtimes([row.pk], actor=SYSTEM, now=now)

    assert told(people.alice, now=now + timedelta(hours=2)) == []


def test_operators_are_told_of_a_loop_that_stays_late_and_when_it_is_well(
    people: SimpleNamespace,
) -> None:
    now = timezone.now()
    hears(people.olga, "loops")
    ControlLoop.objects.create(name="director", period_s=2, started_at=now, duration_s=0.1)

    late = now + timedelta(minutes=5)
    assert told(people.olga, now=late) == [], "a moment is not worth a word"
    stale = ("loop-stale", "The control loop director is late")
    assert told(people.olga, now=late + telling_patience()) == [stale]
    assert told(people.olga, now=late + 2 * telling_patience()) == [stale]
    ControlLoop.objects.update(started_at=late + 3 * telling_patience())
    well = ("loop-well", "The control loop director is well again")
    assert told(people.olga, now=late + 3 * telling_patience()) == [stale, well]


def telling_patience() -> timedelta:
    """A little more than what is waited for."""
    return timedelta(seconds=31)


def test_who_is_no_operator_any_more_is_not_told_of_loops(people: SimpleNamespace) -> None:
    now = timezone.now()
    hears(people.olga, "loops")
    User.objects.filter(pk=people.olga.pk).update(role="user")
    ControlLoop.objects.create(name="director", period_s=2, started_at=now, error="broken")

    told(people.olga, now=now)

    assert told(people.olga, now=now + telling_patience()) == []


@pytest.mark.slow
def test_a_cycle_that_dies_at_any_statement_neither_loses_nor_doubles_a_notice(
    people: SimpleNamespace,
) -> None:
    """Statement after statement, the process dies there; then it is started again."""
    place = 0
    while True:
        dag = factories.dag(people.alice, name=f"crash{place}.dag")
        hears(people.bob, "dag", dag=dag)
        happens("fail", dag)
        has_died = _dies_at(place)

        told(people.bob)

        assert Notice.objects.filter(user=people.bob, subject_id=str(dag.pk)).count() == 1
        assert not InboxEntry.objects.filter(topic__in=TOPICS).exists()
        if not has_died:
            break
        place += 1
    assert place > 5


class _Killed(BaseException):
    """The process is no more."""


def _dies_at(place: int) -> bool:
    """Run a cycle that is killed before its statement of this number; false if it has fewer."""
    seen = iter(range(10**6))

    def kill(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        if next(seen) == place:
            raise _Killed
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(kill):
            fanout.run_cycle(timezone.now())
    except _Killed:
        return True
    return False


def test_events_are_read_once_by_two_readers(people: SimpleNamespace, dag: Dag) -> None:
    hears(people.bob, "dag", dag=dag)
    happens("fail", dag)

    first, second = fanout.process_batch(timezone.now()), fanout.process_batch(timezone.now())

    assert (first, second) == (1, 0)
    assert Notice.objects.count() == 1


def test_a_user_keeps_the_latest_notices_only(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fanout, "MAX_KEPT", 3)
    hears(people.alice, "my-dags-failed")
    dags = [factories.dag(people.alice, name=f"d{number}.dag") for number in range(5)]

    for dag in dags:
        happens("fail", dag)
        told(people.alice)

    kept = Notice.objects.order_by("pk").values_list("subject_id", flat=True)
    assert list(kept) == [str(dag.pk) for dag in dags[2:]]
