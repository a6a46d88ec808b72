"""An expression that could take long is refused, with what to write instead."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.failures.defaults import DEFAULT_RULES
from wms.failures.patterns import BadPattern, check_pattern, fill_in


@pytest.mark.parametrize("rule", DEFAULT_RULES, ids=lambda rule: rule.name)
def test_the_first_rules_are_safe(rule: object) -> None:
    check_pattern(rule.pattern)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(a+)+b", "possessive"),
        ("a*a*a*b", "possessive"),
        ("(?:a|ab)*?c", "possessive"),
        ("x{2,}", "possessive"),
        (r"(a)\1", "refer to its own groups"),
        ("a{1,100}b", "more than 64 ways"),
        ("(?:ab|a){1,9}b", "more than 64 ways"),
        ("(?:a?b?){3}(?:a|ab)(?:a|ab)c", "more than 64 ways"),
        ("(?:(?:(?:(?:(?:(?:a++b)++c)++d)++e)++f)++g)++", "deep"),
        ("[", "no regular expression"),
        ("(?P<it", "no regular expression"),
        ("", "Give an expression"),
        ("a*+", "fits an empty text"),
        ("^", "fits an empty text"),
        ("x" * 401, "at most 400"),
    ],
)
def test_an_unsafe_expression_is_refused_with_the_reason(pattern: str, fault: str) -> None:
    with pytest.raises(BadPattern, match=re.escape(fault)):
        check_pattern(pattern)


@given(st.text(alphabet="ab()[]{}|?*+.\\^$<>=!:P0123456789,", max_size=40))
def test_any_text_is_either_taken_or_refused_in_words(pattern: str) -> None:
    try:
        check_pattern(pattern)
    except BadPattern:
        return
    re.compile(pattern)


def test_names_are_filled_in_as_they_are_and_unknown_ones_are_found_nowhere() -> None:
    pattern = fill_in("{owner} at {site}", {"owner": "a.b", "site": "UW"})

    assert re.fullmatch(pattern, "a.b at UW")
    assert not re.fullmatch(pattern, "axb at UW")
    assert not re.search(fill_in("{host}", {}), "anything")
