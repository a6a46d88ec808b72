"""Requirements that no site can fulfil are known before there is a site."""

from __future__ import annotations

import pytest

from matching.task_queues.impossible_requirements import constant_fault, never_true

OWN = {"No": "false", "Number": "5", "Words": '{"a", "b"}', "Here": 'TARGET.Name == "UW"'}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5", "it is 5, which is neither true nor false"),
        ('"abc"', 'it is "abc"'),
        ("undefined", "it is undefined"),
        ("error", "it is an error"),
        ("1/0", "it is an error"),
        ("false", "it is false"),
        ("TARGET.Memory > 5 && false", "it is false"),
        ("No", "it is false"),
        ("Number > 6", "it is false"),
        ("Number", "it is 5"),
        ("Words", "it is a list"),
        ("Words[0]", 'it is "a"'),
        ("[a = 1]", "it is a nested ad"),
        (r'"\377"', "it is an error"),
        (r'[a = "\377"]', "it is a nested ad"),
        ("1.5 + 1", "it is 2.5"),
    ],
)
def test_what_is_never_true_is_told_with_its_value(text: str, words: str) -> None:
    assert words in never_true(text, OWN)


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "Number == 5",
        "Memory",
        "TARGET.Memory > 5",
        "Here",
        "No || Memory > 5",
        "undefined || Memory > 5",
        "MY.Missing =?= undefined",
        'member("a", Words)',
        "member(Kind, Words)",
        "time() < 5",
        "CurrentTime < 5",
        "random() > 2",
    ],
)
def test_what_a_site_or_the_time_can_make_true_is_accepted(text: str) -> None:
    assert never_true(text, OWN) == ""


def test_what_changes_with_time_is_found_in_the_own_attributes_as_well() -> None:
    assert never_true("Late", {"Late": "time() > 99999999999"}) == ""


def test_false_is_a_truth_value() -> None:
    assert constant_fault("false", {}) == ""
    assert constant_fault("0", {}).startswith("it is 0,")
