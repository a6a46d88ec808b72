"""Rates of requests: how many pass in a window that slides, and when the next one may.

Two counts decide: of the current window, and of the one before, of which the part counts that the
sliding window still covers. So a rate holds over any stretch of time, with two numbers kept for
each caller, however many requests there are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """Rate: a number of requests in a number of seconds."""

    requests: int
    window_s: int

    @property
    def window_ms(self) -> int:
        """Length of the window in milliseconds, in which all is reckoned: without rounding."""
        return self.window_s * 1000


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a request passes, how many more may follow at once, and after how many seconds.

    `reset_s` are the seconds until the current window ends or, where the request does not pass,
    until one does.
    """

    is_admitted: bool
    remaining: int
    reset_s: int


def window_of(rate: Rate, now_ms: int) -> tuple[int, int]:
    """Number of the current window, and the milliseconds of it that are over."""
    return divmod(now_ms, rate.window_ms)


def judge(rate: Rate, *, current: int, before: int, elapsed_ms: int) -> Judgement:
    """Judge a request that is counted in `current`; `before` is the count of the window before."""
    window, left = rate.window_ms, rate.window_ms - elapsed_ms
    used, allowed = current * window + before * left, rate.requests * window
    if used <= allowed:
        return Judgement(True, (allowed - used) // window, _seconds(left))
    return Judgement(False, 0, _seconds(_wait_ms(rate, current - 1, before, left)))


def _wait_ms(rate: Rate, current: int, before: int, left: int) -> int:
    """Milliseconds until a request passes, if none of this caller comes meanwhile."""
    window = rate.window_ms
    if current < rate.requests:
        # It passes as soon as enough of the window before has slid away.
        return left - (rate.requests - current - 1) * window // before
    # The current window is full: it has to become the one before, and slide away in part.
    return left + window - (rate.requests - 1) * window // current


def _seconds(milliseconds: int) -> int:
    return max(1, -(-milliseconds // 1000))
