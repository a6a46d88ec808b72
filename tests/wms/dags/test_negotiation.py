"""Which DAG is bound to which site, and by what."""

from __future__ import annotations

from datetime import timedelta

import pytest

from matching.negotiation.decision import decide
from matching.negotiation.unmatched_reasons import Kind
from tests.wms.dags.driving import NOW, assert_log_agrees, match, run_one
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag, MatchmakingPolicy, MatchRecord
from wms.dags.negotiation import cycle as negotiation
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.binding import carry_out
from wms.dags.reading.selectors import needing_attention
from wms.dags.services.dags import hold_dags, release_dags
from wms.dags.states import DagCause
from wms.sites.ads import publish_ads, published_ad
from wms.sites.models import Site, SiteAd
from wms.sites.services import SiteSpec, configure_site

NODE = "JOB A step.sub"
WANTING = "+WANT_USCMS_MATCHMAKER = True\nRequirements = Is_USCMS_Site =?= True\nqueue\n"


def test_the_monitor_publishes_what_is_really_bound(submit, make_site) -> None:
    site = make_site("site-a", max_matches=3, environment="Area=/x\nPort=1")
    match(submit(NODE))
    match(submit(NODE))
    negotiation.run_cycle(NOW + timedelta(seconds=5))

    stored = SiteAd.objects.get(site=site)
    ad = published_ad(stored)
    assert ad.eval("CurMatches") == stored.cur_matches == 2
    assert ad.eval("MaxMatches") == 3
    assert ad.eval("SiteEnvironment") == "Area=/x;Port=1"
    assert ad.eval("WantAdRevaluate") is True
    assert ad.eval("UpdateSequenceNumber") == stored.sequence


def test_each_publication_has_a_larger_sequence_number(make_site) -> None:
    make_site("site-a")
    numbers = []
    for _ in range(3):
        negotiation.run_cycle(NOW)
        numbers.append(SiteAd.objects.get().sequence)

    assert numbers == sorted(set(numbers))


@pytest.mark.slow
def test_a_full_site_takes_the_next_dag_when_one_has_ended(submit, make_site) -> None:
    make_site("site-a", max_matches=1)
    first = match(submit(NODE))
    second = match(submit(NODE))
    assert (first.state, second.state) == ("running", "idle")
    assert second.unmatched_kind == Kind.BUSY
    assert "site-a" in second.unmatched_reason

    run_one("A")
    match(second)
    match(second)

    assert second.state == "running"
    assert second.unmatched_reason == ""


def test_dags_are_spread_by_the_load_of_the_sites(submit, make_site) -> None:
    for name in ("site-a", "site-b", "site-c"):
        make_site(name, max_matches=2)
    for _ in range(6):
        submit(NODE)

    negotiation.run_cycle(NOW)

    bound = [site.dags.count() for site in Site.objects.order_by("name")]
    assert bound == [2, 2, 2]


def test_requirements_of_both_sides_count(submit, make_site) -> None:
    make_site("open", attributes="Is_USCMS_Site = False")
    make_site(
        "uscms",
        attributes="Is_USCMS_Site = True",
        requirements="(CurMatches < MaxMatches) && (TARGET.WANT_USCMS_MATCHMAKER =?= TRUE)",
    )

    wanting = submit(NODE, description_text=WANTING, description_name="g.sub")
    other = submit(NODE)
    negotiation.run_cycle(NOW)

    assert Dag.objects.get(pk=wanting.pk).site.name == "uscms"
    assert Dag.objects.get(pk=other.pk).site.name == "open"


def test_the_environment_of_the_dag_comes_from_the_site_and_not_from_the_server(
    submit, make_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/secret/of/the/server:/usr/bin")
    make_site("site-a", environment="Area=/scratch")
    text = "environment = $$(SiteEnvironment);PATH=$ENV(PATH);USER=$ENV(USER);LOG=x\nqueue\n"

    dag = match(submit(NODE, description_text=text, description_name="g.sub"))

    assert dag.environment == {
        "USER": "alice",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "Area": "/scratch",
        "LOG": "x",
    }


def test_an_environment_that_is_undefined_holds_the_dag_by_name(submit, make_site) -> None:
    make_site("site-a")
    text = "environment = A=$$(Gatekeeper)\nqueue\n"

    dag = match(submit(NODE, description_text=text, description_name="g.sub"))

    assert (dag.state, dag.state_cause) == ("held", DagCause.AD)
    assert "$$(Gatekeeper)" in dag.state_reason
    assert dag.site is None


def test_a_dag_that_was_held_after_the_decision_is_not_bound(submit, make_site, sam: User) -> None:
    make_site("site-a")
    dag = submit(NODE)
    negotiation.run_cycle(NOW - timedelta(hours=1))
    dag = submit(NODE)
    publish_ads({}, now=NOW)
    offers, requests = negotiation.read_offers(NOW), demand.idle_requests()
    decision = decide(requests, offers, demand.usage(offers), {}, NOW)
    assert [match.dag_id for match in decision.matches] == [dag.pk]

    hold_dags([dag.pk], actor=Actor.person(sam), reason="wait")
    bound = carry_out(decision, offers, now=NOW)

    dag.refresh_from_db()
    assert (bound, dag.state, dag.site) == (0, "held", None)
    assert not MatchRecord.objects.filter(dag=dag).exists()


def test_an_ad_that_was_not_renewed_is_not_matched(submit, make_site) -> None:
    make_site("site-a")
    publish_ads({}, now=NOW)

    assert len(negotiation.read_offers(NOW + timedelta(seconds=899))) == 1
    assert negotiation.read_offers(NOW + timedelta(seconds=901)) == []


def test_sites_that_are_off_or_have_no_queue_take_no_dag_and_are_named(
    submit, make_site, olga: User
) -> None:
    make_site("site-a", is_enabled=False)
    configure_site(SiteSpec(name="site-b"), [], actor=Actor.person(olga))

    dag = match(submit(NODE))

    assert dag.state == "idle"
    assert dag.unmatched_kind == Kind.CLOSED
    assert "site-a: switched off" in dag.unmatched_reason
    assert "site-b: without" in dag.unmatched_reason


@pytest.mark.slow
def test_a_dag_that_no_site_fits_needs_somebody_at_once_and_no_more_when_one_does(
    submit, make_site
) -> None:
    make_site("site-a", max_matches=1)
    match(submit(NODE))
    waiting = submit(NODE)
    wanting = submit(NODE, description_text=WANTING, description_name="g.sub")
    match(waiting)
    before = list(needing_attention(Dag.objects.all(), now=NOW))

    make_site(
        "uscms",
        attributes="Is_USCMS_Site = True",
        requirements="TARGET.WANT_USCMS_MATCHMAKER =?= TRUE",
    )
    match(wanting)

    assert before == [wanting]
    assert wanting.state == "running"
    assert (wanting.unmatched_kind, waiting.state) == ("", "idle")
    assert not needing_attention(Dag.objects.all(), now=NOW).exists()


EIGHT_CORES = "executable = step.sh\nrequest_cpus = $$(Cores:8)\nqueue\n"


def test_a_dag_that_no_queue_of_its_site_can_run_looks_for_another_site(submit, make_site) -> None:
    make_site("site-a", rank="1")
    make_site("site-b", queue={"cores": 8})

    dag = match(submit(NODE, files={"step.sub": EIGHT_CORES}))

    assert (dag.state, dag.site) == ("idle", None)
    assert "8 cores" in dag.state_reason
    stay = MatchRecord.objects.get(dag=dag)
    assert (stay.site.name, stay.end) == ("site-a", MatchRecord.End.UNFIT)
    assert match(dag).state == "running"
    assert dag.site.name == "site-b"
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_dag_that_fits_no_queue_is_held_after_as_many_sites_as_the_policy_allows(
    submit, make_site, sam: User
) -> None:
    for name in ("site-a", "site-b"):
        make_site(name)
    MatchmakingPolicy.objects.create(pk=1, max_rematches=1)

    dag = submit(NODE, files={"step.sub": EIGHT_CORES})
    states = [match(dag).state for _ in range(2)]

    assert states == ["idle", "held"]
    make_site("site-c", queue={"cores": 8}, rank="2")
    release_dags([dag.pk], actor=Actor.person(sam))
    assert match(dag).state == "running"
    assert dag.site.name == "site-c"


def test_each_match_is_recorded_with_its_ranks(submit, make_site) -> None:
    site = make_site("site-a", rank="7")

    dag = match(submit(NODE))

    record = MatchRecord.objects.get(dag=dag)
    assert (record.site, record.matched_at, record.site_rank) == (site, NOW, 7.0)
    assert record.ended_at is None


def test_a_dag_knows_its_last_sites_and_avoids_those_that_it_was_taken_from(
    submit, make_site
) -> None:
    first, second = make_site("site-a"), make_site("site-b")
    dag = submit(NODE)
    for hours, site in ((2, first), (1, second)):
        MatchRecord.objects.create(
            dag=dag,
            site=site,
            matched_at=NOW - timedelta(hours=hours),
            ended_at=NOW - timedelta(hours=hours - 1),
            end="rematch",
            avoided_until=NOW + timedelta(hours=1) if site == second else None,
        )

    (request,) = demand.idle_requests()

    assert request.values["LastMatchName0"] == "site-b"
    assert request.values["LastMatchName1"] == "site-a"
    assert match(dag).site == first


def test_the_last_sites_can_be_ruled_out_by_requirements(submit, make_site) -> None:
    make_site("site-b", rank="1")
    site = make_site("site-a", rank="2")
    text = "requirements = TARGET.Name =!= MY.LastMatchName0\nqueue\n"
    dag = submit(NODE, description_text=text, description_name="g.sub")
    MatchRecord.objects.create(
        dag=dag, site=site, matched_at=NOW, ended_at=NOW, end=MatchRecord.End.REMATCH
    )

    assert match(dag).site.name == "site-b"
