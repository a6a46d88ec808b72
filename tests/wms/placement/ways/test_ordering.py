"""Order of the ways of a transfer by their records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wms.placement.ways.ordering import Record, order_of_ways

_WEIGHTS = st.floats(0, 500)


@st.composite
def records(draw: st.DrawFn) -> Record:
    tries = draw(st.integers(0, 200))
    successes = draw(st.integers(0, tries))
    weight = tries * draw(st.floats(0, 1))
    good = weight * draw(st.floats(0, 1)) if successes else 0.0
    rate = draw(st.none() | st.floats(1, 1e10)) if successes else None
    return Record(tries, successes, weight, good, rate)


def _good(tries: int, rate: float | None = None) -> Record:
    return Record(tries, tries, float(tries), float(tries), rate)


@given(st.lists(records(), min_size=1, max_size=6), st.booleans())
def test_every_way_has_its_place_once(ways: list[Record], new_ones: bool) -> None:
    assert sorted(order_of_ways(ways, tries_new_ones=new_ones)) == list(range(len(ways)))


@given(records(), st.integers(1, 6), st.booleans())
def test_alike_ways_stay_in_the_order_of_the_request(way: Record, n: int, new_ones: bool) -> None:
    assert order_of_ways([way] * n, tries_new_ones=new_ones) == list(range(n))


@given(st.lists(records(), min_size=2, max_size=5), st.data())
def test_a_way_that_did_better_never_comes_later_for_it(ways: list[Record], data) -> None:
    place = data.draw(st.integers(0, len(ways) - 1))
    way = ways[place]
    better = Record(way.tries, way.tries, way.weight, way.weight, way.bytes_per_s)

    before = order_of_ways(ways).index(place)

    assert order_of_ways([*ways[:place], better, *ways[place + 1 :]]).index(place) <= before


@given(st.lists(records(), min_size=1, max_size=5))
def test_an_untried_way_comes_first_where_new_ones_are_tried(ways: list[Record]) -> None:
    order = order_of_ways([*ways, Record()], tries_new_ones=True)

    untried = [place for place, each in enumerate([*ways, Record()]) if each.is_untried]
    assert order[: len(untried)] == untried


def test_success_goes_before_rate_and_rate_before_the_order_of_the_request() -> None:
    bad = Record(9, 3, 9.0, 3.0, 2.0**30)

    assert order_of_ways([bad, _good(12, 2.0**20), _good(12, 2.0**26)]) == [2, 1, 0]


def test_an_untried_way_waits_behind_a_good_one_and_goes_before_one_that_fails() -> None:
    assert order_of_ways([_good(12, 2.0**26), Record()]) == [0, 1]
    assert order_of_ways([Record(1, 0, 1.0, 0.0), Record()]) == [1, 0]


def test_a_failure_is_forgotten_with_time() -> None:
    assert order_of_ways([Record(1, 0, 0.01, 0.0), _good(3)]) == [0, 1]
