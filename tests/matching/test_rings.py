from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.rings import ARCHIVES, archive_named

MOMENTS = st.integers(946_684_800, 4_102_444_800).map(lambda s: datetime.fromtimestamp(s, tz=UTC))


def test_the_archives_hold_a_day_a_week_three_months_and_five_years() -> None:
    spans = [timedelta(seconds=archive.step_s * archive.slots).days for archive in ARCHIVES]

    assert spans == [1, 7, 92, 1827]


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
@given(moment=MOMENTS)
def test_a_slot_is_used_again_after_exactly_one_turn(archive, moment: datetime) -> None:
    turn = timedelta(seconds=archive.step_s * archive.slots)

    assert archive.slot_of(moment) == archive.slot_of(moment + turn)
    assert 0 <= archive.slot_of(moment) < archive.slots
    assert archive.slot_of(moment) != archive.slot_of(moment + timedelta(seconds=archive.step_s))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
@given(moment=MOMENTS)
def test_a_moment_lies_in_its_bin(archive, moment: datetime) -> None:
    start = archive.start_of(moment)

    assert start <= moment < start + timedelta(seconds=archive.step_s)
    assert archive.slot_of(start) == archive.slot_of(moment)
    assert archive.oldest_start(moment) > moment - timedelta(seconds=archive.step_s * archive.slots)


def test_archives_are_found_by_name() -> None:
    assert archive_named("1h").step_s == 3600
    with pytest.raises(KeyError):
        archive_named("2h")
