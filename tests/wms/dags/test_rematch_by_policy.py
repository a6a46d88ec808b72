from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests import factories
from tests.wms.dags.driving import (
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
from wms.dags import operations
from wms.dags.models import Dag, DagEvent, MatchmakingPolicy, MatchRecord
from wms.dags.negotiation import rematch as rematching
from wms.dags.negotiation.stay_figures import stays_of
from wms.dags.services.dags import release_dags, rematch_dags
from wms.dags.states import DagCause
from wms.jobs.models import Job
from wms.pilots.models import Pilot
from wms.sites.models import Site

FIVE = "\n".join(f"JOB {name} step.sub\nRETRY {name} 1" for name in "ABCDE")


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a", max_matches=100)


@pytest.fixture
def matched(submit):
    """A DAG at site-a that was matched an hour ago and has this expression."""

    def make(expression: str = "", text: str = FIVE) -> Dag:
        dag = submit(text)
        match(dag)
        matched_at = timezone.now() - timedelta(hours=1)
        Dag.objects.filter(pk=dag.pk).update(rematch_expression=expression, matched_at=matched_at)
        dag.refresh_from_db()
        return dag

    return make


def cycle() -> dict:
    return rematching.run_cycle(timezone.now())


def figures(dag: Dag) -> dict[str, int]:
    return stays_of(Dag.objects.filter(pk=dag.pk), now=timezone.now())[dag.pk].figures.attributes()


def test_a_dag_whose_expression_is_true_looks_for_another_site(matched) -> None:
    expression = "MatchedSeconds >= 3600 && NodesRunning == 0"
    dag = matched(expression)
    other = matched("NodesRunning > 100")

    report = cycle()

    assert report == {"dags": 2, "rematched": 1, "held": 0, "unclear": 0}
    dag.refresh_from_db()
    other.refresh_from_db()
    assert (dag.state, dag.site, dag.submitted_count) == ("idle", None, 0)
    assert (dag.rematch_count, dag.policy_rematch_count) == (1, 1)
    assert other.state == "running"
    event = DagEvent.objects.get(dag=dag, event="rematch")
    assert event.actor == "system:rematcher"
    assert event.reason.endswith(expression)
    assert event.facts["site"] == "site-a"
    assert event.facts["expression"] == expression
    assert event.facts["figures"]["NodesQueued"] == 5
    assert MatchRecord.objects.get(dag=dag).end == MatchRecord.End.POLICY
    assert_log_agrees(dag)


def test_the_figures_tell_how_the_dag_fares_here(matched, submit) -> None:
    dag = matched()
    run_one("A")
    run_one("B", exit_code=1)
    advance(dag)
    claim_of("C")
    Job.objects.filter(name="D").update(state_since=timezone.now() - timedelta(seconds=500))
    for state, ended_ago_s in (("failed", 60), ("aborted", 60), ("failed", 7200), ("done", 60)):
        pilot = factories.queued_pilot(Site.objects.get().queues.get())
        ended_at = timezone.now() - timedelta(seconds=ended_ago_s)
        Pilot.objects.filter(pk=pilot.pk).update(state=state, ended_at=ended_at, token_sha256="x")

    found = figures(dag)

    assert found.pop("MatchedSeconds") in range(3600, 3660)
    assert found.pop("QueuedSeconds") in range(500, 560)
    assert found == {
        "NodesTotal": 5,
        "NodesRunning": 1,
        "NodesQueued": 3,
        "NodesDone": 1,
        "NodesFailedHere": 1,
        "PilotsFailedHere": 2,
        "Rematches": 0,
    }


def test_what_was_left_behind_at_an_earlier_site_does_not_count_here(
    matched, make_site, alice
) -> None:
    dag = matched()
    left = claim_one()
    assert left is not None
    rematch_dags([dag.pk], actor=Actor.person(alice), reason="slow", lets_finish=True)
    make_site("site-b")
    Site.objects.filter(name="site-a").update(is_enabled=False)
    match(dag)

    found = figures(dag)

    assert (found["NodesRunning"], found["NodesQueued"], found["Rematches"]) == (0, 4, 1)


def test_the_policys_expression_is_for_dags_without_their_own(matched) -> None:
    MatchmakingPolicy.objects.create(pk=1, rematch_expression="NodesQueued > 0", avoid_s=60)
    patient, other = matched("false"), matched()

    report = cycle()

    assert (report["dags"], report["rematched"]) == (2, 1)
    patient.refresh_from_db()
    other.refresh_from_db()
    assert (patient.state, other.state) == ("running", "idle")
    stay = MatchRecord.objects.get(dag=other)
    assert stay.ended_at is not None
    assert stay.avoided_until == stay.ended_at + timedelta(seconds=60)


def test_the_site_as_it_was_at_the_match_can_be_asked(matched, make_site) -> None:
    make_site("site-a", attributes="IsSlow = true", max_matches=100)
    dag = matched('TARGET.IsSlow && TARGET.Name == "site-a" && MY.Owner =!= "nobody"')

    assert cycle()["rematched"] == 1
    dag.refresh_from_db()
    assert dag.state == "idle"


def test_at_the_cap_the_dag_is_held_and_a_release_lets_the_policy_begin_anew(
    matched, alice
) -> None:
    MatchmakingPolicy.objects.create(pk=1, max_rematches=2)
    dag = matched("NodesQueued > 0")
    running = claim_one()
    assert running is not None
    Dag.objects.update(policy_rematch_count=2, rematch_count=3)

    report = cycle()

    assert (report["rematched"], report["held"]) == (0, 1)
    dag.refresh_from_db()
    assert (dag.state, dag.site_id, dag.rematch_count) == ("held", Site.objects.get().pk, 3)
    assert dag.state_cause == DagCause.POLICY
    assert "2 rematches" in dag.state_reason
    facts = DagEvent.objects.get(event="hold").facts
    assert facts["expression"] == "NodesQueued > 0"
    assert facts["figures"]["NodesQueued"] == 4
    assert claim_one() is None
    end(running)
    assert states(advance(dag))[running.job.name] == "done"

    release_dags([dag.pk], actor=Actor.person(alice))
    assert cycle()["rematched"] == 1
    assert_log_agrees(dag)


def test_rematches_by_hand_do_not_count_for_the_cap(matched) -> None:
    MatchmakingPolicy.objects.create(pk=1, max_rematches=1)
    matched("true")
    Dag.objects.update(rematch_count=7, policy_rematch_count=0)

    assert cycle()["rematched"] == 1


def test_an_expression_without_a_truth_value_is_told_and_takes_nothing_away(matched) -> None:
    dag = matched("Unknown > 3")

    report = cycle()

    assert (report["rematched"], report["unclear"]) == (0, 1)
    [unclear] = report["first_unclear"]
    assert unclear.startswith(f"DAG {dag.pk}: ")
    assert "undefined" in unclear
    dag.refresh_from_db()
    assert dag.state == "running"


def test_only_running_dags_are_judged(matched, alice, submit) -> None:
    matched("true")
    Dag.objects.update(state="held", state_reason="wait")
    Dag.objects.filter(pk=submit(FIVE).pk).update(rematch_expression="true")

    assert cycle()["dags"] == 0


def test_a_dag_that_went_elsewhere_after_it_was_judged_stays_there(matched, monkeypatch) -> None:
    dag = matched("true")
    judged = rematching.stays_of

    def read_too_early(dags, *, now):
        stays = judged(dags, now=now)
        Dag.objects.update(matched_at=timezone.now())
        return stays

    monkeypatch.setattr(rematching, "stays_of", read_too_early)

    assert cycle()["rematched"] == 0
    dag.refresh_from_db()
    assert dag.state == "running"


@pytest.mark.slow
def test_a_fault_with_one_dag_stops_no_other(matched) -> None:
    good, bad, also_good = matched("true"), matched("true"), matched("true")
    # More than the column can count.
    Dag.objects.filter(pk=bad.pk).update(rematch_count=32_767)

    assert cycle()["rematched"] == 2

    states = dict(Dag.objects.values_list("pk", "state"))
    assert states == {good.pk: "idle", bad.pk: "running", also_good.pk: "idle"}
    assert_log_agrees(bad)


@pytest.mark.slow
def test_the_queries_do_not_grow_with_the_dags(matched, django_assert_max_num_queries) -> None:
    counts = []
    for size in (1, 10):
        for _ in range(size):
            matched("NodesQueued > 0")
        with django_assert_max_num_queries(75) as captured:
            assert cycle()["rematched"] == size
        counts.append(len(captured))

    assert counts[0] == counts[1]


def test_steering_holds_dags_with_their_waiting_jobs(matched) -> None:
    dag = matched()

    why = {"reason": "wait", "cause": DagCause.POLICY}
    operations.hold([dag.pk], actor=Actor.system("test"), **why)

    assert set(Job.objects.values_list("state", flat=True)) == {"held"}


def test_a_dag_whose_own_expression_is_slow_is_held(matched, monkeypatch) -> None:
    monkeypatch.setattr(rematching, "SLOW_S", -1.0)
    dag, other = matched("MatchedSeconds > 99999"), matched("")

    assert cycle()["held"] == 1

    dag.refresh_from_db()
    other.refresh_from_db()
    assert (dag.state, other.state) == ("held", "running")
    assert dag.state_cause == DagCause.POLICY
    assert "periodic_rematch" in dag.state_reason
