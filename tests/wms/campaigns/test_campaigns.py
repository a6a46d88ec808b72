"""Campaigns: what carries the label is summed, as far as it may be seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from tests.wms.dags.driving import advance, claim_of, claim_one, end, match, run_one
from tests.wms.jobs.clusters.samples import PLAIN
from tests.wms.jobs.clusters.samples import submit as submit_jobs
from wms.accounting.models import AccountingGroup, Frontend
from wms.campaigns.forecast import BINS, NoForecast, Verdict
from wms.campaigns.label_sums import label_sums
from wms.campaigns.progress import progress_of, recent_ends
from wms.campaigns.selectors import campaigns, find_campaign, members_of
from wms.campaigns.services import set_deadline
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag, Node
from wms.dags.reading.run_selectors import related_runs
from wms.dags.services.dags import hold_dags, remove_dags, rescue_dag
from wms.failures import grouping
from wms.jobs.accounting import account_attempts
from wms.jobs.models import Cluster, TopicUse

MC = ("campaign=mc27",)
TWO = "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B"
WHY = {"actor": Actor.system("test"), "reason": "test"}
SOON = datetime(2100, 5, 1, tzinfo=UTC)


def _jobs(owner: User, size: int = 3, *labels: str) -> Cluster:
    options = {"labels": list(labels or MC)}
    return submit_jobs(owner, f"{PLAIN}queue {size}\n", options=options).cluster


def test_a_campaign_has_all_dags_and_clusters_with_its_label(
    submit, make_site, alice: User
) -> None:
    make_site("site-a")
    match(submit(TWO, labels=MC))
    submit(TWO, labels=("campaign=mc28",))
    _jobs(alice)
    run_one("A")
    found = find_campaign(alice, "mc27", now=timezone.now())

    assert (found.sums.dags, found.sums.clusters) == (1, 1)
    assert (found.progress.total, found.progress.done, found.progress.left) == (5, 0, 5)
    assert found.forecast.cause == NoForecast.TOO_EARLY
    assert [line.name for line in campaigns(alice, label_sums(alice))] == ["mc27", "mc28"]


def test_core_hours_and_attempts_are_added_once_by_dag(submit, make_site, alice: User) -> None:
    make_site("site-a")
    dag = match(submit(TWO, labels=MC))
    run_one("A")
    advance(dag)
    end(claim_of("B"), exit_code=1)
    for _ in range(2):
        account_attempts()
    TopicUse.objects.update(useful_s=7200.0, failed_s=1800.0)

    found = find_campaign(alice, "mc27", now=timezone.now())

    assert (found.use.done, found.use.failed, found.use.lost) == (1, 1, 0)
    assert found.use.core_hours == pytest.approx(2.5)
    [line] = label_sums(alice)
    assert (line.jobs_done, line.core_hours) == (1, pytest.approx(2.5))


def test_an_attempt_of_no_dag_or_cluster_has_no_row_of_its_own(
    submit, make_site, alice: User
) -> None:
    make_site("site-a")
    match(submit("JOB A step.sub"))
    run_one("A")
    account_attempts()

    assert TopicUse.objects.get().topic_key == Dag.objects.get().pk


def test_a_dag_that_goes_on_as_a_new_run_counts_once(submit, make_site, alice: User) -> None:
    make_site("site-a")
    dag = match(submit(TWO, labels=MC))
    run_one("A")
    advance(dag)
    remove_dags([dag.pk], **WHY)
    rescue_dag(dag.pk, **WHY)

    progress = progress_of(*members_of(alice, "mc27"))

    assert (progress.total, progress.done, progress.left) == (2, 1, 1)
    assert progress.ended_at is None


def test_a_copy_of_somebody_else_takes_no_place_in_a_campaign(
    submit, alice: User, charlie: User
) -> None:
    dag = submit(TWO, labels=MC)
    copy = submit(TWO, owner=charlie)
    Dag.objects.filter(pk=copy.pk).update(previous_run=dag)

    assert progress_of(*members_of(alice, "mc27")).total == 2


def test_copies_are_told_to_whom_may_see_them(submit, alice: User, charlie: User) -> None:
    group = AccountingGroup.objects.create(
        name="atlas", frontend=Frontend.objects.create(name="atlas")
    )
    group.members.add(charlie)
    dag = submit(TWO)
    copy = submit(TWO, owner=charlie)
    Dag.objects.filter(pk=copy.pk).update(previous_run=dag, accounting_group=group)

    assert related_runs(dag, alice, inner=5, further=5).further == []
    assert [each.pk for each in related_runs(dag, charlie, inner=5, further=5).further] == [copy.pk]


def test_what_is_held_is_told_and_what_was_removed_is_not_left(submit, alice: User) -> None:
    held, removed = submit(TWO, labels=MC), submit(TWO, labels=MC)
    hold_dags([held.pk], **WHY)
    remove_dags([removed.pk], **WHY)

    progress = progress_of(*members_of(alice, "mc27"))

    assert (progress.total, progress.left, progress.standing_still) == (4, 2, 2)
    assert progress.lost == 2


def test_a_campaign_of_which_all_has_ended_has_an_end(submit, alice: User) -> None:
    dag = submit(TWO, labels=MC)
    remove_dags([dag.pk], **WHY)
    dag.refresh_from_db()

    found = find_campaign(alice, "mc27", now=timezone.now())

    assert found.progress.ended_at == dag.ended_at
    assert found.forecast.cause == NoForecast.OVER


def test_the_ends_of_nodes_are_counted_in_the_parts_of_the_window(submit, alice: User) -> None:
    now = timezone.now()
    dag = submit("\n".join(f"JOB N{n} step.sub" for n in range(30)), labels=MC)
    nodes = list(Node.objects.filter(dag=dag).order_by("ordinal"))
    for number, node in enumerate(nodes[:24]):
        node.state, node.state_since = "done", now - timedelta(hours=number, minutes=30)
    Node.objects.bulk_update(nodes, ["state", "state_since"])

    ends = recent_ends(*members_of(alice, "mc27"), window=timedelta(hours=12), now=now)

    assert ends == [1] * BINS


def test_a_forecast_is_made_of_the_ends(submit, alice: User) -> None:
    now = timezone.now()
    dag = submit("\n".join(f"JOB N{n} step.sub" for n in range(60)), labels=MC)
    nodes = list(Node.objects.filter(dag=dag).order_by("ordinal"))
    for number, node in enumerate(nodes[:48]):
        node.state, node.state_since = "done", now - timedelta(minutes=30 * number + 15)
    Node.objects.bulk_update(nodes, ["state", "state_since"])
    Dag.objects.filter(pk=dag.pk).update(done_count=48, created_at=now - timedelta(days=3))

    found = find_campaign(alice, "mc27", now=now)

    assert found.forecast.per_hour == pytest.approx(2.0)
    assert found.forecast.expected == now + timedelta(hours=6)


@pytest.mark.slow
def test_the_most_frequent_causes_of_failures_are_told(submit, make_site, alice: User) -> None:
    make_site("site-a")
    dag = match(submit("JOB A step.sub\nJOB B step.sub", labels=MC))
    for _ in range(2):
        attempt = claim_one()
        assert attempt is not None
        end(attempt, exit_code=7)
    advance(dag)
    grouping.run_cycle(timezone.now())

    causes = find_campaign(alice, "mc27", now=timezone.now()).causes

    assert causes
    assert causes[0].count == 2
    assert sum(cause.count for cause in causes if cause.group.kind == "job") == 2


def test_walls_stand_in_campaigns_too(submit, alice: User, charlie: User, sam: User) -> None:
    group = AccountingGroup.objects.create(
        name="atlas", frontend=Frontend.objects.create(name="atlas")
    )
    group.members.add(charlie)
    submit(TWO, labels=MC)
    theirs = _jobs(charlie, 5)
    Cluster.objects.filter(pk=theirs.pk).update(accounting_group=group)
    set_deadline("mc27", deadline=SOON, actor=Actor.person(charlie), reason="x")

    alices = find_campaign(alice, "mc27", now=timezone.now())
    charlies = find_campaign(charlie, "mc27", now=timezone.now())
    sams = find_campaign(sam, "mc27", now=timezone.now())

    assert (alices.progress.total, alices.sums.clusters, alices.deadline) == (2, 0, None)
    assert (charlies.progress.total, charlies.sums.dags) == (5, 0)
    assert charlies.deadline is not None
    assert sams.progress.total == 7
    _jobs(charlie, 1, "campaign=secret")
    Cluster.objects.filter(labels=["campaign=secret"]).update(accounting_group=group)
    with pytest.raises(NotFound):
        find_campaign(alice, "secret", now=timezone.now())
    assert [line.name for line in campaigns(alice, label_sums(alice))] == ["mc27"]


def test_a_deadline_is_set_with_a_reason_by_who_takes_part(
    submit, alice: User, charlie: User, sam: User
) -> None:
    submit(TWO, labels=MC)

    with pytest.raises(NotPermitted):
        set_deadline("mc27", deadline=SOON, actor=Actor.person(charlie), reason="x")
    with pytest.raises(ReasonRequired):
        set_deadline("mc27", deadline=SOON, actor=Actor.person(alice), reason=" ")
    with pytest.raises(InvalidInput):
        set_deadline(
            "mc27", deadline=SOON.replace(year=1999), actor=Actor.person(alice), reason="x"
        )
    with pytest.raises(NotFound):
        set_deadline("mc28", deadline=SOON, actor=Actor.person(alice), reason="x")
    set_deadline("mc27", deadline=SOON, actor=Actor.person(alice), reason="the conference")

    assert find_campaign(alice, "mc27", now=timezone.now()).verdict == Verdict.UNKNOWN
    assert AuditEntry.objects.get(target="campaign mc27").reason == "the conference"

    set_deadline("mc27", deadline=None, actor=Actor.person(sam), reason="moved")

    assert find_campaign(alice, "mc27", now=timezone.now()).verdict == Verdict.NONE


def test_a_deadline_that_was_changed_meanwhile_is_not_overwritten(submit, alice: User) -> None:
    submit(TWO, labels=MC)
    set_deadline("mc27", deadline=SOON, actor=Actor.person(alice), reason="x", seen="none")

    with pytest.raises(Conflict):
        set_deadline("mc27", deadline=None, actor=Actor.person(alice), reason="x", seen="none")


def test_labels_are_summed_one_by_one(submit, alice: User) -> None:
    submit(TWO, labels=("a", "b"))
    submit(TWO, labels=("b",))
    _jobs(alice, 3, "b")

    sums = {each.label: each for each in label_sums(alice)}

    assert (sums["a"].dags, sums["a"].nodes["total"], sums["a"].clusters) == (1, 2, 0)
    assert (sums["b"].dags, sums["b"].nodes["total"], sums["b"].jobs["total"]) == (2, 4, 3)
    assert (sums["b"].active_dags, sums["b"].active_clusters) == (2, 1)
    assert [each.label for each in label_sums(alice, prefix="b")] == ["b"]
