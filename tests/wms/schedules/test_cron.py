"""Times in cron form: what fields mean, and what happens when clocks are changed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.schedules.cron import next_time, next_times, parse_cron, zone_named

ZURICH, LORD_HOWE = ZoneInfo("Europe/Zurich"), ZoneInfo("Australia/Lord_Howe")
UTC_ZONE = ZoneInfo("UTC")


def _local(text: str, zone: ZoneInfo, after: str, count: int) -> list[str]:
    begin = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = islice(next_times(parse_cron(text), zone, begin), count)
    return [f"{at.astimezone(zone):%m-%d %H:%M%z}" for at in found]


def _utc(text: str, after: str, count: int = 3) -> list[str]:
    begin = datetime.fromisoformat(after).replace(tzinfo=UTC)
    return [
        f"{at:%Y-%m-%d %H:%M}"
        for at in islice(next_times(parse_cron(text), UTC_ZONE, begin), count)
    ]


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("*/15 * * * *", "2026-11-20 12:15", "2026-11-20 12:30"),
        ("0 6 * * mon", "2026-11-23 06:00", "2026-11-30 06:00"),
        ("0 6 * * 1-5", "2026-11-23 06:00", "2026-11-24 06:00"),
        ("0 6 * * 7", "2026-11-22 06:00", "2026-11-29 06:00"),
        ("0 6 * * 6-7", "2026-11-21 06:00", "2026-11-22 06:00"),
        ("0 6 * * 0", "2026-11-22 06:00", "2026-11-29 06:00"),
        ("30 4 1,15 * *", "2026-12-01 04:30", "2026-12-15 04:30"),
        ("0 0 29 2 *", "2028-02-29 00:00", "2032-02-29 00:00"),
        ("0 0 31 * *", "2026-12-31 00:00", "2027-01-31 00:00"),
        ("0 12 * jan mon", "2027-01-04 12:00", "2027-01-11 12:00"),
        # Either day will do where both are restricted.
        ("0 0 1 * mon", "2026-11-23 00:00", "2026-11-30 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59", "2027-12-31 23:59"),
    ],
)
def test_fields_mean_what_they_mean_to_cron(text: str, first: str, second: str) -> None:
    # A Friday.
    assert _utc(text, "2026-11-20 12:00", 2) == [first, second]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("@weekly", "five fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "day of the week"),
        ("*/0 * * * *", "minute"),
        ("x * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("0 0 30 2 *", "no such day"),
        ("* * * * *" + " " * 300, "200"),
        ("\x00 * * * *", "minute"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        parse_cron(text)


@pytest.mark.parametrize("name", ["", "Mars/Base", "../etc/passwd", "europe"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        zone_named(name)


def test_a_time_stays_the_same_on_the_clock_through_the_year() -> None:
    assert _local("0 6 * * sun", ZURICH, "2026-10-20", 2) == [
        "10-25 06:00+0100",
        "11-01 06:00+0100",
    ]
    assert _local("0 6 * * sun", ZURICH, "2026-03-23", 2) == [
        "03-29 06:00+0200",
        "04-05 06:00+0200",
    ]


def test_a_time_that_does_not_exist_is_the_moment_of_the_change() -> None:
    assert _local("30 2 * * *", ZURICH, "2026-03-28", 3) == [
        "03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200",
    ]  # fmt: skip


def test_many_times_that_do_not_exist_are_one() -> None:
    assert _local("0,20,40 2 * * *", ZURICH, "2026-03-29 00:00", 2) == [
        "03-29 03:00+0200", "03-30 02:00+0200",
    ]  # fmt: skip


def test_a_time_that_comes_twice_is_the_first_one() -> None:
    assert _local("30 2 * * *", ZURICH, "2026-10-24 12:00", 2) == [
        "10-25 02:30+0200", "10-26 02:30+0100",
    ]  # fmt: skip


def test_every_hour_is_every_hour_when_clocks_change() -> None:
    assert _local("30 * * * *", ZURICH, "2026-10-24 23:00", 4) == [
        "10-25 01:30+0200", "10-25 02:30+0200", "10-25 02:30+0100", "10-25 03:30+0100",
    ]  # fmt: skip
    assert _local("30 * * * *", ZURICH, "2026-03-29 00:00", 2) == [
        "03-29 01:30+0100", "03-29 03:30+0200",
    ]  # fmt: skip


def test_changes_by_half_an_hour_are_right_too() -> None:
    assert _local("15 2 * * *", LORD_HOWE, "2026-10-02 18:00", 2) == [
        "10-04 02:30+1100", "10-05 02:15+1100",
    ]  # fmt: skip


_FIELDS = st.tuples(
    st.sampled_from(["*", "0", "*/20", "7,59", "30"]),
    st.sampled_from(["*", "0", "2", "1-3", "*/6"]),
    st.sampled_from(["*", "1", "28-31", "*/9"]),
    st.sampled_from(["*", "3,10", "2"]),
    st.sampled_from(["*", "0", "mon-fri", "6"]),
)
_ZONES = st.sampled_from(["Europe/Zurich", "America/New_York", "UTC", "Australia/Lord_Howe"])


@settings(max_examples=60)
@given(_FIELDS, _ZONES, st.integers(0, 3 * 365 * 1440))
def test_the_next_time_is_the_first_one_that_a_clock_would_show(
    fields: tuple[str, ...], name: str, minutes: int
) -> None:
    """Compared with a walk by minutes, as far as this goes, on days without a change of clocks."""
    cron, zone = parse_cron(" ".join(fields)), ZoneInfo(name)
    begin = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    at = next_time(cron, zone, begin)
    assert at is not None
    assert at > begin
    if _changes(zone, at.astimezone(zone).date()):
        return
    assert _is_shown(cron, at.astimezone(zone))
    for step in range(1, min(3 * 1440, int((at - begin).total_seconds()) // 60)):
        between = (begin + timedelta(minutes=step)).astimezone(zone)
        assert not _is_shown(cron, between) or _changes(zone, between.date())


def _is_shown(cron, local: datetime) -> bool:
    on_time = local.minute in cron.minutes and local.hour in cron.hours
    return on_time and cron.allows(local.date())


def _changes(zone: ZoneInfo, day: date) -> bool:
    begin = datetime(day.year, day.month, day.day, tzinfo=zone)
    offsets = {(begin + timedelta(days=days)).utcoffset() for days in (-1, 0, 1, 2)}
    return len(offsets) > 1
