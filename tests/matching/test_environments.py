from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.environments import (
    BadEnvironment,
    parse_arguments,
    parse_environment,
    parse_lines,
    parse_semicolons,
    render_semicolons,
    split_quoted,
)


def test_lines_are_read_with_the_place_of_a_fault() -> None:
    assert parse_lines("# area\nA=/x\n\nB = 2=3 ") == {"A": "/x", "B": "2=3"}
    with pytest.raises(BadEnvironment) as caught:
        parse_lines("A=1\nB")
    assert caught.value.line == 2
    with pytest.raises(BadEnvironment, match="semicolon"):
        parse_lines("A=1;B=2")


def test_both_forms_of_a_submit_description_are_read() -> None:
    assert parse_environment("A=1;B=two words;") == {"A": "1", "B": "two words"}
    assert parse_environment("\"A=1 B='two words' C=it''''s D=\"\"x\"\"\"") == {
        "A": "1",
        "B": "two words",
        "C": "it's",
        "D": '"x"',
    }


def test_both_forms_of_arguments_are_read() -> None:
    assert parse_arguments("a  b\tc") == ["a", "b", "c"]
    assert parse_arguments("\"a 'b c' 'it''s' ''\"") == ["a", "b c", "it's", ""]
    with pytest.raises(BadEnvironment, match="not closed"):
        parse_arguments('"a \'b"')


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
        st.text(alphabet="ab/=.: ", max_size=8).map(str.strip),
        max_size=5,
    )
)
def test_a_rendered_environment_reads_as_the_same(environment: dict[str, str]) -> None:
    assert parse_semicolons(render_semicolons(environment)) == environment


def test_a_long_word_is_read_whole() -> None:
    word = "\u00e9" * 1_000_000

    assert split_quoted(f"'' {word} a''b") == ["", word, "ab"]
