from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.negotiation.concurrency_limits import Limit
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Bounds, Request, Share, Usage, decide
from matching.negotiation.explanation import (
    Candidate,
    ConjunctCount,
    Explanation,
    MatchVerdict,
    explain,
    with_changes,
)
from matching.negotiation.fairshare import GroupShare
from matching.negotiation.site_explanation import explain_site
from matching.negotiation.unmatched_reasons import Kind, SiteStanding
from tests.matching.matchmaking import NOW, dag_ads, match, offer, request, site_ads


def explained(
    idle_dag: Request,
    *offers: Offer,
    usage: Usage | None = None,
    limits: dict[str, Limit] | None = None,
) -> Explanation:
    return explain(idle_dag, offers, usage or Usage(), limits or {}, NOW)


def test_a_request_that_would_match_is_told_the_site_and_the_runners_up() -> None:
    found = explained(request(Rank="Speed"), offer(1, "a", Speed="1"), offer(2, "b", 1, Speed="3"))

    assert found.verdict is MatchVerdict.WOULD_MATCH
    assert found.candidates == (Candidate("b", 3.0, 0.0, 0.5), Candidate("a", 1.0, 0.0, 0.0))
    assert "2 sites" in found.summary


def test_each_conjunct_is_counted_alone_and_together_with_those_before() -> None:
    sites = [offer(n, f"s{n}", Memory=str(n), Disk=str(4 - n)) for n in range(5)]

    found = explained(request(Requirements="Memory >= 2 && (Disk >= 1) && Disk >= 2"), *sites)

    assert found.conjuncts == (
        ConjunctCount("Memory >= 2", 3, 3),
        ConjunctCount("Disk >= 1", 4, 2),
        ConjunctCount("Disk >= 2", 3, 1),
    )


def test_what_is_neither_true_nor_false_is_counted() -> None:
    sites = [offer(1, "a", Memory="1"), offer(2, "b"), offer(3, "c", Memory="error")]

    found = explained(request(Requirements="Memory"), *sites)

    assert found.conjuncts == (ConjunctCount("Memory", 0, 0, undefined=1, error=1, no_truth=1),)


def test_sites_that_refuse_are_named_with_the_conjunct_of_theirs() -> None:
    picky = "CurMatches < MaxMatches && TARGET.Project == MyProject"
    sites = [offer(n, f"s{n}", Requirements=picky, MyProject=f'"p{n}"') for n in range(3)]

    found = explained(request(Project='"p0"', Requirements='MyProject != "p1"'), *sites)

    (refusal,) = found.refusals
    assert refusal.text == "TARGET.Project == MyProject"
    assert refusal.sites == ("s1", "s2")
    assert refusal.otherwise_fitting == 1


def test_no_site_fits_ever_where_all_refuse_whatever_they_have_to_do() -> None:
    found = explained(request(Requirements="Speed > 3"), offer(1, "a", 2, 2, Speed="1"))

    assert found.verdict is MatchVerdict.NEVER
    assert found.willing == 0


def test_full_closed_and_avoided_sites_mean_not_now() -> None:
    idle_dag = replace(request(), avoided={3: NOW + timedelta(hours=1)})
    shut = replace(offer(2, "shut"), closed="banned by olga: disk full")

    found = explained(idle_dag, offer(1, "full", 2, 2), shut, offer(3, "left"))

    assert found.verdict is MatchVerdict.NOT_NOW
    assert found.stands == {
        SiteStanding.FULL: ("full",),
        SiteStanding.CLOSED: ("shut",),
        SiteStanding.AVOIDED: ("left",),
    }


def test_a_limit_that_others_use_means_waiting_and_one_that_is_too_small_not_allowed() -> None:
    idle_dag = replace(request(), limits={"db": 2.0})

    waiting = explained(idle_dag, offer(1, "a"), limits={"db": Limit(3.0, used=2.0)})
    refused = explained(idle_dag, offer(1, "a"), limits={"db": Limit(1.0)})

    assert waiting.verdict is MatchVerdict.WAITING
    assert refused.verdict is MatchVerdict.NOT_ALLOWED
    assert " db " in waiting.summary


def test_a_quota_that_is_used_up_means_waiting() -> None:
    group = GroupShare("g", 1.0, is_fraction=False, accepts_surplus=False)
    idle_dag = replace(request(), group="g")

    found = explained(
        idle_dag, offer(1, "a"), usage=Usage(groups=[group], held_by_group={"g": 1.0})
    )

    assert found.verdict is MatchVerdict.WAITING
    assert "group g" in found.summary


def test_a_name_that_nobody_defines_is_told_with_what_may_have_been_meant() -> None:
    idle_dag = request(
        Requirements="Memry > 2 && MY.RequstDisk > 1", RequestDisk="3", Rank="Memory"
    )

    found = explained(idle_dag, offer(1, "a", Memory="4"))

    assert [(u.name, u.suggestion) for u in found.undefined] == [
        ("memry", "Memory"),
        ("requstdisk", "RequestDisk"),
    ]


def test_an_ad_that_does_not_parse_never_matches() -> None:
    assert explained(request(Requirements="((("), offer(1, "a")).verdict is MatchVerdict.NEVER


def test_a_site_is_explained_by_the_dags_that_want_one() -> None:
    site = offer(1, "a", 1, 2, Requirements='CurMatches < MaxMatches && TARGET.Kind == "x"')
    wishes = [
        *(request(n, Kind='"x"') for n in range(3)),
        request(3, Kind='"y"'),
        request(4, Kind='"x"', Requirements="false"),
    ]

    found = explain_site(site, wishes, NOW)

    assert found.dags == 5
    assert found.stands == {
        SiteStanding.FREE: 3,
        SiteStanding.REFUSED_BY_SITE: 1,
        SiteStanding.REFUSED_BY_DAG: 1,
    }
    assert found.conjuncts == (
        ConjunctCount("CurMatches < MaxMatches", 5, 5),
        ConjunctCount('TARGET.Kind == "x"', 4, 4),
    )


def test_a_change_sets_or_takes_away_attributes_whatever_their_case() -> None:
    changed = with_changes(request(Need="3", Rank="1"), {"NEED": "4", "rank": "", "DagId": "9"})

    assert changed.expressions == {"NEED": "4", "DagId": "9"}
    assert "DagId" not in changed.values


_GROUPS = st.lists(
    st.builds(
        GroupShare,
        name=st.sampled_from(["g"]),
        quota=st.sampled_from([0.0, 0.5, 1.0]),
        is_fraction=st.just(True),
        accepts_surplus=st.booleans(),
    ),
    max_size=1,
)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(0, 3),
            site_ads,
            st.sampled_from(["", "", "closed"]),
            st.sampled_from([None, None, 0.5, 1.0]),
        ),
        max_size=3,
    ),
    dag_ads,
    st.sampled_from(["", "g"]),
    _GROUPS,
    st.tuples(st.floats(0, 3), st.floats(0, 3)),
    st.booleans(),
)
def test_explain_says_would_match_exactly_if_the_negotiator_matches(
    sites: list[tuple[int, int, dict[str, str], str, float | None]],
    idle_dag: dict[str, str],
    group: str,
    groups: list[GroupShare],
    amounts: tuple[float, float],
    is_avoiding: bool,
) -> None:
    offers = [
        replace(offer(n, f"s{n}", current, most, **ad), closed=closed, allowance=allowance)
        for n, (current, most, ad, closed, allowance) in enumerate(sites)
    ]
    asking = replace(
        request(1, **idle_dag),
        submitter="alice",
        group=group if groups else "",
        limits={"db": 1.0},
        avoided={0: NOW + timedelta(hours=1)} if is_avoiding else {},
    )
    held, used = amounts
    usage = Usage({"alice": Share(500.0, held)}, groups, {asking.group: held})
    limits = {"db": Limit(2.0, used)}

    decision = match([asking], offers, usage, limits)
    found = explain(asking, offers, usage, limits, NOW)

    assert found.would_match == bool(decision.matches)
    if decision.matches:
        assert found.candidates[0].site == f"s{decision.matches[0].site_id}"


_PATTERN = 'regexp("^(a|a)*(a|a)*(a|a)*$", "' + "a" * 40 + '!")'


@pytest.mark.slow
def test_conjuncts_that_take_long_alone_are_counted_as_far_as_time_allows() -> None:
    sites = [offer(n, f"s{n}") for n in range(20)]
    asking = request(1, Requirements=f"TARGET.Nope =?= 1 && {_PATTERN} && true")
    bounds = Bounds(time.monotonic, request_s=0.2, decision_s=1.0)

    found = explain(asking, sites, Usage(), {}, NOW, bounds=bounds)

    assert found.verdict is MatchVerdict.NEVER
    assert [count.text for count in found.conjuncts] == ["TARGET.Nope =?= 1"]


@pytest.mark.slow
def test_an_ad_that_is_slow_for_the_sites_to_look_at_is_at_fault() -> None:
    sites = [offer(n, f"s{n}", Requirements="TARGET.Slow is true") for n in range(20)]
    asking = request(1, Slow=f"{_PATTERN} =?= 1")
    bounds = Bounds(time.monotonic, request_s=0.2, decision_s=1.0)

    decision = decide([asking], sites, Usage(), {}, NOW, bounds=bounds)

    assert decision.unmatched[1].kind is Kind.FAULT
