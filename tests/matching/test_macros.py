from __future__ import annotations

import htcondor2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from matching.descriptions.macros import (
    Budget,
    Flattener,
    MacroError,
    Scopes,
    merged,
    names_in,
    parse_template,
    text_of,
)

_NAMES = ("a", "b", "c", "d")


def expand(text: str, **values: str) -> str:
    return Scopes(values).expand(parse_template(text))


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("x $(a) $(A)", "x 1 1"),
        ("$(nope)|$(nope:d)|$(empty:d)|$(a:d)", "|d|d|1"),
        ("$(nope:$(a))$(nope:$(no:$(a)2))", "112"),
        ("$(nope:f(x) y, z:w)", "f(x) y, z:w"),
        ("$(nope:b)c)", "bc)"),
        ("$$(a) $$([$(a)+1]) $ENV(a) $ENV(X:$(a))", "$$(a) $$([1+1]) $ENV(a) $ENV(X:1)"),
        ("$$$(a)", "$$1"),
        ("$(DOLLAR)(a)", "$(a)"),
        ("$($(name))$(n$(x))", "11"),
        ("$(a $(a b) $( a ) $(-a) $() $(:x)", "$(a $(a b) $( a ) $(-a)  x"),
        ("$(my.dotted)", "2"),
    ],
)
def test_macros_are_filled_in_as_htcondor_does(text: str, expanded: str) -> None:
    values = {"a": "1", "empty": "", "name": "a", "x": "ame", "n": "?", "my.dotted": "2"}
    values["name"] = "a"

    assert expand(text.replace("$(n$(x))", "$($(n$(x)))"), **values) == expanded


def test_the_name_of_a_value_in_itself_means_what_it_was_before() -> None:
    layers = Scopes({"a": "$(a)3"}, {"a": "$(a)2"}, {"a": "1"})

    assert layers.expand(parse_template("$(a)")) == "123"
    assert layers.value(1, "a") == "12"
    assert merged("1", "a", "$(A)2 $(b:$(c))") == "12 $(b:$(c))"


@pytest.mark.parametrize(
    "values",
    [
        {"a": "$(b)", "b": "$(a)"},
        {"a": "$(b)" * 1000, "b": "$(c)" * 1000, "c": "x" * 1000},
        {
            f"{'abcdefghijklmnopqrstuvwxyz'[n]}": f"$({'abcdefghijklmnopqrstuvwxyz'[n + 1]})"
            for n in range(25)
        },
    ],
)
def test_circles_and_what_grows_without_bounds_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(MacroError):
        expand("$(a)", **values)
    with pytest.raises(MacroError):
        Flattener(values).flatten("$(a)")


@pytest.mark.parametrize("piece", ["$(a:", "$(", "$(a$(b)", "$(a:$(b)", "((", "$(a:("])
def test_openings_that_are_not_closed_are_plain_text_however_many(piece: str) -> None:
    text = piece * 5_000

    assert text_of(parse_template(text)) == text
    assert expand(text, b="") == text.replace("$(b)", "")


def test_macros_in_one_that_is_not_closed_stay_some() -> None:
    assert expand("$(x:($(a)) $(y$(a) $(a:z)", a="1") == "$(x:(1) $(y1 1"


@pytest.mark.parametrize("levels", [21, 600, 20_000])
@pytest.mark.parametrize("opening", ["$(x:", "$("])
def test_macros_nested_too_deep_are_refused(levels: int, opening: str) -> None:
    assert expand(opening * 20 + "a" + ")" * 20, a="1") == ("a" if ":" in opening else "")

    with pytest.raises(MacroError, match="20 macros"):
        parse_template(opening * levels + "a" + ")" * levels)


def test_defaults_in_the_values_of_defaults_are_not_nested_without_bounds() -> None:
    values = {f"a{n}": "$(x:" * 19 + f"$(a{n + 1})" + ")" * 19 for n in range(19)}

    with pytest.raises(MacroError):
        Flattener(values).flatten("$(a0)")


def test_macros_that_give_nothing_cost_something() -> None:
    values = {f"a{n}": f"$(a{n + 1})" * 10 for n in range(7)}

    with pytest.raises(MacroError, match="steps"):
        expand("$(a0)", **values)


def test_texts_share_the_budget_that_they_are_given() -> None:
    budget = Budget(1_000)
    scopes = Scopes({"a": "x" * 300}, budget=budget)
    assert len(scopes.expand(parse_template("$(a)"))) == 300

    with pytest.raises(MacroError):
        Scopes({"a": "x" * 300}, budget=budget).expand(parse_template("$(a)"))
    budget.add(2_000)
    assert len(scopes.expand(parse_template("$(a)"))) == 300


def test_a_value_that_uses_itself_again_and_again_does_not_grow_without_bounds() -> None:
    with pytest.raises(MacroError, match="more than"):
        merged("x" * 1_000, "a", "$(a)" * 1_000)


def test_a_description_whose_values_are_used_again_and_again_is_refused() -> None:
    values = {f"a{n}": "x" * 100_000 + f"$(b{n})" for n in range(60)}
    flattener = Flattener(values)

    with pytest.raises(MacroError, match="steps"):
        list(map(flattener.value, values))


# The library expands a text again and again until nothing is left to expand: what values make a
# macro of only together with the text around them is a different thing there.
_texts = st.lists(
    st.one_of(
        st.sampled_from(["x", " y", "$$(q)", ")", "-"]),
        st.sampled_from([f"$({name})" for name in _NAMES]),
        st.sampled_from([f"$({name}:{text})" for name in _NAMES for text in ("z", "$(a)", "f(x)")]),
    ),
    max_size=5,
).map("".join)
_assignments = st.lists(st.tuples(st.sampled_from(_NAMES), _texts), max_size=6)


def _may_circle(values: dict[str, str]) -> bool:
    """Whether a name is reached again from its value; the library never returns from that."""
    uses = {name: names_in(parse_template(text)) for name, text in values.items()}
    for _ in uses:
        uses = {
            name: used.union(*(uses.get(each, ()) for each in used)) for name, used in uses.items()
        }
    return any(name in used for name, used in uses.items())


@given(_assignments, _texts)
def test_descriptions_expand_like_those_of_htcondor(
    assigned: list[tuple[str, str]], text: str
) -> None:
    values: dict[str, str] = {}
    for name, value in assigned:
        values[name] = merged(values.get(name, ""), name, value.strip())
    assume(not _may_circle(values))
    lines = [f"{name} = {value}" for name, value in [*assigned, ("result", f"[{text}]")]]

    expected = htcondor2.Submit("\n".join([*lines, "queue", ""])).expand("result")

    assert expand(f"[{text}]", **values) == expected


@given(
    _assignments,
    st.dictionaries(st.sampled_from(_NAMES), st.sampled_from(["", "p", "q r"])),
    _texts,
)
def test_a_flattened_template_gives_what_the_layers_give(
    assigned: list[tuple[str, str]], outer: dict[str, str], text: str
) -> None:
    known = dict(assigned)
    try:
        expected = Scopes(known, outer).expand(parse_template(text))
    except MacroError:
        return

    try:
        flat = Flattener(known).flatten(text)
    except MacroError:
        # A circle is refused even if only an unused default leads into it.
        assert _may_circle(known)
        return

    # What stays are names of the outer layer: a value that uses its own name means the one there.
    assert Scopes(outer).expand(flat) == expected


@given(_texts)
def test_a_template_keeps_its_text(text: str) -> None:
    again = text_of(parse_template(text))

    assert parse_template(again) == parse_template(text)
