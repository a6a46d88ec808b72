from __future__ import annotations

from datetime import timedelta

import pytest

from tests.wms.dags.driving import NOW, match, run_one
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags import negotiation
from wms.dags.models import Dag
from wms.dags.services import hold_dags, release_dags
from wms.sites.ads import published_ad
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


def test_a_full_site_takes_the_next_dag_when_one_has_ended(submit, make_site) -> None:
    make_site("site-a", max_matches=1)
    first = match(submit(NODE))
    second = match(submit(NODE))
    assert (first.state, second.state) == ("running", "idle")
    assert "1 of 1 full, CurMatches has reached MaxMatches (site-a)" in second.unmatched_reason

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

    assert dag.state == "held"
    assert "$$(Gatekeeper) is not defined" in dag.state_reason
    assert dag.site is None


def test_a_dag_that_was_held_after_the_decision_is_not_bound(submit, make_site, sam: User) -> None:
    make_site("site-a")
    dag = submit(NODE)
    negotiation.run_cycle(NOW - timedelta(hours=1))
    dag = submit(NODE)
    negotiation.publish_ads({}, now=NOW)
    offers = negotiation.read_offers(NOW)
    decision = negotiation.negotiate([negotiation.Request(dag.pk, negotiation.dag_ad(dag))], offers)

    hold_dags([dag.pk], actor=Actor.person(sam), reason="wait")
    bound = negotiation.carry_out(decision, offers, now=NOW)

    dag.refresh_from_db()
    assert (bound, dag.state, dag.site) == (0, "held", None)


def test_an_ad_that_was_not_renewed_is_not_matched(submit, make_site) -> None:
    make_site("site-a")
    negotiation.publish_ads({}, now=NOW)

    assert len(negotiation.read_offers(NOW + timedelta(seconds=899))) == 1
    assert negotiation.read_offers(NOW + timedelta(seconds=901)) == []


def test_sites_that_are_off_or_have_no_queue_take_no_dag_and_are_named(
    submit, make_site, olga: User
) -> None:
    make_site("site-a", is_enabled=False)
    configure_site(SiteSpec(name="site-b"), [], actor=Actor.person(olga))

    dag = match(submit(NODE))

    assert dag.state == "idle"
    assert dag.unmatched_reason == (
        "No site is open for DAGs at present. Switched off, or without a queue: site-a, site-b."
    )


def test_a_held_dag_takes_nobodys_place(submit, make_site, sam: User) -> None:
    make_site("site-a", max_matches=1)
    held = match(submit(NODE))
    hold_dags([held.pk], actor=Actor.person(sam), reason="wait")

    assert match(submit(NODE)).state == "running"


def test_a_dag_that_could_not_start_looks_for_another_site_after_its_release(
    submit, make_site, sam: User
) -> None:
    make_site("site-a", rank="1")
    text = "executable = step.sh\nrequest_cpus = $$(Cores:8)\nqueue\n"
    dag = match(submit(NODE, files={"step.sub": text}))
    assert (dag.state, dag.site) == ("held", None)
    assert "no queue of site-a can run it: needs 8 cores" in dag.state_reason

    make_site("site-a", is_enabled=False)
    make_site("site-b", queue={"cores": 8})
    release_dags([dag.pk], actor=Actor.person(sam))

    assert match(dag).state == "running"
    assert dag.site.name == "site-b"
