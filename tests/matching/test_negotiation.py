from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from matching.ads.classads import build_ad, parse_lines
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Bounds, Request, Usage, decide
from matching.negotiation.unmatched_reasons import Kind
from tests.matching.matchmaking import NOW, Clock, match, offer, request

SAMPLES = Path(__file__).parent.parent / "samples"


def uscms_site() -> Offer:
    text = (SAMPLES / "uscms_site.ad").read_text()
    return Offer(1, "uw-hep-USCMS-Site", build_ad(parse_lines(text)))


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
    assert "1 of 1 full" in decision.unmatched[3].text
    assert decision.unmatched[3].kind is Kind.BUSY
    assert decision.autoclusters == 1


def test_the_site_ad_of_the_uscms_report_refuses_a_dag_that_does_not_want_it() -> None:
    decision = match([request(1)], [uscms_site()])

    assert decision.matches == []
    assert "1 of 1 refusing" in decision.unmatched[1].text
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
    assert decision.unmatched[2].kind is Kind.CLOSED
    assert "(a)" in decision.unmatched[2].text


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
    assert reason.count("1 of 4") == 4
    for names in ("(slow)", "(full)", "(choosy)", "(shut: banned"):
        assert names in reason


def test_a_dag_does_not_go_to_a_site_that_it_avoids_until_the_time_is_over() -> None:
    avoiding = replace(request(), avoided={1: NOW + timedelta(seconds=1)})
    again = replace(request(), avoided={1: NOW})

    decision = match([avoiding], [offer(1, "a")])

    assert decision.unmatched[1].kind is Kind.CLOSED
    assert "avoided" in decision.unmatched[1].text
    assert sites_of([again], offer(1, "a")) == [1]


def test_a_dag_that_left_sites_is_told_why_in_short_and_like_reasons_once() -> None:
    later = NOW + timedelta(hours=1)
    unfit = {n: f"no queue of s{n} can run it: needs the tags gpu" for n in range(1, 8)}
    reasons = {**unfit, 8: "too slow.", 9: "x" * 900, 10: "by hand", 11: "of old", 12: "no ad"}
    wanting = replace(
        request(),
        avoided={**dict.fromkeys(reasons, later), 11: NOW},
        left_because=reasons,
    )

    sites = [offer(n, f"s{n}") for n in range(1, 11)]
    decision = match([wanting], [*sites, replace(offer(11, "s11"), closed="banned")])

    grouped, by_hand, slow, others = decision.unmatched[1].text.split(" It left ")[1:]
    assert grouped.startswith("s1, s2, s3,")
    assert "s6" not in grouped
    assert "tags gpu" in grouped
    assert by_hand == "s10: by hand."
    assert slow == "s8: too slow."
    assert "1 more" in others


def test_the_reason_why_a_dag_left_a_site_is_cut() -> None:
    later = NOW + timedelta(hours=1)
    wanting = replace(request(), avoided={1: later}, left_because={1: "x" * 900})

    text = match([wanting], [offer(1, "a")]).unmatched[1].text

    assert text.endswith(f" It left a: {'x' * 200} ...")


def test_a_throttled_site_gets_no_more_than_its_allowance() -> None:
    throttled = replace(offer(1, "a", 0, 10), allowance=2.0)

    decision = match([request(n) for n in range(3)], [throttled])

    assert len(decision.matches) == 2
    assert decision.unmatched[2].kind is Kind.CLOSED


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


def test_who_takes_too_long_to_evaluate_is_told_so() -> None:
    bounds = Bounds(Clock(1.0), request_s=0.5)

    decision = decide([request()], [offer(1, "a")], Usage(), {}, NOW, bounds=bounds)

    assert decision.unmatched[1].kind is Kind.FAULT
    assert "evaluate" in decision.unmatched[1].text


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


def test_an_ad_from_before_that_is_not_safe_to_evaluate_is_at_fault() -> None:
    decision = match([request(1, B='MY["B"]', Rank='MY["B"]')], [offer(1, "a")])

    assert decision.unmatched[1].kind is Kind.FAULT


def test_a_site_that_would_refuse_even_if_it_were_empty_is_not_called_full() -> None:
    decision = match([request()], [offer(1, "a", 2, 2, Requirements="false")])

    assert decision.unmatched[1].kind is Kind.NO_SITE
    assert "refusing" in decision.unmatched[1].text
