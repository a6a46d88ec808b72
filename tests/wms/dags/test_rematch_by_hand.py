from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_of,
    claim_one,
    end,
    match,
    run_one,
    states,
)
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.dags import engine, negotiation
from wms.dags.models import Dag, DagEvent, MatchmakingPolicy, MatchRecord, Node
from wms.dags.services import hold_dags, release_dags, rematch_dags, remove_dags
from wms.jobs.attempts import AttemptSuperseded
from wms.jobs.models import Attempt, Job
from wms.jobs.services import reschedule_jobs
from wms.sites.models import Site
from wms.taskqueues.models import WaitingJob

#: A is done first; then B and C are side by side, and D waits for both.
DIAMOND = "\n".join(
    [*(f"JOB {name} step.sub" for name in "ABCD"), "PARENT A CHILD B C", "PARENT B C CHILD D"]
)


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a")


@pytest.fixture
def by_alice(alice: User) -> dict:
    return {"actor": Actor.person(alice), "reason": "its storage is slow"}


def half_done(submit) -> tuple[Dag, Attempt]:
    """A DAG at site-a: A is done, the job of B runs, that of C waits."""
    dag = match(submit(DIAMOND))
    run_one("A")
    advance(dag)
    return dag, claim_of("B")


def move_to(dag: Dag, site: str) -> Dag:
    """Have the negotiator bind the DAG to this site: the others are switched off."""
    Site.objects.exclude(name=site).update(is_enabled=False)
    Site.objects.filter(name=site).update(is_enabled=True)
    return match(dag)


def lose(attempt: Attempt) -> None:
    """The pilot is gone; its job waits again."""
    reschedule_jobs(
        [attempt.job_id],
        outcome=Attempt.Outcome.LOST,
        actor=Actor.system("test"),
        reason="its pilot is lost",
    )


def finish(dag: Dag, site: str) -> Dag:
    while (attempt := claim_one(site)) is not None:
        end(attempt)
        advance(dag)
    return dag


def at_once(*works: Callable[[], object]) -> None:
    """Do all of this in threads that start together."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_rematched_dag_is_idle_and_keeps_what_is_done(submit, by_alice) -> None:
    dag, running = half_done(submit)

    applied = rematch_dags([dag.pk], **by_alice)

    assert (applied.changed, applied.skipped) == ([dag.pk], [])
    dag.refresh_from_db()
    assert (dag.state, dag.site, dag.matched_at) == ("idle", None, None)
    assert (dag.match_attributes, dag.environment) == ({}, {})
    assert (dag.done_count, dag.submitted_count, dag.rematch_count) == (1, 0, 1)
    assert states(dag) == {"A": "done", "B": "ready", "C": "ready", "D": "waiting"}
    assert not WaitingJob.objects.exists()
    assert set(Job.objects.exclude(name="A").values_list("state", flat=True)) == {"killed"}
    assert Job.objects.filter(name="B").get().state_reason == (
        "the DAG leaves its site: its storage is slow"
    )
    with pytest.raises(AttemptSuperseded):
        end(running)
    assert_log_agrees(dag)


def test_the_engine_leaves_a_rematched_dag_alone_until_it_is_matched(submit, by_alice) -> None:
    dag, _ = half_done(submit)
    rematch_dags([dag.pk], **by_alice)

    advance(dag)

    assert dag.state == "idle"
    assert states(dag) == {"A": "done", "B": "ready", "C": "ready", "D": "waiting"}
    assert_log_agrees(dag)


def test_a_rematched_dag_runs_to_its_end_at_another_site(submit, make_site, by_alice) -> None:
    dag, _ = half_done(submit)
    make_site("site-b")
    rematch_dags([dag.pk], **by_alice)

    move_to(dag, "site-b")

    assert dag.site is not None
    assert dag.site.name == "site-b"
    assert Node.objects.get(dag=dag, name="B").retry_number == 0
    assert finish(dag, "site-b").state == "completed"
    assert Job.objects.filter(name="A").count() == 1
    assert_log_agrees(dag)


def test_running_jobs_may_finish_where_they_are(submit, make_site, by_alice) -> None:
    dag, running = half_done(submit)
    make_site("site-b")

    rematch_dags([dag.pk], lets_finish=True, **by_alice)

    dag.refresh_from_db()
    assert (dag.state, dag.submitted_count) == ("idle", 1)
    assert states(dag) == {"A": "done", "B": "submitted", "C": "ready", "D": "waiting"}
    assert claim_one() is None
    end(running)
    assert advance(dag).state == "idle"
    assert states(dag)["B"] == "done"
    assert_log_agrees(dag)
    move_to(dag, "site-b")
    assert finish(dag, "site-b").state == "completed"
    assert_log_agrees(dag)


def test_a_dag_whose_last_jobs_finish_while_it_is_idle_is_completed(submit, by_alice) -> None:
    dag = match(submit("JOB A step.sub"))
    running = claim_one()
    assert running is not None
    rematch_dags([dag.pk], lets_finish=True, **by_alice)

    end(running)

    assert advance(dag).state == "completed"
    assert_log_agrees(dag)


def test_a_dag_whose_last_jobs_fail_while_it_is_idle_has_failed(submit, by_alice) -> None:
    dag = match(submit("JOB A step.sub"))
    running = claim_one()
    assert running is not None
    rematch_dags([dag.pk], lets_finish=True, **by_alice)

    end(running, exit_code=1)

    assert advance(dag).state == "failed"
    assert_log_agrees(dag)


def test_the_retry_of_a_job_left_behind_goes_to_the_new_site(submit, make_site, by_alice) -> None:
    dag = match(submit("JOB A step.sub\nRETRY A 1"))
    running = claim_one()
    assert running is not None
    make_site("site-b")
    rematch_dags([dag.pk], lets_finish=True, **by_alice)
    move_to(dag, "site-b")

    end(running, exit_code=1)
    advance(dag)

    assert claim_one("site-a") is None
    assert finish(dag, "site-b").state == "completed"
    assert Node.objects.get().retry_number == 1
    assert_log_agrees(dag)


@pytest.mark.parametrize("where", ["idle", "held", "site-b"])
def test_a_job_that_comes_back_does_not_wait_at_the_site_its_dag_has_left(
    submit, make_site, by_alice, where: str
) -> None:
    dag, running = half_done(submit)
    make_site("site-b")
    rematch_dags([dag.pk], lets_finish=True, **by_alice)
    if where == "held":
        hold_dags([dag.pk], **by_alice)
    elif where == "site-b":
        move_to(dag, "site-b")

    lose(running)
    advance(dag)

    assert claim_one("site-a") is None
    assert Job.objects.get(pk=running.job_id).state == "killed"
    assert Node.objects.get(dag=dag, name="B").retry_number == 0
    assert_log_agrees(dag)
    if where == "held":
        release_dags([dag.pk], actor=by_alice["actor"])
    if where != "site-b":
        assert states(dag)["B"] == "ready"
        move_to(dag, "site-b")
    assert states(dag)["B"] == "submitted"
    assert finish(dag, "site-b").state == "completed"
    assert_log_agrees(dag)


def test_a_job_that_came_back_and_was_claimed_again_is_left_to_its_pilot(submit, by_alice) -> None:
    dag, running = half_done(submit)
    rematch_dags([dag.pk], lets_finish=True, **by_alice)
    lose(running)
    again = claim_one()
    assert again is not None

    advance(dag)

    assert states(dag)["B"] == "submitted"
    end(again)
    advance(dag)
    assert states(dag)["B"] == "done"
    assert_log_agrees(dag)


def test_a_job_that_ended_before_the_engine_looked_counts(submit, by_alice) -> None:
    dag, running = half_done(submit)
    end(running)

    rematch_dags([dag.pk], **by_alice)
    advance(dag)

    assert states(dag) == {"A": "done", "B": "done", "C": "ready", "D": "waiting"}
    assert (dag.done_count, dag.submitted_count) == (2, 0)
    assert_log_agrees(dag)


def test_a_held_dag_can_be_rematched_and_its_held_jobs_with_it(submit, make_site, by_alice) -> None:
    dag, _ = half_done(submit)
    make_site("site-b")
    hold_dags([dag.pk], **by_alice)

    rematch_dags([dag.pk], **by_alice)

    dag.refresh_from_db()
    assert dag.state == "idle"
    assert not Job.objects.filter(state="held").exists()
    move_to(dag, "site-b")
    assert finish(dag, "site-b").state == "completed"
    assert_log_agrees(dag)


def test_an_idle_dag_is_removed_with_the_jobs_that_it_left_behind(submit, by_alice) -> None:
    dag, running = half_done(submit)
    rematch_dags([dag.pk], lets_finish=True, **by_alice)

    remove_dags([dag.pk], **by_alice)
    advance(dag)

    with pytest.raises(AttemptSuperseded):
        end(running)
    assert (dag.state, dag.submitted_count) == ("removed", 0)
    assert_log_agrees(dag)


def test_a_second_rematch_stops_what_the_first_one_left_behind(submit, make_site, by_alice) -> None:
    dag, running = half_done(submit)
    make_site("site-b")
    rematch_dags([dag.pk], lets_finish=True, **by_alice)
    move_to(dag, "site-b")

    rematch_dags([dag.pk], **by_alice)

    assert Job.objects.get(pk=running.job_id).state == "killed"
    dag.refresh_from_db()
    assert (dag.submitted_count, dag.rematch_count) == (0, 2)
    assert_log_agrees(dag)


def test_the_record_of_the_stay_says_how_it_ended_and_until_when_the_site_is_avoided(
    submit, by_alice
) -> None:
    dag, _ = half_done(submit)

    rematch_dags([dag.pk], avoid_s=600, **by_alice)

    stay = MatchRecord.objects.get(dag=dag)
    assert (stay.end, stay.reason) == ("rematch", "its storage is slow")
    assert stay.ended_at is not None
    assert stay.avoided_until == stay.ended_at + timedelta(seconds=600)
    event = DagEvent.objects.get(event="rematch")
    assert event.facts == {"site": "site-a", "lets_finish": False, "avoid_s": 600}
    entry = AuditEntry.objects.get(action="rematch DAG")
    assert (entry.actor, entry.target, entry.reason) == (
        "alice", f"DAG {dag.pk}", "its storage is slow",
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
