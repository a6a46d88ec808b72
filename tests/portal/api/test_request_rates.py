"""The rule of rates: what passes in a sliding window, and how long one who is refused waits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portal.api.request_rates import Judgement, Rate, judge, window_of

RATES = st.builds(Rate, st.integers(1, 50), st.integers(1, 100))


class Caller:
    """A caller whose admitted requests are counted as they are kept."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.counts: dict[int, int] = {}

    def ask(self, now_ms: int) -> Judgement:
        number, elapsed_ms = window_of(self.rate, now_ms)
        current, before = self.counts.get(number, 0) + 1, self.counts.get(number - 1, 0)
        found = judge(self.rate, current=current, before=before, elapsed_ms=elapsed_ms)
        if found.is_admitted:
            self.counts[number] = current
        return found


@given(RATES, st.lists(st.integers(0, 40_000), max_size=120))
def test_who_waits_as_long_as_told_passes(rate: Rate, gaps_ms: list[int]) -> None:
    caller, now_ms = Caller(rate), 1_000_000
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        if not (refused := caller.ask(now_ms)).is_admitted:
            now_ms += refused.reset_s * 1000

            assert caller.ask(now_ms).is_admitted


@given(RATES, st.integers(0, 10**12))
def test_what_is_told_to_be_left_passes_and_no_more(rate: Rate, now_ms: int) -> None:
    caller = Caller(rate)
    left = [caller.ask(now_ms) for _ in range(rate.requests)]

    assert [each.remaining for each in left] == list(reversed(range(rate.requests)))
    assert all(each.is_admitted for each in left)
    assert not caller.ask(now_ms).is_admitted


@given(RATES, st.integers(0, 10**9))
def test_the_border_of_two_windows_lets_nobody_have_twice_as_much(rate: Rate, at_ms: int) -> None:
    caller = Caller(rate)
    border = at_ms // rate.window_ms * rate.window_ms + rate.window_ms
    for _ in range(rate.requests):
        caller.ask(border - 1)

    assert not caller.ask(border).is_admitted
