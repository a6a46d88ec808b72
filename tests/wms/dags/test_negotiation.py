from __future__ import annotations

from datetime import timedelta

import pytest

from matching.negotiation import decide
from tests.wms.dags.driving import NOW, advance, assert_log_agrees, claim_one, match, run_one
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags import binding, demand, negotiation
from wms.dags.binding import carry_out
from wms.dags.models import Dag, MatchmakingPolicy, MatchRecord, NegotiationCycle
from wms.dags.services import hold_dags, release_dags
from wms.jobs.models import Attempt
from wms.sites.ads import Load, publish_ads, published_ad
from wms.sites.models import Site, SiteAd, SiteThrottle
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
    assert dag.unmatched_reason == (
        "No site fits now: 2 of 2 closed (site-a: switched off in its configuration, "
        "site-b: without a queue that is switched on)."
    )


def test_a_held_dag_takes_nobodys_place(submit, make_site, sam: User) -> None:
    make_site("site-a", max_matches=1)
    held = match(submit(NODE))
    hold_dags([held.pk], actor=Actor.person(sam), reason="wait")

    assert match(submit(NODE)).state == "running"


EIGHT_CORES = "executable = step.sh\nrequest_cpus = $$(Cores:8)\nqueue\n"


def test_a_dag_that_no_queue_of_its_site_can_run_looks_for_another_site(submit, make_site) -> None:
    make_site("site-a", rank="1")
    make_site("site-b", queue={"cores": 8})

    dag = match(submit(NODE, files={"step.sub": EIGHT_CORES}))

    assert (dag.state, dag.site) == ("idle", None)
    assert "no queue of site-a can run it: needs 8 cores" in dag.state_reason
    assert MatchRecord.objects.get(dag=dag).end == MatchRecord.End.UNFIT
    assert match(dag).state == "running"
    assert dag.site.name == "site-b"
    assert_log_agrees(dag)


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


def test_where_a_site_counts_jobs_a_dag_weighs_as_much_as_it_has_unfinished_nodes(
    submit, make_site
) -> None:
    site = make_site("site-a", max_matches=100, matches_unit="jobs", group_size=10)
    dag = match(submit("JOB A step.sub\nJOB B step.sub\nJOB C step.sub"))

    run_one("A")
    advance(dag)

    assert demand.loads_by_site() == {site.pk: Load(dags=1, unfinished_nodes=2)}
    negotiation.run_cycle(NOW + timedelta(seconds=5))
    ad = published_ad(SiteAd.objects.get())
    assert (ad.eval("CurMatches"), ad.eval("MaxMatches")) == (0.2, 10.0)


def test_small_and_large_groups_do_not_count_the_same(submit, make_site) -> None:
    make_site("site-a", max_matches=10, matches_unit="jobs", group_size=5)
    wide = "\n".join(f"JOB N{n} step.sub" for n in range(9))
    small, large = submit(NODE), submit(wide)
    late = submit(NODE)

    negotiation.run_cycle(NOW)

    states = Dag.objects.in_bulk([small.pk, large.pk, late.pk])
    # 0.2 + 1.8 of 2 places: the third one finds the site full.
    assert states[small.pk].state == states[large.pk].state == "running"
    assert "full" in states[late.pk].unmatched_reason


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


def test_concurrency_limits_are_kept_over_sites_and_cycles(submit, make_site) -> None:
    make_site("site-a")
    make_site("site-b")
    ConcurrencyLimit.objects.create(name="db", maximum=2)
    text = "concurrency_limits = db\nqueue\n"
    dags = [submit(NODE, description_text=text, description_name="g.sub") for _ in range(3)]

    negotiation.run_cycle(NOW)
    negotiation.run_cycle(NOW + timedelta(seconds=5))

    last = match(dags[2])
    assert Dag.objects.filter(state="running").count() == 2
    assert "concurrency limit db is used up: 2 of 2" in last.unmatched_reason


def test_who_used_less_is_served_first(submit, make_site, alice: User, charlie: User) -> None:
    make_site("site-a", max_matches=1)
    Submitter.objects.create(user=alice, real_priority=50.0, charged_at=NOW)
    Submitter.objects.create(user=charlie, real_priority=0.5, charged_at=NOW)
    first, second = submit(NODE), submit(NODE, owner=charlie)

    negotiation.run_cycle(NOW)

    assert Dag.objects.get(pk=second.pk).state == "running"
    assert Dag.objects.get(pk=first.pk).state == "idle"


def test_running_jobs_are_charged_to_their_submitter(submit, make_site, alice: User) -> None:
    make_site("site-a")
    match(submit(NODE))
    group = AccountingGroup.objects.create(name="physics", quota=1)
    assert claim_one() is not None
    Dag.objects.update(accounting_group=group)

    assert demand.used_slots() == {(alice.pk, group.pk): 1.0}

    negotiation.run_cycle(NOW + timedelta(hours=1))
    assert Submitter.objects.get(user=alice, group=group).used_slots == 1.0


def test_a_job_is_charged_for_the_cores_that_its_pilot_gave_it(
    submit, make_site, alice: User
) -> None:
    make_site("site-a", queue={"cores": 8})
    match(submit(NODE, files={"step.sub": "executable = step.sh\n+MaxCpus = 6\nqueue\n"}))
    attempt = claim_one()
    assert attempt is not None
    Attempt.objects.update(cores=6)

    assert demand.used_slots() == {(alice.pk, None): 6.0}


def test_a_group_gets_no_more_than_its_quota(submit, make_site, alice: User) -> None:
    make_site("site-a", max_matches=4)
    group = AccountingGroup.objects.create(name="physics", quota=0.5, accepts_surplus=False)
    dags = [submit(NODE) for _ in range(4)]
    Dag.objects.update(accounting_group=group)

    negotiation.run_cycle(NOW)
    negotiation.run_cycle(NOW + timedelta(seconds=5))

    assert Dag.objects.filter(state="running").count() == 2
    dags[3].refresh_from_db()
    assert "quota of the group physics is used up" in dags[3].unmatched_reason


def test_each_cycle_leaves_a_record_and_old_records_go(submit, make_site) -> None:
    make_site("site-a", max_matches=1)
    submit(NODE)
    submit(NODE)
    negotiation.run_cycle(NOW - negotiation.RECORDS_KEPT - timedelta(seconds=1))
    negotiation.run_cycle(NOW)

    (cycle,) = NegotiationCycle.objects.all()
    assert (cycle.started_at, cycle.ads, cycle.requests, cycle.autoclusters) == (NOW, 1, 1, 1)
    assert (cycle.matches, cycle.bound, cycle.reasons) == (0, 0, {"fitting sites are full": 1})
    assert min(cycle.publish_s, cycle.read_s, cycle.decide_s, cycle.carry_out_s) > 0


def test_a_record_tells_a_day_long_who_was_left_over_and_why(submit, make_site) -> None:
    make_site("site-a", is_enabled=False)
    dags = [submit(NODE) for _ in range(7)]
    negotiation.run_cycle(NOW)

    cycle = NegotiationCycle.objects.get()
    (told,) = cycle.left_over
    assert told["count"] == 7
    assert told["dags"] == [dag.pk for dag in dags[:5]]
    assert "site-a" in told["reason"]

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
    assert bad.state == "held"
    assert "too long to evaluate" in bad.state_reason
    assert Dag.objects.get(pk=good.pk).state == "running"


def test_dags_that_there_was_no_time_for_come_first_the_next_time(
    submit, make_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site("site-a", max_matches=0)
    seen, unseen = submit(NODE), submit(NODE)
    Dag.objects.filter(pk=unseen.pk).update(ad_attributes={"Requirements": "Speed > 1"})
    monkeypatch.setattr(negotiation, "DECISION_S", -1.0)
    negotiation.run_cycle(NOW)
    assert set(Dag.objects.values_list("unmatched_reason", flat=True)) == {
        "The negotiation had no time left to look at it."
    }

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
