"""DAGs are matched only with sites where each of their nodes can run, and told where one cannot."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.negotiation.node_fit import NeedCode
from matching.negotiation.unmatched_reasons import Kind
from matching.task_queues.largest_needs import largest_needs
from matching.task_queues.needs import Needs
from matching.task_queues.requirements import offer_refusal
from matching.task_queues.resources import Resource
from tests.matching.matchmaking import match as decided
from tests.matching.matchmaking import offer, request
from tests.wms.dags.driving import NOW, claim_one, end, match
from tests.wms.dags.test_needs import sub
from tests.wms.pilots.pressure.test_fitting import NEEDS, OFFERS
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag, MatchRecord
from wms.dags.negotiation import cycle as negotiation
from wms.dags.negotiation.node_fit import NodeFitter
from wms.dags.services.dags import rematch_dags
from wms.explain.answers import answer_for_dag
from wms.sites.ads import publish_ads
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue

LARGE = {**sub("request_memory = 8000"), "sim.sub": sub("request_memory = 16384")["step.sub"]}
TWO = "JOB gen step.sub\nJOB sim sim.sub\nPARENT gen CHILD sim"
BY_JOB = {"description_text": "binding = job\n", "description_name": "dag.sub"}


def without_owner(needs: Needs) -> dict[str, Any]:
    return {k: v for k, v in needs.as_dict().items() if k not in ("owner", "owner_group")}


def of_alice(needs: Needs) -> Needs:
    return replace(needs, owner="alice", owner_group="physics")


@pytest.mark.slow
@given(st.lists(NEEDS.map(of_alice), min_size=1, max_size=4), st.lists(OFFERS, max_size=5))
def test_a_dag_is_matched_only_where_each_node_can_run(
    several: list[Needs], offers: list[Resource]
) -> None:
    places = [(number % 3, each) for number, each in enumerate(offers)]
    text = json.dumps([without_owner(needs) for needs in several])
    fit = NodeFitter(places).fit(text, owner="alice", group="physics")
    assert fit is not None
    asking = replace(request(), node_fit=fit, nodes=[f"n{n}" for n in range(len(several))])
    sites = [offer(pk, f"s{pk}") for pk in {pk for pk, _ in places}]

    decision = decided([asking], sites)

    queues = {pk: [each for at, each in places if at == pk] for pk, _ in places}
    refused = {
        pk: [needs for needs in several if all(offer_refusal(each, needs) for each in here)]
        for pk, here in queues.items()
    }
    able = {pk for pk, unmet in refused.items() if not unmet}
    assert {each.site_id for each in decision.matches} <= able
    assert bool(decision.matches) == bool(able)
    assert fit.unfit == refused.keys() - able
    for pk in fit.unfit:
        assert several[fit.unmet(pk).place] == refused[pk][0]
        assert fit.unmet(pk).text


@pytest.mark.slow
@given(st.lists(NEEDS, max_size=6), st.lists(OFFERS, max_size=3))
def test_queues_that_meet_the_largest_needs_meet_all(
    several: list[Needs], offers: list[Resource]
) -> None:
    alike = [replace(each, owner="alice", owner_group="") for each in several]
    offers = [replace(each, excluded=()) for each in offers]

    def met(needs: list[Needs]) -> bool:
        return all(any(not offer_refusal(o, each) for o in offers) for each in needs)

    assert met(largest_needs(alike)) == met(alike)
    assert set(largest_needs(alike)) <= set(alike)


def test_only_the_largest_of_needs_that_differ_in_amounts_are_kept() -> None:
    small = Needs("alice", memory_mb=100, job_type="a")
    large, wide = Needs("alice", memory_mb=200, limits=("db",)), Needs("alice", cores=2)

    assert largest_needs([small, large, wide]) == [large, wide]


def test_a_node_of_16_gb_never_goes_to_a_site_whose_largest_queue_has_8_gb(
    submit, make_site, alice: User
) -> None:
    site = make_site("site-a", queue={"memory_mb": 8192})
    Queue.objects.create(site=site, name="small", element="host", memory_mb=1000)
    dag = match(submit(TWO, files=LARGE))

    assert (dag.state, dag.unmatched_kind) == ("idle", Kind.NODES)
    for fact in ("Node sim: 16384 MB of memory", "8192 MB (site-a)"):
        assert fact in dag.unmatched_reason
    [unmet] = answer_for_dag(alice, dag.pk, now=NOW).explanation.unmet
    assert (unmet.node, unmet.code, unmet.sites) == ("sim", NeedCode.MEMORY, ("site-a",))
    assert not MatchRecord.objects.exists()

    Queue.objects.filter(name="small").update(memory_mb=16384)
    assert match(dag).state == "running"


def test_a_site_at_which_no_frontend_has_pilots_gets_no_dag(submit, make_site) -> None:
    site = make_site("site-a")
    entry = FrontendEntry.objects.create(queue=site.queues.get(), share=0.0)

    dag = match(submit("JOB sim step.sub", files=sub()))
    assert (dag.state, dag.unmatched_kind) == ("idle", Kind.NODES)
    assert dag.unmatched_reason

    entry.delete()
    assert match(dag).state == "running"


def test_another_site_that_can_run_each_node_is_taken(submit, make_site) -> None:
    make_site("site-a", queue={"memory_mb": 8192}, rank="1.0", attributes="Speed = 9")
    make_site("site-b", queue={"memory_mb": 20_000})
    dag = submit(TWO, files=LARGE, description_text="Rank = Speed\n", description_name="d.sub")

    assert match(dag).site.name == "site-b"


def test_a_queue_that_is_switched_off_meets_nothing(submit, make_site) -> None:
    site = make_site("site-a", queue={"memory_mb": 8192})
    Queue.objects.create(site=site, name="large", element="host", memory_mb=16384, is_enabled=False)

    assert match(submit(TWO, files=LARGE)).unmatched_kind == Kind.NODES


def test_what_no_queue_has_at_once_is_told_by_queue(submit, make_site) -> None:
    site = make_site("site-a", queue={"memory_mb": 16384})
    Queue.objects.create(site=site, name="gpu", element="host", gpus=1, memory_mb=1000)
    files = sub("request_memory = 8000", "request_gpus = 1")

    reason = match(submit("JOB sim step.sub", files=files)).unmatched_reason

    assert "main: needs 1 GPUs, offered are 0" in reason
    assert "gpu: needs 8000 MB of memory, offered are 1000" in reason


def test_nodes_that_are_done_already_need_nothing(submit, make_site) -> None:
    make_site("site-a", queue={"memory_mb": 8192})

    assert match(submit(f"{TWO}\nDONE gen\nDONE sim\nJOB end step.sub", files=LARGE)).site


def test_nodes_with_the_same_needs_are_named_by_one_that_is_not_done(submit, make_site) -> None:
    make_site("site-a", queue={"memory_mb": 8192})
    dag = submit(f"{TWO}\nDONE sim\nDONE gen\nJOB late sim.sub", files=LARGE)

    assert dag.need_nodes == ["late"]
    assert "Node late: " in match(dag).unmatched_reason


def test_needs_from_vars_count_and_those_of_the_site_do_not(submit, make_site) -> None:
    make_site("site-a", queue={"memory_mb": 8192}, attributes="Ask = 9")
    files = sub("request_memory = $(mb)", "request_cpus = $$(Ask)")
    dag = submit('JOB A step.sub\nVARS A mb="100"\nJOB B step.sub\nVARS B mb="300"', files=files)

    assert (dag.node_needs, dag.need_nodes) == ([{"memory_mb": 300}], ["B"])


def test_inner_dags_and_placements_ask_for_nothing_beforehand(submit, make_site) -> None:
    files = {"inner.dag": "JOB X big.sub", "big.sub": LARGE["sim.sub"]}
    dag = submit("SUBDAG EXTERNAL S inner.dag\nJOB A step.sub", files=files)

    assert dag.need_nodes == ["A"]


def test_spliced_nodes_count(submit) -> None:
    files = {"part.dag": "JOB X big.sub", "big.sub": LARGE["sim.sub"]}
    dag = submit("SPLICE P part.dag\nJOB A step.sub", files=files)

    assert dag.need_nodes == ["P+X"]


def test_jobs_that_are_bound_singly_need_no_common_site(submit, make_site) -> None:
    make_site("site-a", queue={"memory_mb": 20_000})
    make_site("site-b", queue={"memory_mb": 8192, "tags": ["gpu"]})
    files = {**LARGE, **sub('+Tags = "gpu"')}

    assert match(submit(TWO, files=files, **BY_JOB)).state == "running"


def test_jobs_that_are_bound_singly_need_a_site_each(submit, make_site, alice: User) -> None:
    make_site("site-a", queue={"memory_mb": 8192})
    make_site("site-b", queue={"memory_mb": 20_000}, requirements="false && CurMatches < 1")

    dag = match(submit(TWO, files=LARGE, **BY_JOB))

    assert (dag.state, dag.unmatched_kind) == ("idle", Kind.NODES)
    assert "Node sim " in dag.unmatched_reason
    assert "16384 MB of memory" in dag.unmatched_reason
    answer = answer_for_dag(alice, dag.pk, now=NOW)
    assert not answer.explanation.would_match
    assert "Node sim " in answer.summary


def test_dags_whose_needs_there_was_no_time_for_come_first_the_next_time(
    submit, make_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site("site-a", queue={"memory_mb": 20_000})
    dag = submit(TWO, files=LARGE)
    monkeypatch.setattr(negotiation, "FITTING_S", -1.0)

    assert (match(dag).state, dag.unmatched_kind) == ("idle", Kind.UNSEEN)

    monkeypatch.setattr(negotiation, "FITTING_S", 60.0)
    assert match(dag).state == "running"


def test_a_dag_that_was_taken_back_is_asked_for_anew(submit, make_site, alice: User) -> None:
    make_site("site-a", queue={"memory_mb": 20_000})
    dag = match(submit(TWO, files=LARGE))
    end(claim_one())
    Queue.objects.update(memory_mb=8192)
    rematch_dags([dag.pk], actor=Actor.person(alice), reason="the queue has shrunk")
    MatchRecord.objects.update(avoided_until=None)

    dag = match(dag)

    assert (dag.state, dag.unmatched_kind) == ("idle", Kind.NODES)


def test_a_dag_without_known_needs_is_matched_as_before(submit, make_site) -> None:
    make_site("site-a", queue={"memory_mb": 8192})
    dag = submit(TWO, files=LARGE)
    Dag.objects.update(node_needs=[], need_nodes=[])

    assert match(dag).site.name == "site-a"


def test_no_change_of_the_ad_is_a_near_miss_where_a_node_cannot_run(
    submit, make_site, alice: User
) -> None:
    make_site("site-a", queue={"memory_mb": 8192})
    dag = submit(TWO, files=LARGE)
    publish_ads({}, now=NOW)

    answer = answer_for_dag(alice, dag.pk, now=NOW)

    assert answer.explanation.willing == 0
    assert answer.misses == ()
    assert "Node sim: 16384 MB" in answer.summary
