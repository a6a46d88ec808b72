"""New names of outputs in HTCondor's form."""

from __future__ import annotations

import pytest

from matching.descriptions.output_remaps import parse_remaps


def test_names_are_separated_by_semicolons_and_may_have_their_characters_escaped() -> None:
    text = r'" a = b ; dir/c=d e;f\=g = h\;i; "'

    assert parse_remaps(text) == {"a": "b", "dir/c": "d e", "f=g": "h;i"}
    assert parse_remaps("") == {}


@pytest.mark.parametrize("text", ["a", "a=", "=b", "a=b=c", "a=b;a=c"])
def test_what_is_no_pair_of_names_is_a_fault(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|twice"):
        parse_remaps(text)
