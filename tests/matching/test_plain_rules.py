"""The negotiation against the plainest one that follows the same rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.negotiation.decision import Share, Usage
from matching.negotiation.fairshare import GroupShare
from tests.matching.matchmaking import (
    NOW,
    dag_ads,
    match,
    offer,
    plainly_matched,
    request,
    site_ads,
)

_ROOMY = "CurMatches < MaxMatches"


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), site_ads), max_size=4),
    st.lists(dag_ads, max_size=7),
    st.data(),
)
def test_the_decision_is_that_of_the_plain_rules(
    sites: list[tuple[int, int, dict[str, str]]], wishes: list[dict[str, str]], data: st.DataObject
) -> None:
    offers = [
        replace(
            offer(n, f"s{n}", current, most, **attributes, Name=f'"s{n}"'),
            closed=data.draw(st.sampled_from(["", "", "", "banned"])),
        )
        for n, (current, most, attributes) in enumerate(sites)
    ]
    times = {0: NOW + timedelta(minutes=1), 1: NOW}
    requests = [
        replace(request(n, **wish), avoided=times if data.draw(st.booleans()) else {})
        for n, wish in enumerate(wishes)
    ]

    decision = match(requests, offers)

    assert [(m.dag_id, m.site_id) for m in decision.matches] == plainly_matched(requests, offers)


@pytest.mark.parametrize(
    ("site", "wishes"),
    [
        # A site that becomes better by a match for one kind of DAG does so for the other kinds.
        ({}, [{"Rank": "CurMatches"}, {"Rank": "CurMatches", "Requirements": "Kind =!= 2"}]),
        # Its own Rank rises with its matches.
        ({"Rank": "CurMatches"}, [{}, {"Requirements": "Kind =!= 2"}]),
        # What it asks of the DAG follows its own matches.
        ({"Rank": "TARGET.Liking"}, [{"Liking": "TARGET.CurMatches"}, {"Liking": "0"}]),
        # It opens by its first match.
        ({"Requirements": f"{_ROOMY} && CurMatches >= TARGET.Least"}, [{"Least": "1"}, {}]),
    ],
)
def test_a_site_that_becomes_better_by_a_match_is_preferred_at_once(
    site: dict[str, str], wishes: list[dict[str, str]]
) -> None:
    offers = [offer(n, f"s{n}", 0, 9, **({"Least": "0"} | site)) for n in range(2)]
    # The second kind takes s1 in between.
    only_s1 = {**wishes[1], "Requirements": "SiteNumber =?= 1"}
    offers[1].ad["SiteNumber"] = 1
    order = [wishes[0], only_s1, wishes[0], wishes[1], only_s1, wishes[0], wishes[1]]
    requests = [request(n, **({"Least": "0"} | wish)) for n, wish in enumerate(order)]

    decision = match(requests, offers)

    assert [(m.dag_id, m.site_id) for m in decision.matches] == plainly_matched(requests, offers)


_MOVING_SITES = st.fixed_dictionaries(
    {
        "Rank": st.sampled_from(["0", "CurMatches", "TARGET.Liking", "-CurMatches"]),
        "Requirements": st.sampled_from(
            [_ROOMY, f"{_ROOMY} && TARGET.Liking >= 0", "CurMatches =!= 2", "Odd || CurMatches < 3"]
        ),
        "Odd": st.sampled_from(["CurMatches == 1", "true", "TARGET.Kind == CurMatches"]),
    }
)
_MOVING_DAGS = st.fixed_dictionaries(
    {
        "Rank": st.sampled_from(["CurMatches", "-CurMatches", "Odd", "Kind"]),
        "Requirements": st.sampled_from(["true", "CurMatches >= 1", "Odd", "CurMatches =!= 1"]),
        "Liking": st.sampled_from(["TARGET.CurMatches", "-TARGET.CurMatches", "1"]),
        "Kind": st.sampled_from(["0", "1", "2"]),
    }
)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(_MOVING_SITES, min_size=2, max_size=3),
    st.lists(_MOVING_DAGS, min_size=2, max_size=3, unique_by=lambda wish: tuple(wish.items())),
    st.lists(st.integers(0, 2), min_size=6, max_size=12),
)
def test_the_decision_is_that_of_the_plain_rules_where_everything_moves(
    sites: list[dict[str, str]], kinds: list[dict[str, str]], order: list[int]
) -> None:
    offers = [offer(n, f"s{n}", n % 2, 9, **attributes) for n, attributes in enumerate(sites)]
    requests = [request(n, **kinds[kind % len(kinds)]) for n, kind in enumerate(order)]

    decision = match(requests, offers)

    assert [(m.dag_id, m.site_id) for m in decision.matches] == plainly_matched(requests, offers)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12),
)
def test_no_site_gets_more_than_its_limit_and_no_free_fitting_site_is_missed(
    sites: list[tuple[int, int]], wishes: list[tuple[int, int]]
) -> None:
    offers = [
        offer(n, f"s{n}", current, most, Kind=str(n % 2)) for n, (current, most) in enumerate(sites)
    ]
    texts = {0: "Kind == 0", 1: "Kind == 1", 2: "true", 3: "true"}
    requests = [
        replace(request(n, Requirements=texts[wish]), submitter=f"u{who}", group="ab"[who % 2])
        for n, (wish, who) in enumerate(wishes)
    ]
    groups = (GroupShare("a", 0.5, True, True), GroupShare("b", 0.5, True, True))
    usage = Usage({f"u{who}": Share(10.0 ** (who + 1)) for who in range(3)}, groups)

    decision = match(requests, offers, usage)

    used = {n: current for n, (current, _) in enumerate(sites)}
    for found in decision.matches:
        used[found.site_id] += 1
        assert used[found.site_id] <= sites[found.site_id][1]
    for dag_id in decision.unmatched:
        wish = wishes[dag_id][0]
        fitting = [n for n in used if wish > 1 or n % 2 == wish]
        assert all(used[n] >= sites[n][1] for n in fitting)
