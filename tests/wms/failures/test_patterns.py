"""People's expressions are RE2's: what it cannot read is refused, with what is wrong and where."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.failures.defaults import DEFAULT_RULES
from wms.failures.patterns import MAX_NAME, BadPattern, Pattern, check_pattern, fill_in


def found(pattern: str, text: str, **names: str) -> list[str]:
    ready, content = Pattern(fill_in(pattern, names)), text.encode()
    finds, at = [], 0
    while at <= len(content) and (place := ready.find(content, at)):
        finds.append(content[place[0] : place[1]].decode())
        at = place[2]
    return finds


@pytest.mark.parametrize("rule", DEFAULT_RULES, ids=lambda rule: rule.name)
def test_the_first_rules_can_be_used(rule: object) -> None:
    check_pattern(rule.pattern)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "a*a*a*b", "(?:a|ab)*?c", "(?:ab|a){1,9}b", "(?i)fail(ed|ure)$"]
)
def test_what_made_other_expressions_slow_is_read(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("a++b", "bad repetition operator: ++"),
        ("(?>ab)c", "invalid perl operator: (?>"),
        ("a(?!b)", "invalid perl operator: (?!"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("x{1001}", "invalid repetition size: {1001}"),
        ("(?:x{100}y){20}", "invalid repetition size: {20}"),
        ("(?:[a-z]{999}){1}(?:[a-z]{999}){1}(?:[0-9]{99}){1}", "2000 are allowed"),
        (r"[\pL\pN_]+@[\pL\pN_]+", r"write [A-Za-z] for \pL"),
        (r"(?:\pL{9}){100}", "pattern too large"),
        ("(?:{host}){100}", "pattern too large"),
        ("[", "missing ]: ["),
        ("(?P<it", "invalid named capture group: (?P<it"),
        ("\ud800", "half of a character"),
        ("", "Give an expression"),
        ("a*", "fits an empty text"),
        ("^", "fits an empty text"),
        ("x" * 401, "at most 400"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_with_the_reason(
    pattern: str, fault: str
) -> None:
    with pytest.raises(BadPattern, match=re.escape(fault)):
        check_pattern(pattern)


@given(st.text(alphabet="ab()[]{}|?*+.\\^$<>=!:P0123456789,\0\ud800é", max_size=40))
def test_any_text_is_either_taken_or_refused_in_words(pattern: str) -> None:
    try:
        check_pattern(pattern)
    except BadPattern:
        return
    Pattern(pattern)


def test_names_are_filled_in_as_they_are_and_unknown_ones_are_found_nowhere() -> None:
    names = {"owner": "a.b", "site": "UW"}

    assert found("{owner} at {site}", "a.b at UW", **names) == ["a.b at UW"]
    assert found("{owner} at {site}", "axb at UW", **names) == []
    assert found("{host}", "anything") == []
    assert found("{host}", "h" * (MAX_NAME + 1), host="h" * (MAX_NAME + 1)) == []


def test_what_stands_around_the_group_it_may_stand_around_the_next_one_too() -> None:
    assert found("(?:^|[^a-z])(?P<it>[a-z]+)(?:[^a-z]|$)", "ab cd,ef") == ["ab", "cd", "ef"]


def test_what_was_found_is_seen_by_the_search_for_the_next() -> None:
    assert found("^[0-9]", "123") == ["1"]
    assert found(r"\b[a-z]", "abc d") == ["a", "d"]


def test_a_find_of_nothing_is_none() -> None:
    assert [each for each in found(r"\b|é", "a éb") if each] == ["é"]
