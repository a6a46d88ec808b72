"""Acceptance: which sites accept a DAG whose jobs are bound at the claim."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad
from matching.negotiation.acceptance import accept
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Bounds, Request
from matching.negotiation.unmatched_reasons import Kind

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

_REQUIREMENTS = st.sampled_from(
    [
        "true",
        "false",
        "undefined",
        "TARGET.Size > MY.Size",
        "Size >= 2",
        'TARGET.Owner == "alice"',
        "CurMatches < MaxMatches",
        "TARGET.CurMatches == 0",
        "CurMatches < MaxMatches && TARGET.Size < 3",
        "TARGET.NodesUnfinished > 5 || MY.Size == 1",
        "TARGET.Requirements",
        "TARGET.Nothing",
        "17",
    ]
)
_SITES = st.builds(
    lambda requirements, size, load, most, closed, allowance: (
        {"Requirements": requirements, "Size": str(size)},
        {"CurMatches": load, "MaxMatches": most},
        closed,
        allowance,
    ),
    _REQUIREMENTS,
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(["", "", "", "banned"]),
    st.sampled_from([None, None, 0.5, 2.0]),
)
_DAGS = st.builds(
    lambda requirements, size, owner, nodes, avoided: (
        {"Requirements": requirements, "Size": str(size)},
        {"Owner": owner, "NodesUnfinished": nodes},
        avoided,
    ),
    _REQUIREMENTS,
    st.integers(0, 4),
    st.sampled_from(["alice", "bob"]),
    st.integers(1, 9),
    st.frozensets(st.integers(1, 4), max_size=2),
)


def _is_true(ad: classad2.ClassAd, target: classad2.ClassAd) -> bool:
    return ad.lookup("Requirements").eval(ad, target) is True


@pytest.mark.slow
@given(dags=st.lists(_DAGS, max_size=6), sites=st.lists(_SITES, max_size=4))
def test_accepting_sites_are_those_of_independent_two_sided_matches(dags, sites) -> None:
    offers = [
        Offer(number, f"site-{number}", build_ad(ad, values), closed, allowance)
        for number, (ad, values, closed, allowance) in enumerate(sites, 1)
    ]
    requests = [
        Request(
            number,
            expressions,
            values,
            avoided={site: NOW + timedelta(hours=1) for site in avoided},
        )
        for number, (expressions, values, avoided) in enumerate(dags, 1)
    ]

    accepted = accept(requests, offers, NOW)

    for number, (expressions, values, avoided) in enumerate(dags, 1):
        if accepted[number].is_unknown:
            # An ad that may not be evaluated, as one that asks for the other's Requirements.
            with pytest.raises(AdError):
                check_cost(expressions)
            continue
        dag_ad = build_ad(expressions, values)
        expected = set()
        for offer, (ad, counts, closed, allowance) in zip(offers, sites, strict=True):
            site_ad = build_ad(ad, {**counts, "CurMatches": 0})
            takes = not closed and (allowance is None or allowance >= 1)
            is_open = takes and offer.site_id not in avoided
            if is_open and _is_true(dag_ad, site_ad) and _is_true(site_ad, dag_ad):
                expected.add(offer.site_id)
        assert accepted[number].site_ids == expected
        assert (accepted[number].leftover is None) == bool(expected)


def test_an_avoided_site_accepts_again_when_its_time_is_over() -> None:
    offer = Offer(1, "site-1", build_ad({"Requirements": "true"}))
    avoiding = Request(1, avoided={1: NOW + timedelta(seconds=1)})

    assert accept([avoiding], [offer], NOW)[1].leftover.kind is Kind.CLOSED
    assert accept([avoiding], [offer], NOW + timedelta(seconds=2))[1].site_ids == {1}


@pytest.mark.parametrize(
    ("requirements", "kind"), [("1 +", Kind.FAULT), ("regexp(x, repeat)", Kind.NO_SITE)]
)
def test_an_ad_at_fault_is_told_and_others_are_not_concerned(requirements: str, kind: Kind) -> None:
    offer = Offer(1, "site-1", build_ad({"Requirements": "true"}))
    requests = [Request(1, {"Requirements": requirements}), Request(2)]

    accepted = accept(requests, [offer], NOW)

    assert accepted[1].leftover.kind is kind
    assert accepted[2].site_ids == {1}


def test_requests_without_time_are_not_known() -> None:
    offer = Offer(1, "site-1", build_ad({"Requirements": "true"}))
    ticks = iter(range(100))
    requests = [Request(n, {"Requirements": f"{n} > 0"}) for n in range(1, 9)]

    bounds = Bounds(lambda: next(ticks), decision_s=8)
    accepted = accept(requests, [offer], NOW, bounds=bounds)

    unknown = [each for each in accepted.values() if each.is_unknown]
    assert 0 < len(unknown) < len(requests)
    assert {each.leftover.kind for each in unknown} == {Kind.UNSEEN}
