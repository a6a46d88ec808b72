from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.ads.classads import build_ad, evaluate, parse_expression
from matching.ads.expressions import Reference, nested_names, reach, references, split_conjuncts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("TARGET.Memory >= RequestMemory", [("target", "memory"), ("", "requestmemory")]),
        ("MY.x =?= UNDEFINED && true", [("my", "x")]),
        ('regexp("Name", Arch)', [("", "arch")]),
        ("'Odd Name' > 1.5E+03", [("", "odd name")]),
        ("a.b", [("", "a"), ("", "b")]),
        ("x is y", [("", "x"), ("", "y")]),
        ("5e3 > 0x1F", []),
        ('[ Cpus = 8; Tags = { "Name" } ].Cpus', [("", "cpus")]),
        ("x=!=y || x =?= z", [("", "x"), ("", "y"), ("", "x"), ("", "z")]),
        ("[ Fast = !Slow ]", [("", "slow")]),
    ],
)
def test_references_are_the_attributes_that_an_expression_uses(
    text: str, found: list[tuple[str, str]]
) -> None:
    assert references(text) == [Reference(*pair) for pair in found]


def test_the_reach_follows_own_attributes_and_stops_at_the_other_ad() -> None:
    found = reach(["Need && MY.Gone && Other"], {"need": "TARGET.Size > Least", "least": "3"})

    assert found.own == {"need", "least"}
    assert found.foreign == {"size", "other"}


def test_the_reach_of_attributes_that_refer_to_each_other_ends() -> None:
    assert reach(["a"], {"a": "b", "b": "a"}).own == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a && b", ["a", "b"]),
        ("(a && (b)) && c", ["a", "b", "c"]),
        ("a && b || c", ["a && b || c"]),
        ("a && (b || c)", ["a", "b || c"]),
        ("a ? b && c : d", ["a ? b && c : d"]),
        ('x == "a && b" && y', ['x == "a && b"', "y"]),
        ("f(a && b) && c", ["f(a && b)", "c"]),
        ("(a) == (b)", ["(a) == (b)"]),
        ("a /* && x */ && b", ["a", "b"]),
    ],
)
def test_requirements_are_split_where_all_parts_must_hold(text: str, parts: list[str]) -> None:
    assert split_conjuncts(text) == parts


_ATOMS = st.sampled_from(["true", "false", "1", "0", "x", "u", '"s"', "x > 2", "u =?= undefined"])
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" && ", " || ", "&&"]), inner).map("".join),
        inner.map("({})".format),
        inner.map("!({})".format),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]} ? {t[1]} : {t[2]}"),
    ),
    max_leaves=8,
)


@given(_EXPRESSIONS)
def test_an_expression_is_true_exactly_if_all_its_conjuncts_count_as_true(text: str) -> None:
    ad = build_ad({"x": "3"})
    parts = split_conjuncts(text)
    shape = "true && ({})" if len(parts) > 1 else "{}"

    whole = evaluate(parse_expression(text), ad) is True

    assert whole == all(evaluate(parse_expression(shape.format(p)), ad) is True for p in parts)


def test_what_stands_in_comments_is_no_reference_and_hides_none() -> None:
    text = "/* don't */ TARGET.Memory >= Need /* can't */ // x\n && Least"

    assert references(text) == [
        Reference("target", "memory"),
        Reference("", "need"),
        Reference("", "least"),
    ]


def test_names_of_nested_ads_are_those_that_they_define() -> None:
    text = '{ [ Cpus = 8; Name = "a = b" ], [ Memory = 1; Tags = { "x" } ] }'

    assert nested_names(text) == {"cpus", "name", "memory", "tags"}
    assert nested_names("Cpus == 8 && Memory =?= 3") == frozenset()
