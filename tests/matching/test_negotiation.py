from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.classads import build_ad, parse_lines, requirement_holds
from matching.negotiation import Offer, Request, negotiate

SAMPLES = Path(__file__).parent.parent / "samples"


def request(dag_id: int = 1, **attributes: str) -> Request:
    return Request(dag_id, build_ad(attributes))


def offer(site_id: int, name: str, current: int = 0, most: int = 2, **attributes: str) -> Offer:
    expressions = {
        "WantAdRevaluate": "True",
        "CurMatches": str(current),
        "MaxMatches": str(most),
        "Requirements": "CurMatches < MaxMatches",
        **attributes,
    }
    return Offer(site_id, name, build_ad(expressions))


def uscms_site() -> Offer:
    text = (SAMPLES / "uscms_site.ad").read_text()
    return Offer(1, "uw-hep-USCMS-Site", build_ad(parse_lines(text)))


def test_the_site_ad_of_the_uscms_report_takes_two_dags_that_want_it() -> None:
    wanting = {
        "WANT_USCMS_MATCHMAKER": "True",
        "Requirements": "Is_USCMS_Site =?= True",
        "Rank": "-CurMatches/MaxMatches",
    }

    decision = negotiate([request(n, **wanting) for n in (1, 2, 3)], [uscms_site()])

    assert [match.dag_id for match in decision.matches] == [1, 2]
    assert "1 of 1 full, CurMatches has reached MaxMatches" in decision.unmatched[3]


def test_the_site_ad_of_the_uscms_report_refuses_a_dag_that_does_not_want_it() -> None:
    decision = negotiate([request(1)], [uscms_site()])

    assert decision.matches == []
    assert "1 of 1 refusing the DAG by their own Requirements" in decision.unmatched[1]


def test_the_rank_of_the_dag_comes_before_the_rank_of_the_site() -> None:
    sites = [offer(1, "a", Rank="10", Speed="1"), offer(2, "b", Rank="0", Speed="2")]

    decision = negotiate([request(Rank="Speed")], sites)

    assert decision.matches[0].site_id == 2


def test_the_rank_of_the_site_comes_before_its_load() -> None:
    sites = [offer(1, "a", current=0), offer(2, "b", current=1, Rank="1")]

    assert negotiate([request()], sites).matches[0].site_id == 2


def test_among_equal_ranks_the_least_loaded_site_wins_and_each_match_counts_at_once() -> None:
    sites = [offer(1, "a", current=1, most=4), offer(2, "b", current=0, most=2)]

    decision = negotiate([request(n) for n in range(1, 6)], sites)

    # Loads: a 1/4, b 0/2 -> b; a 1/4, b 1/2 -> a; 2/4 and 1/2 -> a by name; 3/4, 1/2 -> b; a.
    assert [match.site_id for match in decision.matches] == [2, 1, 1, 2, 1]


def test_an_ad_that_is_not_revaluated_is_used_once() -> None:
    decision = negotiate([request(1), request(2)], [offer(1, "a", WantAdRevaluate="False")])

    assert len(decision.matches) == 1
    assert decision.unmatched[2] == "No site is open for DAGs at present."


def test_the_ads_that_were_given_are_not_changed() -> None:
    site = offer(1, "a")

    negotiate([request(1)], [site])

    assert site.ad.eval("CurMatches") == 0


def test_every_dag_left_over_is_told_why() -> None:
    sites = [
        offer(1, "full", current=2),
        offer(2, "choosy", Requirements='TARGET.Owner =?= "bob"'),
        offer(3, "slow", Speed="1"),
    ]

    decision = negotiate([request(Requirements="Speed =!= 1", Owner='"alice"')], sites)

    reason = decision.unmatched[1]
    assert "1 of 3 ruled out by the Requirements of the DAG (slow)" in reason
    assert "1 of 3 full, CurMatches has reached MaxMatches (full)" in reason
    assert "1 of 3 refusing the DAG by their own Requirements (choosy)" in reason


@pytest.mark.parametrize("count", [0, 1, 7])
def test_every_request_is_matched_or_left_over_with_a_reason(count: int) -> None:
    decision = negotiate([request(n) for n in range(count)], [offer(1, "a"), offer(2, "b")])

    assert {m.dag_id for m in decision.matches} | set(decision.unmatched) == set(range(count))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5),
    st.lists(st.integers(0, 3), max_size=8),
)
def test_no_site_gets_more_than_its_limit_and_no_free_fitting_site_is_missed(
    sites: list[tuple[int, int]], wishes: list[int]
) -> None:
    offers = [
        offer(n, f"s{n}", current=current, most=most, Kind=str(n % 2))
        for n, (current, most) in enumerate(sites)
    ]
    requests = [
        request(n, Requirements="True" if wish > 1 else f"Kind == {wish}")
        for n, wish in enumerate(wishes)
    ]

    decision = negotiate(requests, offers)

    used = {n: current for n, (current, _) in enumerate(sites)}
    for match in decision.matches:
        used[match.site_id] += 1
        assert used[match.site_id] <= sites[match.site_id][1]
    for dag_id in decision.unmatched:
        fitting = [o.site_id for o in offers if requirement_holds(requests[dag_id].ad, o.ad)]
        assert all(used[site_id] >= sites[site_id][1] for site_id in fitting)
