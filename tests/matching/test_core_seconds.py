from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.core_seconds import core_accounting, permille

JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "cores": st.integers(1, 64),
            "seconds": st.integers(0, 10**6),
            "outcome": st.sampled_from(["ok", "error", "killed"]),
        }
    ),
    max_size=20,
)


def test_a_pilot_of_many_cores_is_accounted_in_core_seconds() -> None:
    accounts = core_accounting(
        cores=8,
        pilot_seconds=10_000,
        daemon_seconds=10_000,
        jobs=[
            {"cores": 4, "seconds": 5000, "outcome": "ok"},
            {"cores": 2, "seconds": 5000, "outcome": "error"},
            {"cores": 2, "seconds": 5000, "outcome": "killed"},
        ],
    )

    assert accounts == {
        "core_seconds": {"pilot": 80_000, "usable": 80_000, "used": 40_000, "good": 20_000},
        "permille": {"validation": 0, "idle": 500, "nosuccess": 500, "badput": 625},
    }


def test_a_pilot_that_did_nothing_has_no_waste_of_nothing() -> None:
    accounts = core_accounting(cores=1, pilot_seconds=0)

    assert set(accounts["permille"].values()) == {0}


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(1, 2000, 1), (1, 2001, 0), (-5, 10, 0), (20, 10, 1000), (1, 0, 0), (0.5, 1.0, 500)],
)
def test_half_a_thousandth_is_rounded_up_and_waste_stays_within_its_whole(
    part: float, whole: float, expected: int
) -> None:
    assert permille(part, whole) == expected


@given(
    cores=st.integers(1, 128),
    life_s=st.integers(0, 10**6),
    validation_s=st.integers(0, 10**6),
    jobs=JOBS,
)
def test_waste_is_from_none_to_all_whatever_is_told(cores, life_s, validation_s, jobs) -> None:
    accounts = core_accounting(
        cores=cores,
        pilot_seconds=life_s,
        validation_seconds=validation_s,
        daemon_seconds=max(0, life_s - validation_s),
        jobs=jobs,
    )

    assert all(0 <= value <= 1000 for value in accounts["permille"].values())
    assert accounts["core_seconds"]["good"] <= accounts["core_seconds"]["used"]
