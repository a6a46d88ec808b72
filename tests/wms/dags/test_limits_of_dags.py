"""Limits of a DAG, of its categories, and those that DAGs share; all changed while it runs."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from tests.wms.dags.driving import (
    NOW,
    advance,
    claim_one,
    match,
    run_all,
    run_one,
    states,
    tell_and_advance,
)
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput
from wms.dags.engine import cycle as engine
from wms.dags.engine import timers
from wms.dags.models import Dag, NodeTimer, SharedLimit
from wms.dags.services.dags import change_limits
from wms.jobs.models import Job

SYSTEM = Actor.system("test")
WHY = {"actor": SYSTEM, "reason": "test"}
FIVE = "".join(f"JOB N{number} step.sub\n" for number in range(5))
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site(max_matches=10)


def _submitted(dag: Dag) -> int:
    return Counter(states(dag).values())["submitted"]


@pytest.mark.slow
def test_a_limit_is_changed_while_the_dag_runs(submit) -> None:
    dag = submit(FIVE)
    change_limits(dag.pk, options={"max_jobs": 2}, **WHY)
    match(dag)
    assert _submitted(dag) == 2

    change_limits(dag.pk, options={"max_jobs": 4}, **WHY)
    advance(dag)
    assert _submitted(dag) == 4

    change_limits(dag.pk, options={"max_jobs": 1}, **WHY)
    run_one("N0")
    advance(dag)
    assert _submitted(dag) == 3
    run_all(dag)
    assert dag.state == "completed"


def test_idle_jobs_keep_others_back_until_they_run(submit) -> None:
    dag = submit(FIVE)
    change_limits(dag.pk, options={"max_idle": 2}, **WHY)
    match(dag)
    assert _submitted(dag) == 2

    attempt = claim_one()
    Job.objects.filter(pk=attempt.job_id).update(state="running")
    tell_and_advance(dag)

    assert _submitted(dag) == 3


def test_a_category_has_a_limit_of_its_own_that_can_be_changed(submit) -> None:
    text = FIVE + "".join(f"CATEGORY N{n} heavy\n" for n in range(3)) + "MAXJOBS heavy 1\n"
    dag = match(submit(text))
    assert {name for name, state in states(dag).items() if state == "submitted"} == {
        "N0",
        "N3",
        "N4",
    }

    change_limits(dag.pk, categories={"heavy": 2}, **WHY)
    advance(dag)

    assert states(dag)["N1"] == "submitted"
    assert states(dag)["N2"] == "ready"


@pytest.mark.slow
def test_a_limit_of_a_user_counts_all_their_dags(submit, alice) -> None:
    SharedLimit.objects.create(owner=alice, max_jobs=3)
    first, second = submit(FIVE), submit(FIVE)
    match(first)
    advance(second)
    assert _submitted(first) + _submitted(second) == 3

    run_all(first)
    for _ in range(10):
        tell_and_advance(second)
        run_all(second)

    assert {first.state, second.state} == {"completed"}


def test_a_limit_of_a_site_and_a_category_counts_those_nodes_there(submit) -> None:
    text = FIVE + "".join(f"CATEGORY N{n} big\n" for n in range(3))
    first, second = submit(text), submit(text)
    match(first)
    site = Dag.objects.get(pk=first.pk).site
    assert _submitted(first) == 5

    third = submit(text)
    SharedLimit.objects.create(site=site, category="big", max_jobs=7)
    match(third)

    assert states(third)["N0"] == "submitted"
    assert states(third)["N1"] == "ready"
    assert states(third)["N4"] == "submitted"
    advance(second)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"options": {"max_jobs": -1}}, "max_jobs: must be from 0"),
        ({"options": {"max_jobs": True}}, "max_jobs: must be a whole number"),
        ({"options": {"max_rescue": 5}}, "max_rescue: cannot be changed"),
        ({"options": {"speed": 5}}, "speed: cannot be changed"),
        ({"categories": {"c": -1}}, "category c: must be a whole number"),
        ({"categories": {"hevy": 2}}, "category hevy: no node of the DAG is of this category"),
    ],
)
def test_a_wrong_limit_is_refused_with_its_name(submit, given, message) -> None:
    dag = submit(FIVE)

    with pytest.raises(InvalidInput, match=message):
        change_limits(dag.pk, **given, **WHY)


def test_limits_of_an_ended_dag_are_not_changed(submit) -> None:
    dag = run_all(match(submit("JOB A step.sub")))

    with pytest.raises(Conflict):
        change_limits(dag.pk, options={"max_jobs": 1}, **WHY)


def test_a_node_that_waits_too_long_in_the_queue_is_tried_again(submit) -> None:
    dag = match(submit("JOB A step.sub\nRETRY A 1\nTIMEOUT A QUEUE 60 RUN 600"))
    first = Job.objects.get(name="A")
    later = NOW + timedelta(seconds=61)

    timers.run_cycle(later)
    engine.run_cycle(later)
    engine.run_cycle(later)

    first.refresh_from_db()
    assert first.state == "killed"
    assert first.state_cause == "timeout"
    assert "60 s" in first.state_reason
    assert Job.objects.filter(name="A").count() == 2
    assert states(dag) == {"A": "submitted"}


def test_the_settings_limit_the_time_of_nodes_unless_the_dag_or_its_submission_does(
    submit, settings
) -> None:
    settings.PILOTAGE = {
        **settings.PILOTAGE,
        "DAG_OPTIONS": {"timeout_queue_s": 30, "timeout_run_s": 40, "max_jobs": 7},
    }
    files = {"c.cfg": "PILOTAGE_TIMEOUT_RUN = 50\n", "inner.dag": "JOB X step.sub\n"}
    dag = match(
        submit(
            "CONFIG c.cfg\nSUBDAG EXTERNAL A inner.dag",
            files=files,
            options={"timeout_queue_s": 0},
        )
    )
    advance(advance(dag))

    assert (dag.options["max_jobs"], dag.options["timeout_queue_s"]) == (7, 0)
    assert set(NodeTimer.objects.values_list("node__name", "kind", "limit_s")) == {
        ("A", "run", 50),
        ("X", "run", 50),
    }


def test_a_node_that_has_begun_is_not_ended_by_the_limit_of_the_queue(submit) -> None:
    dag = match(submit("JOB A step.sub\nTIMEOUT A QUEUE 60 RUN 600"))
    attempt = claim_one()
    attempt.started_at = NOW
    attempt.save()

    later = NOW + timedelta(seconds=61)
    timers.run_cycle(later)
    engine.run_cycle(later)
    assert states(dag) == {"A": "submitted"}
    assert Job.objects.get(name="A").state == "matched"

    much_later = NOW + timedelta(seconds=601)
    timers.run_cycle(much_later)
    engine.run_cycle(much_later)
    engine.run_cycle(much_later)
    assert states(dag) == {"A": "failed"}
    assert not NodeTimer.objects.exists()
