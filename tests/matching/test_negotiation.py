from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.classads import build_ad, parse_lines
from matching.fairshare import GroupShare
from matching.negotiation import Bounds, Limit, Request, Share, Usage, decide
from matching.places import Offer
from matching.reasons import Kind
from tests.matching.matchmaking import NOW, match, offer, plainly_matched, request

SAMPLES = Path(__file__).parent.parent / "samples"


def uscms_site() -> Offer:
    text = (SAMPLES / "uscms_site.ad").read_text()
    return Offer(1, "uw-hep-USCMS-Site", build_ad(parse_lines(text)))


def submitted_by(name: str, dag_ids: range, group: str = "", **attributes: str) -> list[Request]:
    return [replace(request(n, **attributes), submitter=name, group=group) for n in dag_ids]


def sites_of(requests: list[Request], *offers: Offer) -> list[int]:
    return [m.site_id for m in match(requests, offers).matches]


def test_the_site_ad_of_the_uscms_report_takes_two_dags_that_want_it() -> None:
    wanting = {
        "WANT_USCMS_MATCHMAKER": "True",
        "Requirements": "Is_USCMS_Site =?= True",
        "Rank": "-CurMatches/MaxMatches",
    }

    decision = match([request(n, **wanting) for n in (1, 2, 3)], [uscms_site()])

    assert [m.dag_id for m in decision.matches] == [1, 2]
    assert "1 of 1 full, CurMatches has reached MaxMatches" in decision.unmatched[3].text
    assert decision.unmatched[3].kind is Kind.BUSY
    assert decision.autoclusters == 1


def test_the_site_ad_of_the_uscms_report_refuses_a_dag_that_does_not_want_it() -> None:
    decision = match([request(1)], [uscms_site()])

    assert decision.matches == []
    assert "1 of 1 refusing the DAG by their own Requirements" in decision.unmatched[1].text
    assert decision.unmatched[1].kind is Kind.NO_SITE


def test_the_rank_of_the_dag_comes_before_the_rank_of_the_site() -> None:
    slow, fast = offer(1, "a", Rank="10", Speed="1"), offer(2, "b", Rank="0", Speed="2")

    assert sites_of([request(Rank="Speed")], slow, fast) == [2]


def test_the_rank_of_the_site_comes_before_its_load() -> None:
    assert sites_of([request()], offer(1, "a", 0), offer(2, "b", 1, Rank="1")) == [2]


def test_among_equal_ranks_the_least_loaded_site_wins_and_each_match_counts_at_once() -> None:
    requests = [request(n) for n in range(1, 6)]

    # Loads: a 1/4, b 0/2 -> b; a 1/4, b 1/2 -> a; 2/4 and 1/2 -> a by name; 3/4, 1/2 -> b; a.
    assert sites_of(requests, offer(1, "a", 1, 4), offer(2, "b", 0, 2)) == [2, 1, 1, 2, 1]


def test_a_dag_that_prefers_full_sites_fills_one_before_the_next() -> None:
    requests = [request(n, Rank="CurMatches") for n in range(4)]

    assert sites_of(requests, offer(1, "a"), offer(2, "b", 1, 3), offer(3, "c")) == [2, 2, 1, 1]


def test_an_ad_that_is_not_revaluated_is_used_once() -> None:
    decision = match([request(1), request(2)], [offer(1, "a", WantAdRevaluate="False")])

    assert len(decision.matches) == 1
    assert "taking no further match at present (a)" in decision.unmatched[2].text


def test_the_ads_that_were_given_are_not_changed() -> None:
    site = offer(1, "a")

    match([request(1)], [site])

    assert site.ad.eval("CurMatches") == 0


def test_where_sites_count_jobs_a_dag_counts_with_its_weight() -> None:
    site = replace(offer(1, "a", 0, 4), group_size=50.0)
    sizes = [5, 500, 5]
    requests = [replace(request(n), unfinished_nodes=size) for n, size in enumerate(sizes)]

    decision = match(requests, [site])

    # 0.1 of 4 places, then 10.1: the second one goes over, the third one finds the site full.
    assert [m.dag_id for m in decision.matches] == [0, 1]
    assert decision.unmatched[2].kind is Kind.BUSY


def test_where_sites_count_dags_all_count_alike() -> None:
    requests = [replace(request(n), unfinished_nodes=500) for n in range(3)]

    assert sites_of(requests, offer(1, "a", 0, 2)) == [1, 1]


def test_every_dag_left_over_is_told_why() -> None:
    sites = [
        offer(1, "full", 2),
        offer(2, "choosy", Requirements='TARGET.Owner =?= "bob"'),
        offer(3, "slow", Speed="1"),
        replace(offer(4, "shut"), closed="banned by olga: disk full"),
    ]

    decision = match([request(Requirements="Speed =!= 1", Owner='"alice"')], sites)

    reason = decision.unmatched[1].text
    assert "1 of 4 ruled out by the Requirements of the DAG (slow)" in reason
    assert "1 of 4 full, CurMatches has reached MaxMatches (full)" in reason
    assert "1 of 4 refusing the DAG by their own Requirements (choosy)" in reason
    assert "1 of 4 closed (shut: banned by olga: disk full)" in reason


def test_a_dag_does_not_go_to_a_site_that_it_avoids_until_the_time_is_over() -> None:
    avoiding = replace(request(), avoided={1: NOW + timedelta(seconds=1)})
    again = replace(request(), avoided={1: NOW})

    decision = match([avoiding], [offer(1, "a")])

    assert decision.unmatched[1].kind is Kind.CLOSED
    assert "avoided, as the DAG was taken back from there (a)" in decision.unmatched[1].text
    assert sites_of([again], offer(1, "a")) == [1]


def test_a_throttled_site_gets_no_more_than_its_allowance() -> None:
    throttled = replace(offer(1, "a", 0, 10), allowance=2.0)

    decision = match([request(n) for n in range(3)], [throttled])

    assert len(decision.matches) == 2
    assert decision.unmatched[2].kind is Kind.CLOSED


def test_a_concurrency_limit_holds_over_all_sites() -> None:
    requests = [replace(request(n), limits={"db": 2.0}) for n in range(3)]

    decision = match(requests, [offer(1, "a"), offer(2, "b")], limits={"db": Limit(6.0, used=2.0)})

    assert [m.dag_id for m in decision.matches] == [0, 1]
    assert decision.unmatched[2].kind is Kind.LIMIT
    assert "db is used up: 6 of 6 in use, the DAG takes 2" in decision.unmatched[2].text


def test_the_better_priority_is_served_first_and_gets_the_larger_share() -> None:
    requests = [*submitted_by("worse", range(6)), *submitted_by("better", range(6, 12))]
    usage = Usage({"worse": Share(2000.0), "better": Share(1000.0)})

    decision = match(requests, [offer(1, "a", 0, 6)], usage)

    # 4 of 6 places for half the priority value, 2 for the other.
    served = [m.dag_id for m in decision.matches]
    assert served == [6, 7, 8, 9, 0, 1]


def test_who_holds_its_share_already_waits_for_those_who_do_not() -> None:
    requests = [*submitted_by("rich", range(3)), *submitted_by("poor", range(3, 6))]
    usage = Usage({"rich": Share(1000.0, held=4.0), "poor": Share(1000.0)})

    decision = match(requests, [offer(1, "a", 4, 6)], usage)

    assert [m.dag_id for m in decision.matches] == [3, 4]


def test_what_one_submitter_cannot_use_goes_to_the_others() -> None:
    requests = [
        *submitted_by("picky", range(3), Requirements="false"),
        *submitted_by("easy", range(3, 9)),
    ]
    usage = Usage({"picky": Share(1.0), "easy": Share(1e6)})

    decision = match(requests, [offer(1, "a", 0, 5)], usage)

    assert [m.dag_id for m in decision.matches] == [3, 4, 5, 6, 7]


GROUPS = (
    GroupShare("physics", 0.75, is_fraction=True, accepts_surplus=False),
    GroupShare("biology", 0.25, is_fraction=True, accepts_surplus=True),
)


def test_groups_get_their_quotas() -> None:
    requests = [
        *submitted_by("a", range(8), group="physics"),
        *submitted_by("b", range(8, 16), group="biology"),
    ]

    decision = match(requests, [offer(1, "s", 0, 8)], Usage(groups=GROUPS))

    assert sorted(m.dag_id for m in decision.matches) == [*range(6), 8, 9]


def test_a_group_that_accepts_no_surplus_stops_at_its_quota_and_says_so() -> None:
    requests = submitted_by("a", range(8), group="physics")

    decision = match(requests, [offer(1, "s", 0, 8)], Usage(groups=GROUPS))

    assert len(decision.matches) == 6
    assert decision.unmatched[7].kind is Kind.QUOTA
    assert "quota of the group physics" in decision.unmatched[7].text


def test_a_group_that_accepts_surplus_gets_what_others_leave() -> None:
    requests = submitted_by("b", range(8), group="biology")

    assert len(match(requests, [offer(1, "s", 0, 8)], Usage(groups=GROUPS)).matches) == 8


def test_the_matches_that_a_group_holds_already_count() -> None:
    requests = submitted_by("a", range(8), group="physics")
    usage = Usage(groups=GROUPS, held_by_group={"physics": 5.0})

    assert len(match(requests, [offer(1, "s", 5, 8)], usage).matches) == 1


def test_dags_that_differ_in_what_no_site_looks_at_are_one_autocluster() -> None:
    requests = [request(n, Comment=f'"{n}"', Requirements="Speed > 1") for n in range(5)]

    assert match(requests, [offer(1, "a", Speed="2")]).autoclusters == 1


def test_dags_that_a_site_tells_apart_are_autoclusters_of_their_own() -> None:
    requests = [request(n, Project=f'"p{n % 2}"') for n in range(5)]
    site = offer(1, "a", 0, 9, Requirements='CurMatches < MaxMatches && TARGET.Project == "p1"')

    decision = match(requests, [site])

    assert decision.autoclusters == 2
    assert [m.dag_id for m in decision.matches] == [1, 3]


def test_a_value_that_requirements_refer_to_tells_dags_apart() -> None:
    requests = [request(n, Requirements="DagId == 3") for n in range(5)]

    assert [m.dag_id for m in match(requests, [offer(1, "a")]).matches] == [3]


def test_an_ad_that_does_not_parse_is_the_fault_of_its_dag_alone() -> None:
    decision = match([request(1, Requirements="((("), request(2)], [offer(1, "a")])

    assert decision.unmatched[1].kind is Kind.FAULT
    assert [m.dag_id for m in decision.matches] == [2]


class Clock:
    """A stopwatch that goes on by the same step whenever it is read."""

    def __init__(self, step_s: float) -> None:
        self.time_s, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.time_s += self.step_s
        return self.time_s


def test_who_takes_too_long_to_evaluate_is_told_so() -> None:
    bounds = Bounds(Clock(1.0), request_s=0.5)

    decision = decide([request()], [offer(1, "a")], Usage(), {}, NOW, bounds=bounds)

    assert decision.unmatched[1].kind is Kind.FAULT
    assert "too long to evaluate" in decision.unmatched[1].text


def test_what_there_is_no_time_for_is_not_looked_at_yet() -> None:
    requests = [request(n, Requirements=f"Speed > {n}") for n in range(9)]
    bounds = Bounds(Clock(1.0), decision_s=10)

    decision = decide(requests, [offer(1, "a", 0, 9, Speed="9")], Usage(), {}, NOW, bounds=bounds)

    assert decision.is_cut
    assert 0 < len(decision.matches) < 9
    assert decision.unmatched[8].kind is Kind.UNSEEN


@pytest.mark.parametrize("count", [0, 1, 7])
def test_every_request_is_matched_or_left_over_with_a_reason(count: int) -> None:
    decision = match([request(n) for n in range(count)], [offer(1, "a"), offer(2, "b")])

    assert {m.dag_id for m in decision.matches} | set(decision.unmatched) == set(range(count))


site_requirements = st.sampled_from(
    [
        "CurMatches < MaxMatches",
        "(CurMatches < MaxMatches) && (TARGET.Kind =!= 1)",
        "CurMatches < MaxMatches && TARGET.Kind <= CurMatches",
        "TARGET.Wish is undefined || TARGET.Wish",
        "CurMatches =!= 1",
        "MaxMatches",
        "1 && CurMatches < MaxMatches",
        "Room",
        "Kind < 2 && Room",
    ]
)
dag_requirements = st.sampled_from(
    [
        "true",
        "Speed >= Kind",
        "CurMatches >= 1",
        "TARGET.CurMatches < 2 && Speed =!= 1",
        "Busy || Speed > 1",
        "Fond",
        'regexp("^s[01]", Name)',
        "1",
        "Missing > 2",
    ]
)
ranks = st.sampled_from(
    ["0.0", "-CurMatches/real(MaxMatches)", "CurMatches", "Speed", "Kind * Speed", "Fond", '"x"']
)
site_ads = st.fixed_dictionaries(
    {
        "Requirements": site_requirements,
        "Rank": st.sampled_from(["0", "TARGET.Kind", "CurMatches", "TARGET.Kind * CurMatches"]),
        "Speed": st.sampled_from(["0", "1", "2"]),
        "WantAdRevaluate": st.sampled_from(["True", "True", "False"]),
        "Room": st.just("CurMatches < MaxMatches"),
        "Busy": st.just("CurMatches > 0"),
        "Fond": st.sampled_from(["TARGET.Kind > 0", "CurMatches < 2"]),
    }
)
dag_ads = st.fixed_dictionaries(
    {"Requirements": dag_requirements, "Rank": ranks, "Kind": st.sampled_from(["0", "1", "2"])},
    optional={"Wish": st.sampled_from(["TARGET.CurMatches < 1", "TARGET.Speed > 0"])},
)


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


_ROOMY = "CurMatches < MaxMatches"


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


def test_who_has_never_used_anything_has_the_share_of_the_best_priority() -> None:
    requests = [*submitted_by("new", range(4)), *submitted_by("known", range(4, 8))]
    usage = Usage({"known": Share(500.0)})

    decision = match(requests, [offer(1, "a", 0, 4)], usage)

    assert sorted(m.dag_id for m in decision.matches) == [0, 1, 4, 5]


def test_a_rank_that_takes_too_long_is_the_fault_of_its_dag() -> None:
    class SlowRank:
        """A clock that stands still until the Requirements have been evaluated."""

        def __init__(self) -> None:
            self.reads = 0

        def __call__(self) -> float:
            self.reads += 1
            return max(0.0, self.reads - 5.0)

    bounds = Bounds(SlowRank(), request_s=0.5, decision_s=99)

    decision = decide([request(Rank="1")], [offer(1, "a")], Usage(), {}, NOW, bounds=bounds)

    assert decision.unmatched[1].kind is Kind.FAULT


def test_dags_are_told_apart_by_what_stands_between_comments() -> None:
    text = "/* don't */ TARGET.Memory >= Need /* can't */"
    requests = [request(n, Requirements=text, Need=str(need)) for n, need in enumerate((9, 1))]

    decision = match(requests, [offer(1, "a", Memory="5")])

    assert [m.dag_id for m in decision.matches] == [1]


def test_dags_are_told_apart_by_what_a_site_asks_for_by_way_of_their_answers() -> None:
    site = offer(1, "a", Requirements="CurMatches < MaxMatches && TARGET.A < 100", B="TARGET.C")
    requests = [request(n, A="TARGET.B", C=str(c)) for n, c in enumerate((5000, 10))]

    assert [m.dag_id for m in match(requests, [site]).matches] == [1]


def test_who_takes_all_the_time_leaves_some_to_the_others() -> None:
    slow = [request(n, Requirements=f"Speed > {n}") for n in range(30)]
    requests = [
        *(replace(r, submitter="slow") for r in slow),
        *submitted_by("quick", range(30, 31)),
    ]
    usage = Usage({"slow": Share(500.0), "quick": Share(501.0)})
    bounds = Bounds(Clock(1.0), decision_s=60)

    decision = decide(requests, [offer(1, "a", Speed="-1")], usage, {}, NOW, bounds=bounds)

    assert decision.is_cut
    assert [m.dag_id for m in decision.matches] == [30]


def test_a_group_with_heavy_dags_is_not_taken_for_a_small_one() -> None:
    group = GroupShare("g", 1.0, is_fraction=True, accepts_surplus=True)
    site = replace(offer(1, "a", 0, 10_000), group_size=5.0)
    requests = [replace(r, unfinished_nodes=500) for r in submitted_by("a", range(20), group="g")]

    assert len(match(requests, [site], Usage(groups=[group])).matches) == 20


def test_what_a_group_holds_at_a_closed_site_does_not_eat_its_part_of_the_open_ones() -> None:
    group = GroupShare("g", 0.5, is_fraction=True, accepts_surplus=False)
    sites = [replace(offer(1, "a", 50, 50), closed="draining"), offer(2, "b", 0, 50)]
    usage = Usage(groups=[group], held_by_group={"g": 40.0})

    decision = match(submitted_by("a", range(20), group="g"), sites, usage)

    assert len(decision.matches) == 10


def test_limits_of_decimal_amounts_are_used_to_the_full() -> None:
    requests = [replace(request(n), limits={"sw": 0.1}) for n in range(4)]

    decision = match(requests, [offer(1, "a", 0, 9)], limits={"sw": Limit(0.3)})

    assert len(decision.matches) == 3


def test_an_ad_from_before_that_is_not_safe_to_evaluate_is_at_fault() -> None:
    decision = match([request(1, B='MY["B"]', Rank='MY["B"]')], [offer(1, "a")])

    assert decision.unmatched[1].kind is Kind.FAULT


def test_who_fits_nowhere_is_told_so_even_if_the_quota_is_used_up() -> None:
    group = GroupShare("g", 0.5, is_fraction=True, accepts_surplus=False)
    requests = [
        *submitted_by("a", range(2), group="g"),
        *submitted_by("a", range(2, 3), group="g", Requirements="Missing > 1"),
        *submitted_by("a", range(3, 4), group="g"),
    ]

    decision = match(requests, [offer(1, "a", 0, 4)], Usage(groups=[group]))

    kinds = {dag_id: left.kind for dag_id, left in decision.unmatched.items()}
    assert kinds == {2: Kind.NO_SITE, 3: Kind.QUOTA}


def test_a_dag_that_takes_more_of_a_limit_than_there_is_is_told_so() -> None:
    wish = replace(request(), limits={"db": 2.0})

    decision = match([wish], [offer(1, "a")], limits={"db": Limit(1.0)})

    assert "takes 2 of the concurrency limit db, more than there is (1)" in (
        decision.unmatched[1].text
    )


def test_a_site_that_would_refuse_even_if_it_were_empty_is_not_called_full() -> None:
    decision = match([request()], [offer(1, "a", 2, 2, Requirements="false")])

    assert decision.unmatched[1].kind is Kind.NO_SITE
    assert "refusing the DAG by their own Requirements (a)" in decision.unmatched[1].text
