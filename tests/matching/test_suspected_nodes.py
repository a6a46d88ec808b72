from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.task_queues.suspected_nodes import Trial, _Part, chance_of, is_cleared, suspects

HOSTS = ("wn1", "wn2", "wn3", "wn4", "wn5", "wn6")
_numbers = itertools.count()


def trials(host: str, *, failed: int = 0, well: int = 0, batch: str = "dag") -> Iterator[Trial]:
    """Different payloads of one batch on a node."""
    for number in range(failed + well):
        yield Trial(host, batch, next(_numbers), has_failed=number < failed)


def names(*given: Iterator[Trial]) -> list[str]:
    return [each.host for each in suspects(itertools.chain(*given))]


def test_a_node_that_fails_what_the_others_do_well_is_suspected_with_the_figures() -> None:
    [found] = suspects(
        [
            *trials("wn1", failed=12),
            *(each for host in HOSTS[1:] for each in trials(host, well=4)),
            *trials("wn2", failed=1),
        ]
    )

    assert (found.host, found.failed, found.tried) == ("wn1", 12, 12)
    assert (found.others_failed, found.others_tried) == (1, 21)


def test_few_failures_are_chance_however_well_the_others_do() -> None:
    assert names(trials("wn1", failed=4), trials("wn2", well=1000)) == []


def test_a_batch_that_ran_on_no_other_node_says_nothing() -> None:
    assert names(trials("wn1", failed=100), trials("wn2", well=100, batch="other")) == []


def test_a_node_with_the_bad_batch_is_not_suspected_for_what_others_do_well() -> None:
    """Fast failures of one batch gather where slots are free; the long jobs are elsewhere."""
    assert (
        names(
            trials("wn1", failed=40, batch="bad"),
            trials("wn2", failed=9, batch="bad"),
            trials("wn1", well=3, batch="good"),
            trials("wn2", well=50, batch="good"),
        )
        == []
    )


def test_two_bad_nodes_are_both_suspected_though_payloads_failed_on_both() -> None:
    found = []
    for number in range(30):
        found += [Trial(host, "dag", number, has_failed=True) for host in ("wn1", "wn2")]
        found.append(Trial(HOSTS[2 + number % 4], "dag", number, has_failed=False))

    assert names(iter(found)) == ["wn1", "wn2"]


def test_a_payload_that_fails_half_of_the_time_makes_no_node_suspected_that_had_many_of_it() -> (
    None
):
    often = trials("wn1", failed=20, well=20)
    once = (
        each
        for number in range(100)
        for each in trials(f"n{number}", failed=number % 2, well=1 - number % 2)
    )

    assert names(often, once) == []


def test_repeated_failures_of_one_payload_count_once() -> None:
    again = [Trial("wn1", "dag", "x", has_failed=True) for _ in range(50)]

    assert names(iter(again), trials("wn2", well=50)) == []


@pytest.mark.slow
@given(
    payloads=st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]), st.sets(st.sampled_from(HOSTS), min_size=2), st.integers()
        ),
        max_size=80,
    ),
    well=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(HOSTS)), max_size=80),
)
def test_payloads_that_fail_on_every_node_where_they_run_make_none_suspected(
    payloads, well
) -> None:
    bad = [
        Trial(host, batch, ("bad", number), has_failed=True)
        for number, (batch, hosts, _) in enumerate(payloads)
        for host in hosts
    ]
    good = [Trial(host, batch, n, has_failed=False) for n, (batch, host) in enumerate(well)]

    assert suspects([*bad, *good]) == []


@given(
    st.lists(
        st.builds(
            Trial,
            st.sampled_from(HOSTS),
            st.sampled_from(["a", "b"]),
            st.integers(0, 60),
            st.booleans(),
        ),
        max_size=200,
    ),
    st.permutations(range(6)),
)
def test_neither_the_order_of_trials_nor_the_names_of_nodes_matter(found, order) -> None:
    renamed = dict(zip(HOSTS, (HOSTS[place] for place in order), strict=True))
    other = [
        Trial(renamed[each.host], each.batch, each.payload, each.has_failed)
        for each in reversed(found)
    ]

    assert sorted(renamed[each.host] for each in suspects(found)) == [
        each.host for each in suspects(other)
    ]


@given(failed=st.integers(0, 40), well=st.integers(0, 40), others=st.integers(0, 40))
def test_what_does_well_makes_no_node_suspected(failed: int, well: int, others: int) -> None:
    base = [*trials("wn1", failed=failed, well=well), *trials("wn2", well=others)]
    before = {each.host for each in suspects(base)}

    after = {each.host for each in suspects([*base, *trials("wn1", well=5)])}

    assert after <= before


@given(tried=st.integers(10, 200), failed=st.integers(0, 100), others=st.integers(1, 5))
def test_equal_shares_of_failures_make_none_suspected(tried: int, failed: int, others: int) -> None:
    count = tried * failed // 100
    nodes = HOSTS[: others + 1]

    assert names(*(trials(host, failed=count, well=tried - count) for host in nodes)) == []


_PART = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda tried: st.builds(
        _Part,
        st.just(tried[0]),
        st.integers(0, tried[0]),
        st.just(tried[1]),
        st.integers(0, tried[1]),
    )
)


@given(st.lists(_PART, min_size=1, max_size=2))
def test_the_chance_is_the_share_of_all_ways_to_spread_the_failures(parts: list[_Part]) -> None:
    ways = [
        [
            sum(place < part.tried for place in chosen)
            for chosen in itertools.combinations(
                range(part.tried + part.others_tried), part.failed + part.others_failed
            )
        ]
        for part in parts
    ]
    sums = [sum(each) for each in itertools.product(*ways)]
    failed = sum(part.failed for part in parts)

    assert chance_of(parts) == pytest.approx(sum(s >= failed for s in sums) / len(sums))


def test_many_batches_are_judged_as_one() -> None:
    """Two failures in each of many batches: none of them alone would tell."""
    found = [
        each
        for number in range(300)
        for each in (
            *trials("wn1", failed=1, batch=str(number)),
            *trials("wn2", well=1, batch=str(number)),
        )
    ]

    assert names(iter(found)) == ["wn1"]


@pytest.mark.parametrize(
    ("has_failed", "expected"),
    [
        ([], False),
        ([False, False], False),
        ([False, False, False], True),
        ([True, False, False, False], True),
        ([False, False, False, True], False),
        ([False, True, False, False], False),
    ],
)
def test_a_node_is_cleared_by_trials_in_a_row_that_did_well(has_failed, expected) -> None:
    assert is_cleared(has_failed, needed=3) is expected
