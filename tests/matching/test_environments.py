from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.descriptions.environments import (
    BadEnvironment,
    parse_arguments,
    parse_environment,
    parse_lines,
    parse_semicolons,
    render_semicolons,
    split_quoted,
)


def test_lines_are_read_with_the_place_of_a_fault() -> None:
    text = "# area\nA=/x\n\nB = 2=3 "

    assert parse_lines(text) == {"A": "/x", "B": "2=3"}
    with pytest.raises(BadEnvironment) as caught:
        parse_lines("A=1\nB")
    assert caught.value.line == 2
    with pytest.raises(BadEnvironment, match="semicolon"):
        parse_lines("A=1;B=2")


def test_both_forms_of_a_submit_description_are_read() -> None:
    assert parse_environment("A=1;B=two words;") == {"A": "1", "B": "two words"}
    quoted = "\"A=1 B='two words' C=it''''s D=\"\"x\"\"\""
    assert parse_environment(quoted) == {
        "A": "1",
        "B": "two words",
        "C": "it's",
        "D": '"x"',
    }


# What HTCondor's `condor_submit -dry-run` makes of the same texts.
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("a 'b c' d", ["a", "'b", "c'", "d"]),
        ('a \\"b \\\\"c \\d', ["a", '"b', '\\"c', "\\d"]),
        ("\"a 'b c' 'it''s' ''\"", ["a", "b c", "it's", ""]),
        ("\"it''s\"", ["its"]),
        ('"a ""b"" c"', ["a", '"b"', "c"]),
        ('"""a"""', ['"a"']),
        ("\"one \"\"two\"\" 'spacey ''quoted'' arg'\"", ["one", '"two"', "spacey 'quoted' arg"]),
        ('""', []),
        ('""""', ['"']),
        ('  "a b"  ', ["a", "b"]),
    ],
)
def test_both_forms_of_arguments_are_read(text: str, arguments: list[str]) -> None:
    assert parse_arguments(text) == arguments


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a \'b"', "a single quote is not closed"),
        ('"a', "a double quote is not closed"),
        ('"""', "a double quote is not closed"),
        ('"a"b"', 'behind the closing double quote stands more (inside, "" is one): b"'),
        ('"a" # comment', "stands more"),
        (r'"a \"b\" c"', "stands more"),
        ('a "b c"', 'write \\" for a double quote, or all in double quotes: "b c"'),
        ('a"', "write"),
    ],
)
def test_arguments_that_htcondor_refuses_are_refused(text: str, message: str) -> None:
    with pytest.raises(BadEnvironment) as error:
        parse_arguments(text)

    assert message in str(error.value)


def test_blanks_in_quotes_stay_in_a_value() -> None:
    quoted = "\"A=' x ' B='a'b'c' C= D=b=c\""

    assert parse_environment(quoted) == {
        "A": " x ", "B": "abc", "C": "", "D": "b=c",
    }  # fmt: skip
    assert parse_environment('A="x";B = 1') == {"A": '"x"', "B": "1"}
    for text in ('"A=1', '"A = 1"', '"A=1" x', "A"):
        with pytest.raises(BadEnvironment):
            parse_environment(text)


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
        st.text(alphabet="ab/=.: ", max_size=8).map(str.strip),
        max_size=5,
    )
)
def test_a_rendered_environment_reads_as_the_same(environment: dict[str, str]) -> None:
    assert parse_semicolons(render_semicolons(environment)) == environment


def test_a_quote_that_is_not_closed_is_found_in_one_reading() -> None:
    with pytest.raises(BadEnvironment, match="not closed"):
        parse_arguments('"' + 'a""' * 300_000)


def test_a_long_word_is_read_whole() -> None:
    word = "\u00e9" * 1_000_000

    assert split_quoted(f"'' {word} a''b") == ["", word, "ab"]
