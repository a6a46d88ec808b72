from __future__ import annotations

import contextlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.ads.classads import AdError
from matching.descriptions.macros import Scopes, parse_template
from matching.descriptions.substitution import (
    Evaluator,
    Expanded,
    Undefined,
    expand_references,
    reference_fault,
)


def expand(
    text: str,
    target: Mapping[str, object] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    evaluator: Evaluator | None = None,
) -> Expanded:
    return expand_references(
        text,
        environment=environment or {},
        target=target or {},
        evaluator=evaluator or Evaluator({}, {}, target or {}),
    )


def test_the_environment_is_the_one_given_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")

    with pytest.raises(Undefined, match=r"\$ENV\(DATABASE_PASSWORD\)"):
        expand("$ENV(DATABASE_PASSWORD)")
    assert expand("$ENV(A)/$ENV(B:b)", environment={"A": "a"}).text == "a/b"


def test_attributes_of_the_matched_ad_are_filled_in_and_recorded_under_their_names() -> None:
    expanded = expand(
        "$$(name):$$(Port:80) $$(Is_Good) $$(DOLLARDOLLAR)(x)", {"Name": "uw", "Is_Good": True}
    )

    assert expanded.text == "uw:80 true $$(x)"
    assert expanded.used == {"MATCH_Name": "uw", "MATCH_Port": "80", "MATCH_Is_Good": "true"}


@pytest.mark.parametrize("text", ["$$(A)", "$ENV(A)", "$$(None:$ENV)$$(A)$$([TARGET.A])$ENV(A)"])
def test_what_a_value_contains_is_not_expanded_again(text: str) -> None:
    value = "$$(B) $ENV(B) $$([B]) $(B)"

    expanded = expand(text, {"A": value, "B": "never"}, environment={"A": value, "B": "never"})

    assert "never" not in expanded.text
    assert expanded.text.endswith(value)


def test_what_stands_beside_a_value_does_not_make_a_reference_of_it() -> None:
    assert expand("$ENV(A)(B)", {"B": "never"}, environment={"A": "$$"}).text == "$$(B)"


def test_an_attribute_without_value_and_default_is_named() -> None:
    with pytest.raises(Undefined) as caught:
        expand("x $$(SiteWorkingArea)")

    assert caught.value.name == "SiteWorkingArea"


def test_an_expression_sees_both_ads() -> None:
    evaluator = Evaluator({"Half": "Size / 2"}, {"Size": 10}, {"Name": "uw", "Port": 80})

    def value(text: str) -> str:
        return expand(f"$$([{text}])", evaluator=evaluator).text

    assert value("MY.Half + TARGET.Port") == "85"
    assert value('strcat(Name, ":", Port > 79)') == "uw:true"
    assert value("{1, 2}[1]") == "2"


@pytest.mark.parametrize("text", ["TARGET.Nothing", "1 / 0", "{1, 2}", '"a" + 1'])
def test_an_expression_without_a_plain_value_is_told_as_undefined(text: str) -> None:
    with pytest.raises(Undefined) as caught:
        expand(f"$$([{text}])")

    assert text in str(caught.value)


def test_an_expression_that_could_become_too_large_is_refused() -> None:
    expressions = {"A0": '"' + "x" * 1000 + '"'}
    for number in range(1, 8):
        expressions[f"A{number}"] = "strcat(" + ",".join([f"A{number - 1}"] * 10) + ")"

    with pytest.raises(AdError, match="too large"):
        expand("$$([A7])", evaluator=Evaluator(expressions, {}, {}))
    with pytest.raises(AdError, match="eval "):
        expand('$$([eval("1")])')


def test_values_that_multiply_are_refused() -> None:
    with pytest.raises(ValueError, match="expand"):
        expand("$$(A)" * 1000, {"A": "x" * 1000})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("-n $$([TARGET.Cores * 2])", ""),
        ("$$([ $(x) + 1 ])", ""),
        ("$$(Name) $$(Port:80)", ""),
        ("$$([1 + ])", "$$([1 + ]): not a ClassAd expression: 1 + "),
        ("$$([a = 1])", "(to compare, write == or =?=)"),
        ('$$([eval("1")])', "eval cannot be used"),
        ("$$([1 + 2)", "is not closed"),
    ],
)
def test_a_faulty_expression_can_be_told_before_there_is_a_site(text: str, fault: str) -> None:
    found = reference_fault(text)

    assert fault in found
    assert bool(found) == bool(fault)


def test_an_open_expression_is_passed_over_quickly() -> None:
    text = "$$([" * 30_000

    assert expand(text).text == text


@given(st.text(alphabet="$(){}ENVab:[]", max_size=40))
def test_any_text_is_expanded_or_refused_and_nothing_else(text: str) -> None:
    reference_fault(text)
    with contextlib.suppress(Undefined, AdError, ValueError):
        expand(Scopes({"a": "1"}).expand(parse_template(text)), environment={"b": "2"})


@given(st.text(alphabet="$(){}ENVab:[]", max_size=20))
def test_an_inserted_value_stays_as_it_is(value: str) -> None:
    expanded = expand(
        "<$ENV(a)|$$(a)|$$([TARGET.a])>",
        {"a": value, "b": "never"},
        environment={"a": value, "b": "never"},
    )

    assert expanded.text == f"<{value}|{value}|{value}>"
