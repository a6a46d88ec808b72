"""The place of a fault in an expression, which the library does not tell."""

from __future__ import annotations

import pytest

from matching.ads.classads import AdError, parse_expression, parse_lines
from matching.ads.syntax_faults import find_syntax_fault


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("TARGET.ImageSize < ", 1, 19, "a value must follow <"),
        ("CurMatches = 1", 1, 12, "to compare, write == or =?="),
        ("a && (b ||\n  c", 1, 6, "this ( is not closed"),
        ("a &&\n  b) || c", 2, 4, "nothing was opened that ) could close"),
        ("a &&\n&& b", 2, 1, "a value must stand before &&"),
        ("Memory 2000", 1, 8, "an operator must stand before 2000"),
        ('Name == "UW', 1, 9, "this quote is not closed"),
        ("f(1, ) + $", 1, 10, "'$' means nothing here"),
        ("(a + )", 1, 6, "a value must stand before )"),
        ("{1, 2} {3}", 1, 8, "an operator must stand before {"),
        ("a ? b :", 1, 8, "a value must follow :"),
        ("a /* never closed", 1, 3, "this comment is not closed"),
        ("Memory > 10K", 1, 12, "an operator must stand before K"),
        ("a !b", 1, 3, "an operator must stand before !"),
    ],
)
def test_the_place_is_that_of_the_mistake(text: str, line: int, column: int, words: str) -> None:
    place = find_syntax_fault(text)

    assert place is not None
    assert (place.line, place.column, place.message) == (line, column, words)
    with pytest.raises(AdError) as caught:
        parse_expression(text)
    assert (caught.value.line_in_text, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "text",
    [
        "CurMatches < MaxMatches && TARGET.ImageSize <= 1.5e3",
        'stringListMember("a", Sites, ",") =?= true',
        "a is undefined || b isnt error",
        "ifThenElse(x, -1, +2) >>> 3",
        "{ 1, { }, [ a = 1; b = a + 1; ] }[0]",
        "(a ? b : c) ?: d",
        "!a && ~b == -c",
        ".root + MY.x.y[3]",
        "'quoted name' + 1 // a comment",
        "f() + 10",
        '"a \\" b" == /* in between */ c',
    ],
)
def test_what_the_library_reads_has_no_fault(text: str) -> None:
    parse_expression(text)

    assert find_syntax_fault(text) is None


def test_a_fault_in_an_ad_has_the_line_of_the_ad_and_the_column_in_it() -> None:
    with pytest.raises(AdError) as caught:
        parse_lines("Good = 1\n\n  Bad = (1 + ")

    assert (caught.value.line, caught.value.column) == (3, 9)
