"""Bound DAGs: what counts at a site, for owners and groups, and in limits, by one rule."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.wms.dags.driving import NOW, advance, claim_of, end, match, run_one
from tests.wms.dags.rematching import half_done, move_to
from wms.accounting.models import ConcurrencyLimit
from wms.core.actors import Actor
from wms.dags.engine import cycle as engine
from wms.dags.models import Dag, LeftCluster, MatchRecord
from wms.dags.negotiation import cycle as negotiation
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.cycle import read_offers
from wms.dags.services.dags import halt_dags, hold_dags, release_dags, rematch_dags, remove_dags
from wms.sites.ads import Load
from wms.sites.models import Site

WHY = {"actor": Actor.system("test"), "reason": "test"}
NODE = "JOB A step.sub"
OUTER = "JOB A step.sub\nSUBDAG EXTERNAL S inner.dag\nJOB Z step.sub\nPARENT A CHILD S\n"
INNER = "\n".join(f"JOB X{n} step.sub" for n in range(9))


def _load_of(name: str) -> Load:
    site = Site.objects.get(name=name)
    load = demand.loads_by_site().get(site.pk, Load())
    assert demand.load_at(Site.objects.filter(pk=site.pk)) == load
    assert demand.work_by_site()[site.pk].load == load
    return load


def _held_places() -> float:
    return sum(demand.usage(read_offers(NOW)).held_by_group.values())


@pytest.mark.parametrize("stop", [hold_dags, halt_dags])
def test_a_stopped_dag_keeps_its_place_so_that_its_release_overfills_nothing(
    submit, make_site, stop
) -> None:
    make_site("site-a", max_matches=1)
    ConcurrencyLimit.objects.create(name="db", maximum=1)
    text = {"description_text": "concurrency_limits = db\nqueue\n", "description_name": "g.sub"}
    stopped = match(submit(NODE, **text))
    claim_of("A")
    stop([stopped.pk], **WHY)

    late = match(submit(NODE, **text))
    release_dags([stopped.pk], **WHY)

    assert (late.state, _load_of("site-a").dags, _held_places()) == ("idle", 1, 1)
    assert demand.limits_in_use() == {"db": 1}


def test_a_dag_that_was_held_before_it_had_a_site_counts_nowhere(submit, make_site) -> None:
    make_site("site-a")
    text = {"description_text": "concurrency_limits = db\nqueue\n", "description_name": "g.sub"}
    hold_dags([submit(NODE, **text).pk], **WHY)

    assert (demand.loads_by_site(), _held_places(), demand.limits_in_use()) == ({}, 0, {})


def test_a_removed_dag_counts_no_more_as_its_jobs_were_ended_with_it(submit, make_site) -> None:
    make_site("site-a")
    dag = match(submit(NODE))
    claim_of("A")

    remove_dags([dag.pk], **WHY)

    assert (demand.loads_by_site(), _held_places()) == ({}, 0)


@pytest.mark.slow
def test_a_dag_that_left_counts_at_its_old_site_until_its_last_job_there_has_ended(
    submit, make_site
) -> None:
    make_site("site-a", matches_unit="jobs", group_size=1)
    make_site("site-b")
    Site.objects.filter(name="site-b").update(is_enabled=False)
    dag, job_of_b = half_done(submit)

    rematch_dags([dag.pk], lets_finish=True, **WHY)
    assert (_load_of("site-a"), _held_places()) == (Load(1, 1), 1)
    move_to(dag, "site-b")
    # Of the three nodes that are not done, B is still at site-a.
    assert (_load_of("site-a"), _load_of("site-b")) == (Load(1, 1), Load(1, 2))
    assert _held_places() == 2
    negotiation.run_cycle(NOW)
    end(job_of_b)
    advance(dag)

    assert (_load_of("site-b"), _held_places()) == (Load(1, 2), 1)
    assert set(demand.loads_by_site()) == {dag.site_id}
    negotiation.run_cycle(NOW)
    assert not LeftCluster.objects.exists()


def test_a_dag_back_at_the_site_where_its_jobs_finish_counts_there_once(submit, make_site) -> None:
    make_site("site-a")
    dag, _ = half_done(submit)
    rematch_dags([dag.pk], lets_finish=True, **WHY)
    MatchRecord.objects.update(avoided_until=None)

    assert match(dag).state == "running"

    assert (_load_of("site-a"), _held_places()) == (Load(1, 3), 1)


def test_jobs_that_finish_keep_the_limit_of_their_dag_which_needs_no_second_one(
    submit, make_site
) -> None:
    make_site("site-a")
    make_site("site-b")
    ConcurrencyLimit.objects.create(name="db", maximum=1)
    Site.objects.filter(name="site-b").update(is_enabled=False)
    text = {"description_text": "concurrency_limits = db\nqueue\n", "description_name": "g.sub"}
    dag = match(submit(NODE, **text))
    claim_of("A")
    rematch_dags([dag.pk], lets_finish=True, **WHY)
    assert demand.limits_in_use() == {"db": 1}

    other = match(submit(NODE, **text))
    move_to(dag, "site-b")

    assert (other.state, dag.state) == ("idle", "running")
    assert demand.limits_in_use() == {"db": 1}


@pytest.mark.slow
def test_an_inner_dag_takes_no_place_and_weighs_its_own_jobs(submit, make_site) -> None:
    make_site("site-a", matches_unit="jobs", max_matches=100, group_size=1)
    dag = match(submit(OUTER, files={"inner.dag": INNER}))
    assert (_load_of("site-a"), _held_places()) == (Load(1, 3), 3)

    run_one("A")
    advance(dag)
    engine.run_cycle(NOW)

    assert Dag.objects.get(root=dag).state == "running"
    # Z, and nine nodes instead of S.
    assert (_load_of("site-a"), _held_places()) == (Load(1, 10), 10)
    rematch_dags([dag.pk], **WHY)
    [request] = demand.idle_requests()
    assert (demand.loads_by_site(), request.unfinished_nodes) == ({}, 10)


def test_where_a_site_counts_dags_an_inner_one_is_not_charged(submit, make_site) -> None:
    make_site("site-a")
    dag = match(submit(OUTER, files={"inner.dag": INNER}))
    run_one("A")
    advance(dag)
    engine.run_cycle(NOW)

    assert (_load_of("site-a").dags, _held_places()) == (1, 1)


@pytest.mark.slow
def test_counts_take_as_many_queries_for_many_dags_as_for_one(submit, make_site) -> None:
    make_site("site-a", max_matches=10)
    match(submit(OUTER, files={"inner.dag": INNER}))
    with CaptureQueriesContext(connection) as of_one:
        negotiation.run_cycle(NOW)
    for dag in [match(submit(NODE)) for _ in range(3)]:
        hold_dags([dag.pk], **WHY)
    left = match(submit(NODE))
    claim_of("A")
    rematch_dags([left.pk], lets_finish=True, **WHY)
    hold_dags([left.pk], **WHY)

    with CaptureQueriesContext(connection) as of_many:
        negotiation.run_cycle(NOW)

    assert len(of_many) == len(of_one)
