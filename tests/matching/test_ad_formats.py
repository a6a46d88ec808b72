"""Ads in three formats: what they mean, what is refused, and that nothing stalls or crashes."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.ads.ad_cost import check_cost
from matching.ads.ad_formats import parse_ad
from matching.ads.classads import AdError, build_ad, parse_expression, parse_lines, render_lines

SAMPLES = Path(__file__).parents[1] / "samples"

OLD = """\
MyType = "Machine"
Name = "uw-hep"

# the gatekeeper
MatchmakerURL = "ramen.fnal.gov:/jobmanager-condor"
Memory = 2048
Speed = 1.5
Has_CVMFS = True
Requirements = (CurMatches < MaxMatches) && TARGET.WANT_USCMS_MATCHMAKER =?= TRUE
Queues = { "long", [ Name = "short"; Hours = 2 ] }
"""

NEW = """\
// a site
[
  MyType = "Machine"; Name = "uw-hep";
  MatchmakerURL = "ramen.fnal.gov:/jobmanager-condor"; /* the
     gatekeeper */
  Memory = 2048; Speed = 1.5;
  Has_CVMFS = True;
  Requirements = (CurMatches < MaxMatches)
      // of the DAG
      && TARGET.WANT_USCMS_MATCHMAKER =?= TRUE;
  Queues = { "long", [ Name = "short"; Hours = 2; ] };
]
"""

JSON = r"""
{
  "MyType": "Machine", "Name": "uw-hep",
  "MatchmakerURL": "ramen.fnal.gov:\/jobmanager-condor",
  "Memory": 2048, "Speed": 1.5, "Has_CVMFS": true,
  "Requirements":
    "\/Expr((CurMatches < MaxMatches) && TARGET.WANT_USCMS_MATCHMAKER =?= TRUE)\/",
  "Queues": ["long", {"Name": "short", "Hours": 2}]
}
"""


def rendered(text: str) -> list[str]:
    return render_lines(build_ad(parse_ad(text))).splitlines()


def test_the_three_formats_mean_the_same() -> None:
    assert rendered(OLD) == rendered(NEW) == rendered(JSON)
    assert len(rendered(OLD)) == 8


def test_attributes_come_in_their_order_and_on_one_line() -> None:
    ad = parse_ad(NEW)

    assert list(ad) == [
        "MyType", "Name", "MatchmakerURL", "Memory", "Speed", "Has_CVMFS", "Requirements", "Queues",
    ]  # fmt: skip
    assert ad["Requirements"].split(" && ") == [
        "(CurMatches < MaxMatches)  ",
        "TARGET.WANT_USCMS_MATCHMAKER =?= TRUE",
    ]
    assert not [text for text in ad.values() if "\n" in text]


def test_the_ad_of_the_report_is_read() -> None:
    ad = parse_ad((SAMPLES / "uscms_site.ad").read_text())

    assert ad["Name"] == '"uw-hep-USCMS-Site"'
    assert ad["MOP_SITE"] == '"uw-hep"'


def test_an_ad_of_condor_is_the_same_in_all_of_its_formats() -> None:
    text = (SAMPLES / "condor_machine.ad").read_text()
    theirs = classad2.parseOne(text, parser=classad2.ParserType.Old)

    ours = rendered(text)

    assert ours == render_lines(theirs).splitlines()
    assert ours == rendered(str(theirs)) == rendered(theirs.printJson())


def test_a_list_with_one_json_object_is_one_ad() -> None:
    assert parse_ad('[\n{"Name": "x"}\n]\n') == {"Name": '"x"'}
    with pytest.raises(AdError, match="holds 2 ads"):
        parse_ad('[{"Name": "x"}, {"Name": "y"}]')


def test_values_of_json_keep_their_types() -> None:
    ad = parse_ad('{"A": null, "B": false, "C": -1, "D": 1e-7, "E": "a\\"b", "F": [], "G": {}}')

    assert ad == {
        "A": "undefined", "B": "false", "C": "-1", "D": "1e-07", "E": '"a\\"b"', "F": "{  }",
        "G": "[  ]",
    }  # fmt: skip


def test_an_expression_in_json_is_read_with_or_without_its_backslashes() -> None:
    assert parse_ad(r'{"A": "\/Expr(B + 1)\/"}') == {"A": "B + 1"}
    commented, no_expression = '{"A": ["/Expr(B // more\\n + 1)/"]}', "/Expr without parentheses/"
    assert parse_ad(commented) == {"A": "{ B   + 1 }"}
    assert parse_ad(f'{{"A": "{no_expression}"}}') == {"A": f'"{no_expression}"'}


def test_a_backslash_in_the_old_format_means_itself() -> None:
    text = 'A = "C:\\temp"\nB = "say \\"hi\\""\nC = "ends in \\"\nD = regexp("^a\\.b", X)'

    ad = build_ad(parse_ad(text))

    reference = classad2.parseOne(text, parser=classad2.ParserType.Old)
    assert render_lines(ad) == render_lines(reference)
    assert ad.eval("A") == "C:\\temp"
    assert ad.eval("C") == "ends in \\"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "the ad is empty"),
        (" \n", None, "the ad is empty"),
        ("Name = 1\n\nRank = (", 3, "Rank: not a ClassAd expression"),
        ("A = 1\na = 2", 2, "a is given twice, first in line 1"),
        ("<c>\n</c>", 1, "expected `Name = expression`"),
        ("[\nA = 1;\n\na = 2]", 4, "a is given twice, first in line 2"),
        ("[\nA = 1;\n  B = 1 +;]", 3, "B: not a ClassAd expression"),
        ("[ A = 1;\n 'a b' = 2 ]", 2, "expected `Name = expression`"),
        ("[ A = 1 ]\n[ B = 2 ]", 2, "a second ad begins"),
        ("[ A = 1 ]\n B = 2", 2, "there is text behind the end"),
        ("[ A = 1;\n", 2, "the ad ends without ']'"),
        ("[ A = (1;\n ]", 2, "']' closes nothing"),
        ('[ A = 1;\n B = "x', 2, "a quote is not closed"),
        ("[ A = 1;\n /* B", 2, "a comment is not closed"),
        ('{"A": 1,\n "B": }', 2, "not JSON"),
        ('{"A": 1}\n{"B": 1}', 2, "not JSON: Extra data"),
        ('{"A": 1, "a": 2}', None, "a is given twice"),
        ('{"A": {"B": 1, "b": 2}}', None, "b is given twice"),
        ('{"a b": 1}', None, "'a b' is not an attribute name"),
        ('{"\\u00e9": 1}', None, "is not an attribute name"),
        ('{"A": NaN}', None, "NaN is not a value"),
        ('{"A": 1e999}', None, "too large for a real number"),
        ('{"A": 9223372036854775808}', None, "does not fit into 64 bits"),
        ('{"A": ' + "9" * 5000 + "}", None, "does not fit into 64 bits"),
        ('{"A": "\\ud800"}', None, "half of a surrogate pair"),
        ('{"A": "\\u0000"}', None, "a zero byte"),
        ('{"A": "/Expr(1, 2)/"}', None, "A: not a"),
        ('{"A": ["/Expr()/"]}', None, "A: the expression is empty"),
        ("A = 1\n" + "#" * 70_000, None, "larger than 65536 bytes"),
    ],
)
def test_what_is_no_single_ad_is_refused_with_its_place(
    text: str, line: int | None, message: str
) -> None:
    with pytest.raises(AdError) as caught:
        parse_ad(text)

    assert message in caught.value.message
    assert caught.value.line == line


@pytest.mark.parametrize("bracket", ["(", "[a=", "{", "f(", "x["])
@pytest.mark.parametrize("frame", ["A = {}1", "[ A = {}1", '{{"A": "/Expr({}1)/"}}'])
def test_sixty_thousand_brackets_are_refused_at_once(bracket: str, frame: str) -> None:
    count = 60_000 // len(bracket)
    with pytest.raises(AdError, match="100 deep"):
        parse_ad(frame.format(bracket * count))


@pytest.mark.parametrize(
    "text",
    [
        '{"A": ' + "[" * 60_000,
        '{"A":' * 10_000,
        "[" * 60_000,
        "{" * 60_000,
        "]" * 60_000,
        '"' * 60_000,
        "[ A = " + "/*" * 30_000,
        "[ " + "A = 1 " * 10_000,
        "A = x" + ".a" * 30_000,
        "A = '\"'" + ".a" * 30_000,
        'A = x /* " */' + ".a" * 30_000,
        "A = " + "!" * 60_000 + "x",
        "A = " + "- " * 30_000 + "1",
        "A = " + "a ? 1 : " * 8_000 + "1",
    ],
)
def test_hostile_text_is_refused_quickly(text: str) -> None:
    with pytest.raises(AdError):
        parse_ad(text)


def test_brackets_in_strings_and_comments_do_not_count() -> None:
    text = "((" * 500

    assert parse_ad(f'[ A = "{text}"; /* {text} */ B = 1 ]') == {"A": f'"{text}"', "B": "1"}
    parse_expression(f'x == "{text}"')


def test_many_attributes_that_select_from_each_other_are_refused_together() -> None:
    # One after the other they would be evaluated by recursion, deeper than the stack is.
    ad = {f"A{n}": f"A{n + 1}{'.a' * 1900}" for n in range(16)} | {"A16": "[a = 1]"}

    with pytest.raises(AdError, match="more than 2000 selections"):
        check_cost(ad)


def test_a_row_of_attributes_that_is_too_long_is_refused() -> None:
    with pytest.raises(AdError, match="100 attributes"):
        check_cost({f"A{n}": f"A{n + 1}" for n in range(3000)})


def test_many_attributes_are_read() -> None:
    assert len(parse_ad("\n".join(f"A{n} = {n}" for n in range(5000)))) == 5000
    assert len(parse_ad("[" + ";".join(f"A{n} = {n}" for n in range(5000)) + "]")) == 5000


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
)
# `is` is an operator in ClassAds, in any case: what has it for a name cannot be written.
_NAMES = st.from_regex(r"\A[A-Z][a-z]{1,4}\Z").filter(lambda name: name not in ("Is", "Isnt"))
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if hasattr(value, "keys"):
        return {name: _plain(value[name]) for name in value.keys()}  # noqa: SIM118
    if isinstance(value, classad2.ExprTree):
        return _plain(value.eval())
    return None if isinstance(value, classad2.Value) else value


@pytest.mark.slow
@given(st.dictionaries(_NAMES, _SCALARS, max_size=4))
def test_any_json_value_keeps_its_meaning(values: dict[str, Any]) -> None:
    ad = build_ad(parse_ad(json.dumps(values)))

    assert set(ad.keys()) == set(values)
    for name, value in values.items():
        found = _plain(ad.eval(name))
        if isinstance(value, float):
            assert math.isclose(found, value, rel_tol=1e-14)
        else:
            assert found == value
            assert type(found) is type(value)


@pytest.mark.slow
@given(st.dictionaries(_NAMES, _VALUES, max_size=4))
def test_what_was_read_can_be_stored_line_by_line(values: dict[str, Any]) -> None:
    ad = parse_ad(json.dumps(values))

    lines = "\n".join(f"{name} = {text}" for name, text in ad.items())
    assert parse_lines(lines) == ad
    assert parse_lines(render_lines(build_ad(ad))).keys() == ad.keys()


@given(st.text(alphabet="[]{}()\"'\\/*;=:,.aA1 \n!&|?", max_size=60))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    with contextlib.suppress(AdError):
        for name, expression in parse_ad(text).items():
            assert name
            assert parse_expression(expression) is not None
