"""Maps of numbers are stored without their names, and read with them; so are those of before."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.core.database.packed_numbers import PackedNumbersField

NAMES = ("wall_s", "files", "disk_mb")
FIELD = PackedNumbersField(names=NAMES)


@given(
    st.dictionaries(
        st.sampled_from((*NAMES, "other")),
        st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
    )
)
def test_every_map_is_read_as_it_was(value: dict[str, object]) -> None:
    stored = json.loads(json.dumps(FIELD.packed(value)))

    found = FIELD.unpacked(stored)

    assert found == value
    assert {name: type(each) for name, each in found.items()} == {
        name: type(each) for name, each in value.items()
    }


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"wall_s": 61.5, "files": 4}, "4,61.5"),
        ({"disk_mb": 0.1}, ",,0.1"),
        ({}, {}),
        (None, None),
        ({"files": True}, {"files": True}),
        ({"files": 4, "other": 1}, {"files": 4, "other": 1}),
    ],
)
def test_only_numbers_of_known_names_are_packed(value: object, stored: object) -> None:
    assert FIELD.packed(value) == stored  # type: ignore[arg-type]
