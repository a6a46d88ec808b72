from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.core.errors import InvalidInput
from wms.core.labels import (
    MAX_LABELS,
    campaigns_among,
    changed_labels,
    checked_labels,
    label_of_campaign,
    labels_in,
)

_CHARACTERS = st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=",")
WORDS = st.lists(st.text(_CHARACTERS, min_size=1, max_size=64), max_size=MAX_LABELS)


@given(WORDS, WORDS, WORDS)
def test_a_change_adds_what_is_added_and_leaves_nothing_that_is_removed(
    old: list[str], add: list[str], remove: list[str]
) -> None:
    old = list(checked_labels(old))
    try:
        new = changed_labels(old, add=add, remove=remove)
    except InvalidInput:
        assert len({*old, *add} - set(remove)) > MAX_LABELS
        return
    assert set(new) == {*old, *add} - set(remove)
    assert len(new) == len(set(new))


@given(WORDS)
def test_labels_in_a_text_are_the_words_that_were_joined(labels: list[str]) -> None:
    assert labels_in(", ".join(labels)) == labels


@pytest.mark.parametrize("bad", ["", "a b", "a,b", "a\n", "x" * 65, "\x00", "\ud800"])
def test_what_is_no_word_is_no_label(bad: str) -> None:
    with pytest.raises(ValueError, match="word"):
        checked_labels([bad])


def test_campaigns_are_named_by_labels() -> None:
    assert campaigns_among(["higgs", "campaign=mc27", "campaign=", "campaign=b"]) == ["mc27", "b"]
    assert campaigns_among([label_of_campaign("mc27")]) == ["mc27"]
