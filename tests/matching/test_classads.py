from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.ads.classads import (
    AdError,
    build_ad,
    literal_values,
    parse_expression,
    parse_lines,
    rank_value,
    render_lines,
)
from tests.matching.matchmaking import requirement_holds


@pytest.mark.parametrize(
    "text",
    [
        "1; Foo = 2",
        "1)] [(2",
        "1); b = (2",
        "a ==",
        "a b",
        "",
        "(a",
        '"open',
        "1 ] [ a=2",
    ],
)
def test_what_is_not_exactly_one_expression_is_refused(text: str) -> None:
    with pytest.raises(AdError):
        parse_expression(text)


def test_the_message_says_what_is_probably_meant() -> None:
    with pytest.raises(AdError, match="write == or =\\?="):
        parse_expression("CurMatches = 3")
    with pytest.raises(AdError, match="1 opening and 0 closing"):
        parse_expression("(CurMatches < 3")
    with pytest.raises(AdError, match="quote"):
        parse_expression('Name == "x')


def test_a_fault_in_an_ad_is_told_with_its_line() -> None:
    with pytest.raises(AdError) as caught:
        parse_lines('Name = "x"\n\n# a comment\nRank = 1 +\n')

    assert caught.value.line == 4
    assert caught.value.attribute == "Rank"


def test_an_attribute_given_twice_is_refused_whatever_its_case() -> None:
    with pytest.raises(AdError, match="RANK") as caught:
        parse_lines("Rank = 1\nRANK = 2")

    assert caught.value.line == 2


def test_an_ad_that_is_too_large_is_refused() -> None:
    with pytest.raises(AdError, match="larger than"):
        parse_lines("A = 1\n" + "#" * 70_000)


def test_names_without_scope_are_looked_up_in_the_target_too() -> None:
    dag = build_ad({"Requirements": "Is_USCMS_Site =?= True", "Rank": "Speed * 2"})
    site = build_ad({"Is_USCMS_Site": "True", "Speed": "21"})

    assert requirement_holds(dag, site)
    assert rank_value(dag, site) == 42.0


@pytest.mark.parametrize("expression", ["undefined", "error", "1", '"true"', "Missing", "1/0"])
def test_requirements_that_are_not_exactly_true_refuse(expression: str) -> None:
    assert not requirement_holds(build_ad({"Requirements": expression}), build_ad({}))


def test_missing_requirements_accept_everybody() -> None:
    assert requirement_holds(build_ad({}), build_ad({}))


@pytest.mark.parametrize(
    ("expression", "value"),
    [("undefined", 0.0), ("error", 0.0), ('"high"', 0.0), ("True", 1.0), ("-2.5", -2.5)],
)
def test_a_rank_that_is_no_number_counts_as_zero(expression: str, value: float) -> None:
    assert rank_value(build_ad({"Rank": expression}), build_ad({})) == value


def test_a_rendered_ad_reads_as_the_same_ad() -> None:
    text = 'B = "x;y=\\"z\\""\nA = 1.5\nc = A + Missing'

    rendered = render_lines(build_ad(parse_lines(text)))

    assert rendered.splitlines() == ["A = 1.5", 'B = "x;y=\\"z\\""', "c = A + Missing"]
    assert render_lines(build_ad(parse_lines(rendered))) == rendered


def test_literal_values_leave_out_what_is_undefined() -> None:
    ad = build_ad({"A": "1 + 1", "B": "Missing", "C": "1/0", "D": '"x"', "E": "true"})

    assert literal_values(ad) == {"A": 2, "D": "x", "E": True}


@pytest.mark.parametrize("expression", ['real("NaN")', 'real("INF")', '"\\377"', "1.0e308*10"])
def test_values_that_nobody_can_store_are_errors(expression: str) -> None:
    ad = build_ad({"Rank": expression, "Requirements": expression, "A": "1"})

    assert rank_value(ad, build_ad({})) == 0.0
    assert not requirement_holds(ad, build_ad({}))
    assert literal_values(ad) == {"A": 1}


def test_hostile_text_is_refused_quickly() -> None:
    for text in ("A = " + " " * 60_000, 'A = "' + '\\"' * 20_000):
        with pytest.raises(AdError):
            parse_lines(text)


@given(st.text(max_size=60))
def test_any_text_either_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(AdError):
        parse_expression(text)


def test_an_expression_that_is_nested_too_deeply_refuses_instead_of_failing() -> None:
    deep = build_ad({"Requirements": "1" + "+1" * 9_999, "Rank": "1" + "+1" * 9_999})

    assert not requirement_holds(deep, build_ad({}))
    assert rank_value(deep, build_ad({})) == 0.0


def test_more_operators_than_the_library_can_print_are_refused() -> None:
    with pytest.raises(AdError, match="more than 10000 operators"):
        parse_expression("1" + "+1" * 30_000)
    assert parse_expression('"' + "+" * 30_000 + '"')


@pytest.mark.parametrize("text", ["true) || (true", "1)+(2", "1); Expression = (2"])
def test_parentheses_that_close_what_is_around_the_expression_are_refused(text: str) -> None:
    with pytest.raises(AdError, match="ClassAd expression"):
        parse_expression(text)


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=60))
def test_any_string_survives_an_ad(text: str) -> None:
    ad = build_ad({}, {"S": text})

    assert build_ad(parse_lines(render_lines(ad))).eval("S") == text
