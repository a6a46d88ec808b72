"""Fair shares: HTCondor's priorities, quotas of groups with surplus, names of limits."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matching.negotiation.fairshare import (
    BEST_PRIORITY,
    GroupShare,
    allotments,
    decayed_priority,
    effective_quotas,
    limit_of,
    parse_limits,
    shares,
    starvation_order,
)

DAY_S = 86_400.0
NAMES = ("a", "a.x", "a.x.deep", "a.y", "b", "b.x", "c")
AMOUNTS = st.floats(0, 1000)


def static(name: str, quota: float, *, accepts_surplus: bool = True) -> GroupShare:
    return GroupShare(name, quota, is_fraction=False, accepts_surplus=accepts_surplus)


def dynamic(name: str, quota: float, *, accepts_surplus: bool = True) -> GroupShare:
    return GroupShare(name, quota, is_fraction=True, accepts_surplus=accepts_surplus)


@st.composite
def some_groups(draw: st.DrawFn, accepts: bool | None = None) -> list[GroupShare]:
    """Groups with static and dynamic quotas; parents may be missing."""
    groups = []
    for name in draw(st.sets(st.sampled_from(NAMES))):
        is_fraction = draw(st.booleans())
        quota = draw(st.floats(0, 1) if is_fraction else st.floats(0, 200))
        willing = draw(st.booleans()) if accepts is None else accepts
        groups.append(GroupShare(name, quota, is_fraction, willing))
    return groups


DEMANDS = st.dictionaries(st.sampled_from(("", *NAMES)), st.floats(0, 300))


def at_most(value: float, bound: float) -> bool:
    """True but for rounding."""
    return value <= bound + 1e-6 * max(1.0, abs(bound))


def subtree(name: str, held: dict[str, float]) -> float:
    return sum(amount for other, amount in held.items() if f"{other}.".startswith(f"{name}."))


def test_a_priority_moves_halfway_to_the_used_slots_in_one_half_life() -> None:
    assert decayed_priority(100.0, 0.0, DAY_S, DAY_S) == pytest.approx(50.0)
    assert decayed_priority(0.5, 10.0, DAY_S, DAY_S) == pytest.approx(5.25)
    assert decayed_priority(10.0, 10.0, 3 * DAY_S, DAY_S) == pytest.approx(10.0)


def test_who_uses_nothing_comes_back_to_the_best_priority_and_not_beyond() -> None:
    assert decayed_priority(1000.0, 0.0, 100 * DAY_S, DAY_S) == BEST_PRIORITY == 0.5


def test_a_clock_that_goes_backwards_changes_nothing() -> None:
    assert decayed_priority(8.0, 100.0, -5.0, DAY_S) == 8.0


@given(real=st.floats(0.5, 1e6), used=st.floats(0, 1e6), first=AMOUNTS, second=AMOUNTS)
def test_two_steps_of_decay_are_one(real: float, used: float, first: float, second: float) -> None:
    # The floor cuts a step short only below 0.5, so slots are used here.
    used = max(used, 0.5)
    twice = decayed_priority(decayed_priority(real, used, first, 500.0), used, second, 500.0)

    assert twice == pytest.approx(decayed_priority(real, used, first + second, 500.0))


def test_who_has_twice_the_effective_priority_gets_half() -> None:
    assert shares({"alice": 500.0, "bob": 1000.0}, 90) == pytest.approx({"alice": 60, "bob": 30})
    assert shares({}, 90) == {}


def test_top_groups_share_all_places_and_children_their_parents() -> None:
    groups = [dynamic("physics", 0.5), dynamic("physics.higgs", 0.4), static("chemistry", 20)]

    quotas = effective_quotas(groups, 100)

    # A fraction is one of what the static quotas beside it leave.
    assert quotas == pytest.approx({"chemistry": 20, "physics": 40, "physics.higgs": 16})


def test_children_are_scaled_down_together_when_they_exceed_their_parent() -> None:
    groups = [static("a", 10), static("a.x", 15), static("a.y", 5), dynamic("a.z", 0.5)]
    fractions = [dynamic("p", 0.9), dynamic("q", 0.6)]

    assert effective_quotas(groups, 100) == pytest.approx(
        {"a": 10, "a.x": 7.5, "a.y": 2.5, "a.z": 0}
    )
    assert effective_quotas(fractions, 30) == pytest.approx({"p": 18, "q": 12})


def test_a_group_whose_parent_is_missing_belongs_to_the_next_one_above() -> None:
    groups = [static("a", 10), dynamic("a.gone.x", 0.5), dynamic("lost.y", 0.5)]

    assert effective_quotas(groups, 50) == pytest.approx({"a": 10, "a.gone.x": 5, "lost.y": 20})


def test_a_quota_next_to_nothing_gives_no_more_than_there_is() -> None:
    held = allotments(
        [static("a", 5e-324), static("b", 1, accepts_surplus=False)], 2, {"a": 1, "": 1.25}
    )

    assert held == pytest.approx({"": 1.25, "a": 0.75, "b": 0})


@pytest.mark.parametrize("groups", [[], [static("a", 0), dynamic("b", 0)]])
def test_no_place_is_no_trouble(groups: list[GroupShare]) -> None:
    names = ["", *(group.name for group in groups)]

    assert allotments(groups, 0, {"": 5, "a": 5}) == dict.fromkeys(names, 0.0)


def test_without_groups_everybody_shares_all_places() -> None:
    assert allotments([], 50, {"": 80}) == {"": 50}
    assert allotments([], 50, {"": 20}) == {"": 20}


def test_a_group_without_demand_gives_its_quota_away_in_proportion_to_the_others() -> None:
    groups = [static("a", 40), static("b", 20), static("c", 20)]

    held = allotments(groups, 100, {"": 0, "b": 100, "c": 100, "a": 0})

    # Surplus 60: the 40 of `a` and the 20 of nobody; 20 to 20 is even.
    assert held == pytest.approx({"": 0, "a": 0, "b": 50, "c": 50})


def test_surplus_stays_below_the_parent_as_long_as_somebody_there_wants_it() -> None:
    groups = [static("a", 40), static("a.x", 20), static("a.y", 20), static("b", 40)]

    assert allotments(groups, 80, {"a.x": 35, "b": 80}) == pytest.approx(
        {"": 0, "a": 0, "a.x": 35, "a.y": 0, "b": 45}
    )


def test_a_group_that_accepts_no_surplus_stays_at_its_quota() -> None:
    groups = [static("a", 10, accepts_surplus=False), static("b", 10)]

    assert allotments(groups, 100, {"a": 50, "b": 50}) == pytest.approx({"": 0, "a": 10, "b": 50})


def test_a_group_that_accepts_no_surplus_still_uses_what_its_children_leave() -> None:
    groups = [static("a", 10, accepts_surplus=False), static("a.x", 8)]

    assert allotments(groups, 100, {"a": 50, "a.x": 1}) == pytest.approx({"": 0, "a": 9, "a.x": 1})


def test_a_group_without_quota_gets_surplus_after_those_who_have_one() -> None:
    groups = [static("a", 50), static("b", 0), static("c", 50)]

    assert allotments(groups, 100, {"a": 80, "b": 80})["b"] == pytest.approx(20)
    assert allotments(groups, 100, {"a": 200, "b": 80})["b"] == 0


def test_who_is_in_no_group_has_what_the_groups_leave() -> None:
    groups = [static("a", 60)]

    assert allotments(groups, 100, {"": 90, "a": 90}) == pytest.approx({"": 40, "a": 60})
    assert allotments(groups, 100, {"": 90, "a": 5}) == pytest.approx({"": 90, "a": 5})


def test_the_example_of_the_documents_is_right() -> None:
    groups = [
        dynamic("physics", 0.5),
        dynamic("physics.higgs", 0.4),
        static("chemistry", 20, accepts_surplus=False),
    ]
    wanted = {"chemistry": 60, "physics": 10, "physics.higgs": 50, "": 30}
    bob = decayed_priority(0.5, 8, DAY_S, DAY_S) * 1000

    assert effective_quotas(groups, 100) == {"chemistry": 20, "physics": 40, "physics.higgs": 16}
    assert allotments(groups, 100, wanted) == pytest.approx(
        {"chemistry": 20, "physics": 10, "physics.higgs": 40, "": 30}
    )
    assert bob == 4250
    assert shares({"alice": 500, "bob": bob}, 30)["bob"] == pytest.approx(3.2, abs=0.05)
    assert shares({"alice": 500, "bob": bob / 10}, 30)["bob"] == pytest.approx(16.2, abs=0.05)


@given(groups=some_groups(), total=AMOUNTS, demand=DEMANDS)
def test_no_more_is_given_than_there_is_and_nobody_gets_what_they_do_not_want(
    groups: list[GroupShare], total: float, demand: dict[str, float]
) -> None:
    held = allotments(groups, total, demand)

    assert set(held) == {"", *(group.name for group in groups)}
    assert at_most(sum(held.values()), total)
    assert all(amount >= 0 for amount in held.values())
    assert all(at_most(amount, demand.get(name, 0.0)) for name, amount in held.items())


@given(groups=some_groups(), total=AMOUNTS, demand=DEMANDS)
def test_a_group_that_accepts_no_surplus_never_exceeds_its_quota(
    groups: list[GroupShare], total: float, demand: dict[str, float]
) -> None:
    held, quotas = allotments(groups, total, demand), effective_quotas(groups, total)

    for group in groups:
        if not group.accepts_surplus:
            assert at_most(subtree(group.name, held), quotas[group.name])


@pytest.mark.slow
@given(groups=some_groups(), total=AMOUNTS, demand=DEMANDS)
def test_everybody_gets_their_quota_if_they_want_it(
    groups: list[GroupShare], total: float, demand: dict[str, float]
) -> None:
    held, quotas = allotments(groups, total, demand), effective_quotas(groups, total)

    for name, quota in quotas.items():
        wanted = subtree(name, {n: demand.get(n, 0.0) for n in quotas})
        if all(group.accepts_surplus for group in groups):
            assert at_most(min(quota, wanted), subtree(name, held))


@given(groups=some_groups(accepts=True), total=AMOUNTS, demand=DEMANDS)
@example(
    groups=[GroupShare("x", 5e-324, True, True), GroupShare("y", 5e-324, True, True)],
    total=3.0,
    demand={"x": 2.0, "y": 1.0},
)
def test_no_place_is_left_unused_when_all_accept_surplus(
    groups: list[GroupShare], total: float, demand: dict[str, float]
) -> None:
    held = allotments(groups, total, demand)

    wanted = sum(demand.get(name, 0.0) for name in held)
    assert sum(held.values()) == pytest.approx(min(total, wanted))


@given(groups=some_groups(), total=AMOUNTS, demand=DEMANDS, more=AMOUNTS, data=st.data())
def test_who_wants_more_never_gets_less_and_takes_nothing_but_from_others(
    groups: list[GroupShare],
    total: float,
    demand: dict[str, float],
    more: float,
    data: st.DataObject,
) -> None:
    name = data.draw(st.sampled_from(["", *(group.name for group in groups)]))
    before = allotments(groups, total, demand)

    after = allotments(groups, total, demand | {name: demand.get(name, 0.0) + more})

    assert at_most(before[name], after[name])
    assert all(at_most(after[other], before[other]) for other in before if other != name)


@given(groups=some_groups(), total=AMOUNTS)
def test_quotas_of_children_stay_within_their_parents(
    groups: list[GroupShare], total: float
) -> None:
    quotas = effective_quotas(groups, total)

    for name in ["", *quotas]:
        children = [q for child, q in quotas.items() if child.rpartition(".")[0] == name]
        assert at_most(sum(children), quotas.get(name, total))


def test_the_group_that_holds_least_of_its_quota_comes_first() -> None:
    quotas = {"a": 10.0, "b": 100.0, "none": 0.0}

    assert starvation_order(quotas, {"a": 5, "b": 20, "": 0}) == ["b", "a", "none", ""]
    assert starvation_order({}, {}) == [""]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("db", ("db", 10.0)),
        ("db.read", ("db.read", 4.0)),
        ("db.write", ("db.*", 3.0)),
        ("sw.matlab", ("*", 100.0)),
        ("other", ("*", 100.0)),
    ],
)
def test_a_limit_without_maximum_of_its_own_falls_back(
    name: str, expected: tuple[str, float]
) -> None:
    configured = {"db": 10.0, "db.read": 4.0, "db.*": 3.0, "*": 100.0}

    assert limit_of(name, configured) == expected


def test_a_limit_that_nobody_configured_has_no_maximum() -> None:
    assert limit_of("db.read", {"db": 10.0}) == ("", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db:2, sw.matlab", {"db": 2.0, "sw.matlab": 1.0}),
        ('"DB:2,SW.Matlab"', {"db": 2.0, "sw.matlab": 1.0}),
        ("db:0.5 web", {"db": 0.5, "web": 1.0}),
        (" ", {}),
        ('""', {}),
    ],
)
def test_limits_are_read_as_in_a_submit_description(text: str, expected: dict[str, float]) -> None:
    assert parse_limits(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("db:0", "the amount of the limit db must be larger than 0"),
        ("db:-1", "found: db:-1"),
        ("db:many", "found: db:many"),
        ("db:1e9", "found: db:1e9"),
        ("db, DB:2", "the limit db is named twice"),
        ("db.*", "expected a limit such as db, db.read or db:2"),
        ("a.b.c", "expected a limit"),
        ('"db', "expected a limit"),
        ("d\u00fc", "expected a limit"),
        ("x" * 65, "at most 64 characters"),
        (",".join(f"n{number}" for number in range(33)), "at most 32 limits"),
    ],
)
def test_a_bad_limit_is_refused_with_its_reason(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="limit") as caught:
        parse_limits(text)

    assert words in str(caught.value)
