from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.dags.language.parsing import (
    arcs_of,
    fault_locations,
    faults,
    read,
    values_of,
    well_read,
)
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import tokenize

CHAIN = ["JOB A a.sub", "JOB B b.sub", "PARENT A CHILD B"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \t\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff", "\n", "   \n# why\n// why\n\t"])
def test_ends_of_lines_and_what_stands_before_them_do_not_matter(begin: str, end: str) -> None:
    dag = well_read(begin + end.join(CHAIN))

    assert arcs_of(dag) == {("A", "B")}
    assert dag.nodes["A"].source == "a.sub"


def test_a_backslash_joins_lines_and_comments_between_them_are_dropped() -> None:
    dag = well_read(
        "JOB A \\\n  a.sub\nJOB \\\r\n# why \\\n B \\ \n// and\n b.sub\nPARENT A \\\nCHILD \\\nB"
    )

    assert arcs_of(dag) == {("A", "B")}
    assert [node.location.line for node in dag.nodes.values()] == [1, 3]


def test_a_blank_stands_between_joined_lines() -> None:
    dag = well_read('JOB A\\\nx.sub\nVARS A x="1\\\n   2" y\\\n= 3')

    assert dag.nodes["A"].source == "x.sub"
    assert values_of(dag, "A") == {"x": "1 2", "y": "3"}


def test_empty_lines_between_joined_lines_are_passed_over() -> None:
    dag = well_read("JOB A \\\n\n \t\r\n# why\n\n  a.sub\nJOB B b.sub")

    assert {name: node.source for name, node in dag.nodes.items()} == {"A": "a.sub", "B": "b.sub"}
    assert dag.nodes["B"].location.line == 7


def test_a_comment_does_not_go_on_in_the_next_line() -> None:
    dag = well_read("# not this \\\nJOB A a.sub")

    assert list(dag.nodes) == ["A"]


def test_a_backslash_at_the_end_of_the_file_joins_nothing() -> None:
    for text in ("JOB A a.sub\\", "JOB A a.sub \\\n"):
        assert list(well_read(text).nodes) == ["A"]


def test_joined_lines_are_counted_and_faults_are_told_at_the_first_of_them() -> None:
    first, second = faults("JOB A \\\n a.sub \\\n NOPE\nWHAT")

    assert (first[1], second[1]) == (1, 4)
    assert "NOPE" in first[2]
    assert "WHAT" in second[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b\tc\r", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        (r'a="b \" \\ c"', [r'a=b " \ c']),
        ("""say="it's" '"' """, ["say=it's", '"']),
        (r"c:\dir x\ ", ["c:\\dir", "x\\"]),
        ('""', [""]),
        ("a\xa0b", ["a\xa0b"]),
        ("", []),
    ],
)
def test_words_are_separated_by_blanks_and_grouped_by_quotes(text: str, words: list[str]) -> None:
    assert tokenize(text) == words


@pytest.mark.parametrize("text", ['"', "a'b", 'x="1', r'x="1\"', "'\""])
def test_an_open_quote_is_a_fault(text: str) -> None:
    with pytest.raises(Fault, match="not closed"):
        tokenize(text)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)))
def test_words_in_quotes_are_read_as_they_are(words: list[str]) -> None:
    escaped = [word.replace("\\", "\\\\").replace('"', '\\"') for word in words]

    assert tokenize(" ".join(f'"{word}"' for word in escaped)) == words


@given(st.text(alphabet="JOBPARENTCHILDVSXLIWKF =\\\"'\n#{}@+$-_ab0\t\r", max_size=200))
def test_any_text_is_read_or_refused_with_lines(text: str) -> None:
    for finding in read(text).findings:
        assert finding.file == "case.dag"
        assert 1 <= (finding.line or 0) <= text.count("\n") + 1
        assert finding.message


@pytest.mark.parametrize("keyword", ["job", "Job", "jOB"])
def test_keywords_have_no_case(keyword: str) -> None:
    assert list(well_read(f"{keyword} a a.sub\n{keyword} A a.sub").nodes) == ["a", "A"]


def test_dashes_and_underscores_are_the_same_in_keywords() -> None:
    dag = well_read(
        "SUBMIT_DESCRIPTION s {\n}\nJOB A s\nPRE-SKIP A 1\nabort_dag_on A 2 return 3\n"
        "Retry A 2 unless_exit 4\nSAVE-POINT-FILE A x\nTOLERANCE A 1 fail_fast"
    )

    node = dag.nodes["A"]
    assert node.pre_skip == 1
    assert node.abort
    assert node.abort.return_code == 3
    assert node.retry
    assert node.retry.unless_exit == 4
    assert node.save_point == "save_files/x"


def test_names_may_be_of_any_script() -> None:
    dag = well_read("JOB Zürich é.sub\nJOB 節点 b.sub\nPARENT Zürich CHILD 節点")

    assert arcs_of(dag) == {("Zürich", "節点")}


def test_blanks_of_other_scripts_separate_nothing() -> None:
    (fault,) = faults("JOB A\xa0B a.sub")

    assert r"A\xa0B" in fault[2]


@pytest.mark.parametrize("blank", ["\xa0", "\u2003", "\x1c"])
def test_names_of_parents_and_children_are_separated_by_blanks_and_tabs_alone(blank: str) -> None:
    chain = "JOB A a.sub\nJOB B b.sub\n"

    parents = f"# {blank}\nPARENT\tA\tCHILD \t B"

    assert fault_locations(f"{chain}PARENT A{blank}CHILD\tB") == [("case.dag", 3)]
    assert arcs_of(well_read(chain + parents))


def test_a_zero_byte_in_a_name_is_refused() -> None:
    assert len(faults("JOB A\0 a.sub")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "JOB A " + "x" * 1_000_000,
        'VARS A x="' + "y" * 1_000_000,
        'VARS A x="' + '\\"' * 500_000 + '"',
        "VARS A " + 'x="1" ' * 150_000,
        "PARENT " + "A " * 300_000 + "CHILD " + "A " * 200_000,
        '"' * 1_000_000,
        "\\\n" * 500_000,
        "RETRY A 1 " + "9" * 1_000_000,
    ],
)
def test_a_line_of_a_million_characters_is_read_soon(line: str) -> None:
    started = time.process_time()

    read("JOB A a.sub\n" + line)

    assert time.process_time() - started < 3


def test_a_long_value_is_kept_whole() -> None:
    value = "v" * 1_000_000

    dag = well_read(f'JOB A a.sub\nVARS A x="{value}"')

    assert values_of(dag, "A") == {"x": value}
