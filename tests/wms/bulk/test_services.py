"""Freezing, confirming, stopping, trying again, forgetting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import factories
from tests.wms.bulk.conftest import finish, outcomes
from tests.wms.jobs.clusters.samples import submit
from tests.wms.schedules.test_schedules import make as make_schedule
from wms.actions.registry import KINDS
from wms.bulk import execution, services
from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.policy import may_act
from wms.bulk.preview import preview_of
from wms.bulk.pruning import KEPT_FOR, PREVIEW_LIFE, prune
from wms.bulk.services import Confirmation, Selection, confirm, freeze, retry, stop
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted, TooMany
from wms.core.models import User
from wms.dags.models import Dag
from wms.jobs.models import Job, JobEvent

Make = Callable[..., BulkOperation]


def _all_jobs(**more: Any) -> Selection:
    return Selection("jobs", Job.objects.all(), **more)


def test_a_selection_is_frozen_by_one_statement(people: SimpleNamespace) -> None:
    for number in range(5):
        factories.job(people.alice, name=f"job{number}")

    with CaptureQueriesContext(
        connection,
    ) as queries:
        made = freeze(_all_jobs(), action="hold", actor=Actor.person(people.alice))

    inserts = [q["sql"] for q in queries if "INSERT INTO bulk_bulkitem" in q["sql"]]
    assert made.frozen_count == 5
    assert len(inserts) == 1
    ids = BulkItem.objects.order_by("pk").values_list("object_id", flat=True)
    assert list(ids) == sorted(Job.objects.values_list("pk", flat=True))


def test_more_than_the_most_is_refused_and_leaves_nothing(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        factories.job(people.alice, name=f"job{number}")
    monkeypatch.setattr(services, "MAX_OBJECTS", 2)

    with pytest.raises(TooMany, match="more than 2 jobs"):
        freeze(_all_jobs(), action="hold", actor=Actor.person(people.alice))

    assert not BulkOperation.objects.exists()
    assert not BulkItem.objects.exists()


def test_what_was_made_after_the_instant_is_not_in_it(people: SimpleNamespace) -> None:
    old, new = (factories.job(people.alice, name=name) for name in ("old", "new"))
    instant = timezone.now()
    Job.objects.filter(pk=old.pk).update(created_at=instant)
    Job.objects.filter(pk=new.pk).update(created_at=instant + timedelta(microseconds=1))

    made = freeze(_all_jobs(snapshot_at=instant), action="hold", actor=Actor.person(people.alice))

    assert set(outcomes(made)) == {old.pk}


def test_a_site_that_was_made_after_the_instant_is_not_in_it(people: SimpleNamespace) -> None:
    old = factories.site("Old")
    with transaction.atomic():
        instant = timezone.now()
    new = factories.site("New")
    old.events.update(created_at=instant - timedelta(hours=1))
    new.events.update(created_at=instant + timedelta(seconds=1))

    made = freeze(
        Selection("sites", type(old).objects.all(), snapshot_at=instant),
        action="ban",
        actor=Actor.person(people.sam),
    )

    assert set(outcomes(made)) == {old.pk}


def test_viewers_and_systems_act_on_nothing(people: SimpleNamespace) -> None:
    factories.job(people.alice)

    for actor in (Actor.person(people.vera), factories.SYSTEM):
        with pytest.raises(NotPermitted):
            freeze(_all_jobs(), action="hold", actor=actor)


def test_of_many_previews_the_latest_are_kept(people: SimpleNamespace) -> None:
    factories.job(people.alice)
    actor = Actor.person(people.alice)
    confirmed = freeze(_all_jobs(), action="hold", actor=actor)
    confirm(confirmed.pk, Confirmation(reason="x"), actor=actor)

    made = [freeze(_all_jobs(), action="hold", actor=actor).pk for _ in range(7)]

    kept = set(BulkOperation.objects.values_list("pk", flat=True))
    assert kept == {confirmed.pk, *made[-services.MAX_PREVIEWS :]}


def test_what_is_old_is_forgotten(people: SimpleNamespace, order: Make) -> None:
    job = factories.job(people.alice)
    actor = Actor.person(people.alice)
    ended = finish(order(people.alice, "jobs", [job], "hold"))
    active = order(people.alice, "jobs", [job], "kill")
    preview = freeze(_all_jobs(), action="hold", actor=actor)
    now = timezone.now()

    assert prune(now) == 0
    assert prune(now + PREVIEW_LIFE + timedelta(minutes=1)) == 1
    assert not BulkOperation.objects.filter(pk=preview.pk).exists()
    assert prune(now + KEPT_FOR + timedelta(minutes=1)) == 1
    assert list(BulkOperation.objects.all()) == [active]
    assert not BulkItem.objects.filter(operation_id=ended.pk).exists()


def test_a_preview_of_yesterday_is_not_confirmed(people: SimpleNamespace) -> None:
    factories.job(people.alice)
    actor = Actor.person(people.alice)
    made = freeze(_all_jobs(), action="hold", actor=actor)
    old = timezone.now() - PREVIEW_LIFE - timedelta(minutes=1)
    BulkOperation.objects.filter(pk=made.pk).update(created_at=old)

    with pytest.raises(Conflict):
        confirm(made.pk, Confirmation(reason="x"), actor=actor)


def test_more_than_a_thousand_are_confirmed_by_their_number(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        factories.job(people.alice, name=f"job{number}")
    monkeypatch.setattr("wms.bulk.preview.TYPED_ABOVE", 2)
    actor = Actor.person(people.alice)
    made = freeze(_all_jobs(), action="hold", actor=actor)

    assert preview_of(made, people.alice).must_type
    with pytest.raises(InvalidInput, match="type 3"):
        confirm(made.pk, Confirmation(seen=3, reason="x"), actor=actor)
    assert confirm(
        made.pk, Confirmation(seen=3, typed=3, reason="x"), actor=actor
    ).state == "confirmed"  # fmt: skip


def test_an_operation_that_goes_on_is_not_tried_again(people: SimpleNamespace, order: Make) -> None:
    operation = order(people.alice, "jobs", [factories.job(people.alice)], "hold")
    actor = Actor.person(people.alice)

    with pytest.raises(Conflict, match="has not ended"):
        retry(operation.pk, actor=actor)
    finish(operation)
    with pytest.raises(Conflict, match="nothing to do"):
        retry(operation.pk, actor=actor)
    with pytest.raises(Conflict, match="is done"):
        stop(operation.pk, actor=actor)


@pytest.mark.slow
@pytest.mark.parametrize("role", factories.ROLES)
@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_preview_and_the_services_agree_on_who_may(
    people: SimpleNamespace, order: Make, role: str, kind: Any
) -> None:
    """What a preview says that can be changed is changed; what it says is refused is skipped."""
    user: User = getattr(people, role)
    if not may_act(user):
        return
    site = factories.site()
    rows = {
        "dags": lambda: [factories.dag(people.alice)],
        "jobs": lambda: [factories.job(people.alice)],
        "clusters": lambda: [submit(people.alice, "executable = /bin/true\nqueue 2\n").cluster],
        "schedules": lambda: [make_schedule(people.alice)],
        "pilots": lambda: [factories.pilot(site.queues.get())],
        "sites": lambda: [site],
        "placements": lambda: [],
    }[kind.name]()
    if not rows:
        return
    action = {"pilots": "drain", "sites": "drain", "schedules": "pause"}.get(kind.name, "hold")
    selection = Selection(kind.name, kind.model.objects.filter(pk=rows[0].pk))
    made = freeze(selection, action=action, actor=Actor.person(user))
    expected = preview_of(made, user).fitting
    confirm(made.pk, Confirmation(reason="x"), actor=Actor.person(user))

    done = finish(made)

    assert (done.done_count, done.skipped_count) == (expected, 1 - expected)


def test_each_action_names_known_states_only() -> None:
    for kind in KINDS.values():
        for action in kind.actions.values():
            assert action.check({}).keys() == {a.name for a in action.arguments}
            assert str(kind.model.objects.annotate(why=action.obstacle()).query)


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(st.sampled_from(["batch", "die", "stop"]), max_size=6),
    size=st.integers(1, 4),
)
def test_whatever_happens_outcomes_and_objects_agree(
    people: SimpleNamespace, steps: list[str], size: int
) -> None:
    with transaction.atomic():
        jobs = [factories.job(people.alice, name=f"job{number}") for number in range(5)]
        rows = Job.objects.filter(pk__in=[job.pk for job in jobs])
        actor = Actor.person(people.alice)
        made = freeze(Selection("jobs", rows), action="hold", actor=actor)
        confirm(made.pk, Confirmation(reason="x"), actor=actor)
        BulkOperation.objects.filter(pk=made.pk).update(batch_limit=size)

        for step in steps:
            _take(step, made, actor)
        made.refresh_from_db()

        held = set(rows.filter(state="held").values_list("pk", flat=True))
        done = {pk for pk, (outcome, _) in outcomes(made).items() if outcome == "done"}
        assert held == done
        assert made.done_count == len(done)
        assert JobEvent.objects.filter(job__in=rows, event="hold").count() == len(done)
        assert (made.state == "done") <= (made.pending_count == 0)
        transaction.set_rollback(True)


def _take(step: str, operation: BulkOperation, actor: Actor) -> None:
    if step == "batch":
        execution.run_batch(operation.pk)
    elif step == "die":
        # As a worker that is killed after its work, and before it is committed.
        with transaction.atomic():
            execution.run_batch(operation.pk)
            transaction.set_rollback(True)
    else:
        try:
            stop(operation.pk, actor=actor)
        except Conflict:
            operation.refresh_from_db()
            assert operation.state == "done"


def test_the_preview_counts_by_state_owner_and_obstacle(people: SimpleNamespace) -> None:
    first = factories.dag(people.alice, name="a.dag")
    factories.dag(people.bob, name="b.dag")
    Dag.objects.filter(pk=first.pk).update(state="removed", ended_at=timezone.now())
    made = freeze(
        Selection("dags", Dag.objects.all()), action="hold", actor=Actor.person(people.bob)
    )

    found = preview_of(made, people.bob)

    assert (found.total, found.fitting, found.foreign) == (2, 1, 1)
    assert dict(found.states) == {"idle": 1, "removed": 1}
    assert dict(found.groups) == {"alice": 1, "bob": 1}
    assert dict(found.skipped) == {KINDS["dags"].refusal: 1}
    assert [sample.obstacle for sample in found.samples] == [KINDS["dags"].refusal, ""]
