"""What a cycle of the negotiation records, and what it survives."""

from __future__ import annotations

from datetime import timedelta

import pytest

from matching.negotiation.decision import decide
from matching.negotiation.unmatched_reasons import Kind
from tests.wms.dags.driving import NOW, match
from wms.dags.models import Dag, MatchRecord, NegotiationCycle
from wms.dags.negotiation import binding
from wms.dags.negotiation import cycle as negotiation
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.binding import carry_out
from wms.dags.states import DagCause
from wms.sites.ads import publish_ads
from wms.sites.models import SiteThrottle

NODE = "JOB A step.sub"


def test_each_cycle_leaves_a_record_and_old_records_go(submit, make_site) -> None:
    make_site("site-a", max_matches=1)
    submit(NODE)
    submit(NODE)
    negotiation.run_cycle(NOW - negotiation.RECORDS_KEPT - timedelta(seconds=1))
    negotiation.run_cycle(NOW)

    (cycle,) = NegotiationCycle.objects.all()
    assert (cycle.started_at, cycle.ads, cycle.requests, cycle.autoclusters) == (NOW, 1, 1, 1)
    assert (cycle.matches, cycle.bound, cycle.reasons) == (0, 0, {Kind.BUSY.value: 1})
    assert min(cycle.publish_s, cycle.read_s, cycle.decide_s, cycle.carry_out_s) > 0


def test_a_record_tells_a_day_long_who_was_left_over_and_why(submit, make_site) -> None:
    make_site("site-a", is_enabled=False)
    dags = [submit(NODE) for _ in range(7)]
    negotiation.run_cycle(NOW)

    cycle = NegotiationCycle.objects.get()
    (group,) = cycle.left_over
    assert group["count"] == 7
    assert group["dags"] == [dag.pk for dag in dags[:5]]
    assert "site-a" in group["reason"]

    negotiation.run_cycle(NOW + negotiation.DETAILS_KEPT + timedelta(seconds=1))
    cycle.refresh_from_db()
    assert cycle.left_over == []
    assert cycle.reasons != {}


def test_a_reason_that_did_not_change_is_not_written_again(submit, make_site) -> None:
    make_site("site-a", is_enabled=False)
    dag = match(submit(NODE))
    seen = Dag.objects.filter(pk=dag.pk).extra(select={"xmin": "xmin::text"}).values_list("xmin")
    before = list(seen)

    match(dag)

    assert list(seen) == before


def test_an_ad_that_takes_too_long_to_evaluate_holds_its_dag_and_the_others_go_on(
    submit, make_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site("site-a")
    monkeypatch.setattr(negotiation, "REQUEST_S", 0.05)
    slow = 'regexp("(a+)+[xy]", strcat("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", TARGET.Name))'
    text = f"requirements = {slow} && TARGET.Name =!= 1\nqueue\n"
    bad, good = submit(NODE, description_text=text, description_name="g.sub"), submit(NODE)

    negotiation.run_cycle(NOW)

    bad.refresh_from_db()
    assert (bad.state, bad.state_cause) == ("held", DagCause.AD)
    assert Dag.objects.get(pk=good.pk).state == "running"


def test_dags_that_there_was_no_time_for_come_first_the_next_time(
    submit, make_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site("site-a", max_matches=0)
    seen, unseen = submit(NODE), submit(NODE)
    Dag.objects.filter(pk=unseen.pk).update(ad_attributes={"Requirements": "Speed > 1"})
    monkeypatch.setattr(negotiation, "DECISION_S", -1.0)
    negotiation.run_cycle(NOW)
    assert set(Dag.objects.values_list("unmatched_kind", flat=True)) == {Kind.UNSEEN}

    Dag.objects.filter(pk=seen.pk).update(looked_at=NOW)

    assert [request.dag_id for request in demand.idle_requests()] == [unseen.pk, seen.pk]

    monkeypatch.setattr(negotiation, "DECISION_S", 60.0)
    negotiation.run_cycle(NOW)
    assert [request.dag_id for request in demand.idle_requests()] == [seen.pk, unseen.pk]


def test_a_negotiation_that_is_killed_half_way_loses_and_doubles_nothing(
    submit, make_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site("site-a", max_matches=9)
    for _ in range(5):
        submit(NODE)
    monkeypatch.setattr(binding, "_BATCH", 2)
    really, batches = binding._bind_batch, []

    def bind_or_die(*arguments: object) -> int:
        batches.append(arguments)
        if len(batches) == 2:
            raise KeyboardInterrupt
        return really(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(binding, "_bind_batch", bind_or_die)
    with pytest.raises(KeyboardInterrupt):
        negotiation.run_cycle(NOW)
    assert Dag.objects.filter(state="running").count() == 2

    negotiation.run_cycle(NOW + timedelta(seconds=5))

    assert Dag.objects.filter(state="running").count() == 5
    assert MatchRecord.objects.filter(ended_at=None).count() == 5


def test_one_decision_carried_out_twice_binds_each_dag_once(submit, make_site) -> None:
    make_site("site-a")
    dag = submit(NODE)
    publish_ads({}, now=NOW)
    offers = negotiation.read_offers(NOW)
    decision = decide(demand.idle_requests(), offers, demand.usage(offers), {}, NOW)

    assert [carry_out(decision, offers, now=NOW) for _ in range(2)] == [1, 0]
    assert MatchRecord.objects.filter(dag=dag).count() == 1
    assert dag.events.filter(event="match").count() == 1


def test_matches_count_against_the_allowance_of_a_throttled_site(submit, make_site) -> None:
    site = make_site("site-a", max_matches=9)
    negotiation.run_cycle(NOW)
    SiteThrottle.objects.filter(site=site).update(allowance=2.0)
    for _ in range(3):
        submit(NODE)

    negotiation.run_cycle(NOW)

    assert SiteThrottle.objects.get(site=site).matched == 2.0
    assert Dag.objects.filter(state="running").count() == 2
