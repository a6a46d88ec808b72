from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.classads import AdError
from matching.substitution import (
    Undefined,
    expand_attributes,
    expand_environment,
    expand_macros,
)


def test_macros_have_no_case_and_may_use_each_other() -> None:
    values = {"JOB": "Run01", "out": "$(job)-$(RETRY).txt", "retry": "2"}

    assert expand_macros("$(OUT)", values) == "Run01-2.txt"


def test_an_unknown_macro_is_empty_or_takes_its_default() -> None:
    assert expand_macros("[$(x)] [$(x:7)]", {}) == "[] [7]"


def test_a_macro_that_uses_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="uses itself"):
        expand_macros("$(a)", {"a": "x$(b)", "b": "$(a)"})


def test_macros_that_multiply_are_refused() -> None:
    values = {"a": "$(b)" * 100, "b": "$(c)" * 100, "c": "$(d)" * 100, "d": "x" * 100}

    with pytest.raises(ValueError, match="expand to more than"):
        expand_macros("$(a)", values)


def test_an_open_expression_is_passed_over_quickly() -> None:
    text = "$$([" * 30_000

    assert expand_attributes(text, {}) == (text, {})


def test_macros_leave_the_references_to_the_site_alone() -> None:
    assert expand_macros("$$(Name) $ENV(X) $(y)", {"y": "1"}) == "$$(Name) $ENV(X) 1"


def test_the_environment_is_the_one_given_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")

    with pytest.raises(Undefined, match=r"\$ENV\(DATABASE_PASSWORD\) is not defined"):
        expand_environment("$ENV(DATABASE_PASSWORD)", {})
    assert expand_environment("$ENV(A)/$ENV(B:b)", {"A": "a"}) == "a/b"


def test_attributes_of_the_matched_ad_are_filled_in_and_recorded() -> None:
    text, used = expand_attributes(
        "$$(name):$$(Port:80) $$(Is_Good) $$(DOLLARDOLLAR)(x)", {"Name": "uw", "Is_Good": True}
    )

    assert text == "uw:80 true $$(x)"
    assert used == {"MATCH_name": "uw", "MATCH_Is_Good": "true"}


def test_what_a_value_contains_is_not_expanded_again() -> None:
    text, _ = expand_attributes("$$(A)", {"A": "$$(B) $ENV(C)", "B": "never"})

    assert text == "$$(B) $ENV(C)"


def test_an_attribute_without_value_and_default_is_named() -> None:
    with pytest.raises(Undefined) as caught:
        expand_attributes("x $$(SiteWorkingArea)", {})

    assert caught.value.name == "SiteWorkingArea"


def test_an_expression_is_evaluated_where_there_is_somebody_to_do_it() -> None:
    text, _ = expand_attributes("$$([1 + 2])", {}, evaluate=lambda expression: expression.eval())

    assert text == "3"
    with pytest.raises(AdError, match="cannot be used here"):
        expand_attributes("$$([1 + 2])", {})


@given(st.text(alphabet="$(){}ENVab:[]", max_size=40))
def test_any_text_is_expanded_or_refused_and_nothing_else(text: str) -> None:
    with contextlib.suppress(Undefined, AdError, ValueError):
        expand_attributes(expand_environment(expand_macros(text, {"a": "1"}), {"b": "2"}), {})
