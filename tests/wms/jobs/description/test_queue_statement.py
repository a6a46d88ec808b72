"""`queue` statements of submit descriptions: the jobs that they make."""

from __future__ import annotations

from collections.abc import Sequence

import htcondor2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from matching.descriptions.macros import Budget, MacroError
from wms.jobs.description.queue_statement import MAX_JOBS, BadQueue
from wms.jobs.description.submit_file import SubmitFile, from_dict, parse_submit_file


class Folder:
    """Files by name, as a workspace has them."""

    def __init__(self, **files: str) -> None:
        self._files = {
            name.replace("__", "/").replace("_", "."): text for name, text in files.items()
        }

    def text(self, path: str) -> str | None:
        return self._files.get(path)

    def names(self) -> Sequence[str]:
        return sorted(self._files)


FILES = Folder(list_txt="a b\n# no\n\n  c, d  \n", x1_dat="", x2_dat="", sub__x3_dat="")


class Crowd:
    """Many files, which are named once for each time that they are asked for."""

    def __init__(self, count: int) -> None:
        self._names = [f"f{number}" for number in range(count)]
        self.asked = 0

    def text(self, path: str) -> str | None:
        return None

    def names(self) -> Sequence[str]:
        self.asked += 1
        return self._names


def parsed(text: str) -> SubmitFile:
    submit_file = parse_submit_file(f"executable = a\n{text}", file="a.sub")
    assert submit_file.findings == []
    return submit_file


def items(text: str) -> list[dict[str, str]]:
    """The variables' values of all jobs of one queue statement, without Item."""
    (queue,) = from_dict(parsed(text).as_dict()).queues or [None]
    if queue is None:
        return [{}]
    rows = queue.rows(lambda value: value.replace("$(N)", "3"), FILES, Budget())
    keep = [name.lower() for name in queue.variables] or (["item"] if queue.kind else [])
    return [{name: values[name] for name in keep} for _, _, values in rows]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("queue", [{}]),
        ("Queue 3 ", [{}] * 3),
        ("queue 0", []),
        ("queue $(N)", [{}] * 3),
        ("queue 2*2", [{}] * 4),
        ("queue in (a, b)", [{"item": "a"}, {"item": "b"}]),
        ("queue 2 x in a b", [{"x": "a"}, {"x": "a"}, {"x": "b"}, {"x": "b"}]),
        ("queue x,y in (a)", [{"x": "a", "y": ""}]),
        ("queue x in (\n # no\n a\n b, c\n )", [{"x": "a"}, {"x": "b"}, {"x": "c"}]),
        ("queue X,y FROM (\n a, b\n\n c d e\n)", [{"x": "a", "y": "b"}, {"x": "c", "y": "d e"}]),
        ("queue x from ( a b )", [{"x": "a b"}]),
        ("queue x from (a\n b\\\n c\n)", [{"x": "a"}, {"x": "bc"}]),
        ("queue x,y from list.txt", [{"x": "a", "y": "b"}, {"x": "c", "y": "d"}]),
        ("queue x from [1:] list.txt", [{"x": "c, d"}]),
        ("queue x in [::2] (a b c)", [{"x": "a"}, {"x": "c"}]),
        ("queue x in [-1] (a b c)", [{"x": "c"}]),
        ("queue matching files *.dat", [{"item": "x1.dat"}, {"item": "x2.dat"}]),
        ("queue f matching (sub/* x2*)", [{"f": "sub/x3.dat"}, {"f": "x2.dat"}]),
    ],
)
def test_a_queue_statement_makes_a_job_of_every_item(
    text: str, found: list[dict[str, str]]
) -> None:
    assert items(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queue x", "not a queue statement: queue x"),
        ("queue -1", "not a queue statement"),
        ("queue 1,2", "not a queue statement"),
        ("queue 3 # three", "not a queue statement"),
        ("queue x;y in (a)", "x;y is not the name of a variable"),
        ("queue x in", "nothing follows in"),
        ("queue x in (a\nb", "is not closed"),
        ("queue x from seq 3 |", "cannot come from a program"),
        ("queue matching dirs *", "there are no directories to match"),
        (f"queue {MAX_JOBS + 1}", "a node has at most 10000 jobs"),
        ("queue 1000*1000*1000", "a node has at most 10000 jobs"),
        ("queue x from (\n" + "a\n" * (MAX_JOBS + 1) + ")", "more than 10000 items"),
    ],
)
def test_a_queue_statement_that_cannot_be_carried_out_is_told_with_its_line(
    text: str, message: str
) -> None:
    submit_file = parse_submit_file(f"executable = a\n{text}", file="a.sub")

    (finding,) = submit_file.findings
    assert message in finding.message
    assert finding.line == 2


@pytest.mark.parametrize("text", ["queue x from gone.txt", "queue x in [::0] (a)", "queue $(X)"])
def test_what_is_known_only_when_the_jobs_are_made_is_told_then(text: str) -> None:
    with pytest.raises(BadQueue):
        items(text)


_fields = st.text(alphabet="ab ,\t", max_size=8)


@given(
    st.lists(_fields, max_size=4),
    st.sampled_from([["x"], ["x", "y"], ["x", "y", "z"]]),
    st.sampled_from(["in", "from"]),
)
def test_items_are_cut_as_htcondor_cuts_them(lines: list[str], names: list[str], kind: str) -> None:
    # The library does not understand empty lines in a list.
    assume(all(line.strip() for line in lines))
    text = f"queue {','.join(names)} {kind} (\n" + "".join(f"{line}\n" for line in lines) + ")\n"

    expected = list(htcondor2.Submit(f"executable = a\n{text}").itemdata() or [])

    assert items(text) == expected


def test_what_stands_between_queue_statements_counts_for_the_later_ones() -> None:
    submit_file = parsed("a = 1\nqueue\na = $(a)2\n+B = 2\nqueue 2\nignored = 1\n")

    again = from_dict(submit_file.as_dict())

    assert again.commands == {"executable": "a", "a": "1"}
    assert [queue.commands for queue in again.queues] == [{}, {"a": "12"}]
    assert again.queues[1].attributes == {"B": "2"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("if defined x", "if cannot be used here"),
        ("include : other.sub", "include cannot be used here"),
        ("a @=END\nx", "the text of a is not closed by @END"),
    ],
)
def test_what_the_language_has_and_we_do_not_is_told_with_its_line(line: str, message: str) -> None:
    (finding,) = parse_submit_file(f"executable = a\n{line}", file="a.sub").findings

    assert message in finding.message
    assert finding.line == 2


def test_a_text_of_several_lines_is_one_value() -> None:
    submit_file = parsed("note @=END\nfirst\n  second\n@END\nqueue")

    assert submit_file.commands["note"] == "first\nsecond"


def test_the_names_are_read_once_for_all_patterns() -> None:
    crowd = Crowd(10)
    (queue,) = parsed("queue matching f1 f? x*").queues

    assert len(list(queue.rows(str, crowd, Budget()))) == 10
    assert crowd.asked == 1


def test_patterns_are_bounded_and_so_are_the_names_that_they_are_compared_with() -> None:
    (many,) = parsed("queue matching " + "f1 " * 101).queues
    with pytest.raises(BadQueue, match="at most 100 patterns"):
        list(many.rows(str, Crowd(1), Budget()))
    (long,) = parsed("queue matching " + "*a" * 1_000).queues
    with pytest.raises(BadQueue, match="1024 characters"):
        list(long.rows(str, Crowd(1), Budget()))

    (dear,) = parsed("queue matching " + "x* " * 100).queues
    assert list(dear.rows(str, Crowd(100), Budget(10_000))) == []
    with pytest.raises(MacroError, match="steps"):
        list(dear.rows(str, Crowd(101), Budget(10_000)))


def test_patterns_and_names_that_are_long_take_more_steps() -> None:
    class LongNames(Crowd):
        def names(self) -> list[str]:
            return ["a" * 1000] * 100

    (queue,) = parsed("queue matching " + "*a" * 500 + "b").queues

    assert list(queue.rows(str, LongNames(1), Budget(1000 * 100 * 1001 // 4096))) == []
    with pytest.raises(MacroError, match="steps"):
        list(queue.rows(str, LongNames(1), Budget(1000 * 100 * 1001 // 4096 - 1)))


def test_a_queue_statement_has_not_any_number_of_variables() -> None:
    names = ",".join(f"x{n}" for n in range(1_001))

    (finding,) = parse_submit_file(f"queue {names} in (a)", file="a.sub").findings

    assert "1000 variables" in finding.message
