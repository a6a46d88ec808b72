"""Sentences about jobs that users read: the only place that pins them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from matching.task_queues.resources import JobKind
from wms.jobs.attempts.ending import PayloadEnd
from wms.jobs.limits import _Limit

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (PayloadEnd(3), "the payload ended with exit code 3"),
        (PayloadEnd(None, signal=9), "the payload was ended by signal 9"),
        (PayloadEnd(0, missing_outputs=("a", "b")), "output files are missing: a, b"),
        (PayloadEnd(0), ""),
    ],
)
def test_the_reason_of_a_failed_payload(end: PayloadEnd, sentence: str) -> None:
    assert end.failure() == sentence


@pytest.mark.parametrize(
    ("site", "maximum", "interval_s", "sentence"),
    [
        ("T2_X", 2, None, "2 of 2 User jobs run at T2_X"),
        ("", 2, None, "2 of 2 User jobs run at all sites together"),
        ("T2_X", None, 2.5, "one of the User jobs started at T2_X less than 2.5 s ago"),
        ("T2_X", 3, None, ""),
    ],
)
def test_the_reason_of_a_reached_limit(
    site: str, maximum: int | None, interval_s: float | None, sentence: str
) -> None:
    limit = _Limit(1, site, JobKind("User"), maximum, interval_s, NOW - timedelta(seconds=1))

    assert limit.reason(2, NOW) == sentence
