"""Whose turn it is in a negotiation: priorities, groups, limits, and the time that there is."""

from __future__ import annotations

from dataclasses import replace

from matching.negotiation.concurrency_limits import Limit
from matching.negotiation.decision import Bounds, Share, Usage, decide
from matching.negotiation.fairshare import GroupShare
from matching.negotiation.unmatched_reasons import Kind
from tests.matching.matchmaking import NOW, Clock, match, offer, request, submitted_by


def test_a_concurrency_limit_holds_over_all_sites() -> None:
    requests = [replace(request(n), limits={"db": 2.0}) for n in range(3)]

    decision = match(requests, [offer(1, "a"), offer(2, "b")], limits={"db": Limit(6.0, used=2.0)})

    assert [m.dag_id for m in decision.matches] == [0, 1]
    assert decision.unmatched[2].kind is Kind.LIMIT
    assert "db" in decision.unmatched[2].text
    assert "6 of 6" in decision.unmatched[2].text


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
    assert "group physics" in decision.unmatched[7].text


def test_a_group_that_accepts_surplus_gets_what_others_leave() -> None:
    requests = submitted_by("b", range(8), group="biology")

    assert len(match(requests, [offer(1, "s", 0, 8)], Usage(groups=GROUPS)).matches) == 8


def test_the_matches_that_a_group_holds_already_count() -> None:
    requests = submitted_by("a", range(8), group="physics")
    usage = Usage(groups=GROUPS, held_by_group={"physics": 5.0})

    assert len(match(requests, [offer(1, "s", 5, 8)], usage).matches) == 1


def test_who_has_never_used_anything_has_the_share_of_the_best_priority() -> None:
    requests = [*submitted_by("new", range(4)), *submitted_by("known", range(4, 8))]
    usage = Usage({"known": Share(500.0)})

    decision = match(requests, [offer(1, "a", 0, 4)], usage)

    assert sorted(m.dag_id for m in decision.matches) == [0, 1, 4, 5]


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
    wanting = replace(request(), limits={"db": 2.0})

    decision = match([wanting], [offer(1, "a")], limits={"db": Limit(1.0)})

    assert decision.unmatched[1].kind is Kind.LIMIT
    assert "limit db" in decision.unmatched[1].text
