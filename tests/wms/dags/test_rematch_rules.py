from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_one,
    end,
    match,
    run_one,
)
from tests.wms.dags.rematching import DIAMOND, at_once, finish, half_done, move_to
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.dags.engine import cycle as engine
from wms.dags.models import Dag, DagEvent, MatchmakingPolicy, MatchRecord
from wms.dags.negotiation import cycle as negotiation
from wms.dags.services.dags import hold_dags, release_dags, rematch_dags, remove_dags
from wms.jobs.models import Attempt, Job
from wms.taskqueues.models import WaitingJob


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a")


@pytest.fixture
def by_alice(alice: User) -> dict:
    return {"actor": Actor.person(alice), "reason": "its storage is slow"}


def test_the_record_of_the_stay_says_how_it_ended_and_until_when_the_site_is_avoided(
    submit, by_alice
) -> None:
    dag, _ = half_done(submit)

    rematch_dags([dag.pk], avoid_s=600, **by_alice)

    stay = MatchRecord.objects.get(dag=dag)
    assert (stay.end, stay.reason) == ("rematch", by_alice["reason"])
    assert stay.ended_at is not None
    assert stay.avoided_until == stay.ended_at + timedelta(seconds=600)
    event = DagEvent.objects.get(event="rematch")
    assert event.facts == {"site": "site-a", "lets_finish": False, "avoid_s": 600}
    entry = AuditEntry.objects.get(action="rematch DAG")
    assert (entry.actor, entry.target, entry.reason) == (
        "alice", f"DAG {dag.pk}", by_alice["reason"],
    )  # fmt: skip


@pytest.mark.parametrize(("stored_s", "expected_s"), [(None, 3600), (60, 60)])
def test_without_a_time_of_its_own_that_of_the_policy_holds(
    submit, by_alice, stored_s, expected_s
) -> None:
    if stored_s is not None:
        MatchmakingPolicy.objects.create(pk=1, avoid_s=stored_s)
    dag, _ = half_done(submit)

    rematch_dags([dag.pk], **by_alice)

    stay = MatchRecord.objects.get(dag=dag)
    assert stay.avoided_until - stay.ended_at == timedelta(seconds=expected_s)


@pytest.mark.parametrize(
    ("steer", "ending"), [("complete", "complete"), ("fail", "fail"), ("remove", "remove")]
)
def test_the_end_of_a_dag_ends_its_stay(submit, by_alice, steer: str, ending: str) -> None:
    dag = match(submit("JOB A step.sub"))
    if steer == "remove":
        remove_dags([dag.pk], **by_alice)
    else:
        run_one("A", exit_code=0 if steer == "complete" else 1)
        advance(dag)

    stay = MatchRecord.objects.get(dag=dag)
    assert stay.end == ending
    assert stay.ended_at is not None
    assert stay.avoided_until is None


def test_a_dag_that_cannot_even_start_leaves_its_site_and_its_stay_ends(submit) -> None:
    text = "executable = step.sh\narguments = $$(Gatekeeper)\nqueue\n"
    dag = submit("JOB A step.sub", files={"step.sub": text})
    negotiation.run_cycle(NOW)
    advance(dag)

    assert (dag.state, dag.site, dag.match_attributes) == ("held", None, {})
    assert MatchRecord.objects.get(dag=dag).end == "hold"


def test_dags_without_a_site_are_skipped(submit, by_alice) -> None:
    at_site, _ = half_done(submit)
    held_before = submit(DIAMOND)
    hold_dags([held_before.pk], **by_alice)
    removed = submit(DIAMOND)
    remove_dags([removed.pk], **by_alice)

    applied = rematch_dags([at_site.pk, held_before.pk, removed.pk], **by_alice)

    assert applied.changed == [at_site.pk]
    assert applied.skipped == [held_before.pk, removed.pk]
    assert AuditEntry.objects.filter(action="rematch DAG").count() == 1


def test_a_rematch_needs_a_reason_and_changes_nothing_without(submit, alice: User) -> None:
    dag, running = half_done(submit)

    with pytest.raises(ReasonRequired):
        rematch_dags([dag.pk], actor=Actor.person(alice), reason=" ")

    dag.refresh_from_db()
    assert dag.state == "running"
    assert Job.objects.get(pk=running.job_id).state == "matched"


@pytest.mark.parametrize("avoid_s", [-1, 31 * 86_400])
def test_a_senseless_time_to_avoid_a_site_is_refused(submit, by_alice, avoid_s: int) -> None:
    dag, _ = half_done(submit)

    with pytest.raises(InvalidInput, match="avoid_s"):
        rematch_dags([dag.pk], avoid_s=avoid_s, **by_alice)


def test_another_user_may_not_rematch_and_a_shifter_may(submit, charlie: User, sam: User) -> None:
    dag, _ = half_done(submit)

    with pytest.raises(NotPermitted):
        rematch_dags([dag.pk], actor=Actor.person(charlie), reason="mine")
    rematch_dags([dag.pk], actor=Actor.person(sam), reason="site is down")

    assert DagEvent.objects.get(event="rematch").actor == "sam"


@pytest.mark.slow
def test_the_queries_do_not_grow_with_the_selection(
    submit, sam: User, make_site, django_assert_max_num_queries
) -> None:
    make_site("site-a", max_matches=100)
    counts = []
    for size in (1, 12):
        dags = [submit(DIAMOND) for _ in range(size)]
        match(dags[0])
        with django_assert_max_num_queries(45) as captured:
            applied = rematch_dags(
                [dag.pk for dag in dags], actor=Actor.person(sam), reason="the site burns"
            )
        assert len(applied.changed) == size
        counts.append(len(captured))

    assert counts[0] == counts[1]


def test_a_policy_counts_anew_after_a_person_has_rematched_or_released(submit, by_alice) -> None:
    dag, _ = half_done(submit)
    Dag.objects.update(policy_rematch_count=5)
    rematch_dags([dag.pk], **by_alice)
    dag.refresh_from_db()
    assert (dag.policy_rematch_count, dag.rematch_count) == (0, 1)

    hold_dags([dag.pk], **by_alice)
    Dag.objects.update(policy_rematch_count=5)
    release_dags([dag.pk], actor=by_alice["actor"])

    dag.refresh_from_db()
    assert dag.policy_rematch_count == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_pilots_that_claim_while_a_dag_is_rematched_lose_and_double_nothing(
    submit, make_site, sam: User
) -> None:
    names = [f"N{number}" for number in range(30)]
    dag = match(submit("\n".join(f"JOB {name} step.sub" for name in names)))
    make_site("site-b")
    claims: list[Attempt | None] = []

    at_once(
        *[lambda: claims.extend(claim_one() for _ in range(6))] * 3,
        lambda: rematch_dags([dag.pk], actor=Actor.person(sam), reason="burns", lets_finish=True),
        lambda: engine.run_cycle(timezone.now()),
    )
    claimed = [attempt for attempt in claims if attempt is not None]
    advance(dag)

    assert dag.state == "idle"
    assert dag.submitted_count == len(claimed)
    assert not WaitingJob.objects.exists()
    assert_log_agrees(dag)
    for attempt in claimed:
        end(attempt)
    advance(dag)
    if dag.state == "idle":
        move_to(dag, "site-b")
        finish(dag, "site-b")
    assert dag.state == "completed"
    assert Attempt.objects.filter(outcome="done").count() == len(names)
    assert_log_agrees(dag)
