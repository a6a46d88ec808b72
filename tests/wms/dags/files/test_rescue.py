from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.dags.files.samples import sample
from wms.dags.rescue.text import GrowthLine, Header, NodeProgress, parse_rescue, write_rescue

CREATED = datetime(2026, 11, 20, 13, 38, 43, tzinfo=UTC)
HEADER = Header("sample.dag", CREATED)


def done(*names: str) -> list[NodeProgress]:
    return [NodeProgress(name, is_done=True) for name in names]


def failed(*names: str, **more: int) -> list[NodeProgress]:
    return [NodeProgress(name, is_failed=True, **more) for name in names]


def test_it_writes_a_rescue_file_as_dagman_did() -> None:
    nodes = [
        *done("Setup", "Multi", "Skip", "Held"),
        NodeProgress("Retry", is_failed=True, max_retries=2, retry_number=2),
        *failed("Bad"),
        *done("Rescued"),
        *failed("Killed"),
        NodeProgress("After"),
        *done("Done1"),
    ]

    text = write_rescue(HEADER, nodes)

    # DAGMan of that version wrote RETRY lines also where retries begin anew, as later ones do not.
    expected = sample("all_outcomes/sample.dag.rescue001").replace("RETRY Retry 2\n", "")
    assert text == expected


def test_it_writes_of_a_removed_dag_that_nothing_failed() -> None:
    header = Header("removed.dag", datetime(2026, 11, 20, 13, 54, 14, tzinfo=UTC))

    text = write_rescue(header, [*done("A"), NodeProgress("B"), NodeProgress("C")])

    assert text == sample("recovery_and_removed/removed.dag.rescue001")


def test_it_writes_a_save_point_as_dagman_did() -> None:
    header = Header("features.dag", datetime(2026, 11, 20, 13, 51, 44, tzinfo=UTC), "Inline")
    waiting = ["Skipped", "Inline", "Sub", "Aborter", "Late", "S1+X", "S1+Y"]
    nodes = done("First") + [NodeProgress(name) for name in waiting]

    text = write_rescue(header, [*nodes, NodeProgress("Cleanup", is_final=True)])

    assert text == sample("features/save_files/features.save")


def test_the_final_node_is_never_written_as_done() -> None:
    text = write_rescue(HEADER, [NodeProgress("Clean", is_done=True, is_final=True)])

    assert "DONE Clean" not in text
    assert "# Nodes premarked DONE: 0\n" in text


def test_retries_are_told_only_when_they_do_not_begin_anew() -> None:
    nodes = [
        NodeProgress("A", is_failed=True, max_retries=5, retry_number=3, unless_exit=7),
        NodeProgress("B", max_retries=2),
        NodeProgress("C", is_done=True, max_retries=2, retry_number=1),
    ]

    with_lines = write_rescue(HEADER, nodes, resets_retries=False)
    without = write_rescue(HEADER, nodes)

    retries = [line.split()[1:] for line in with_lines.splitlines() if line.startswith("RETRY")]
    assert retries == [["A", "2", "UNLESS-EXIT", "7"], ["B", "2"]]
    assert "RETRY" not in without


def test_a_failed_node_of_which_only_the_end_is_needed_is_written_as_done() -> None:
    nodes = [
        NodeProgress("Weak", is_failed=True, has_only_weak_children=True),
        NodeProgress("Strong", is_failed=True),
    ]

    text = write_rescue(HEADER, nodes)

    assert "\nDONE Weak\n" in text
    assert "DONE Strong" not in text
    assert "#   Weak,Strong,<ENDLIST>\n" in text
    assert "# Nodes premarked DONE: 1\n" in text


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("all_outcomes/sample.dag.rescue001", "Setup Multi Skip Held Rescued Done1"),
        ("features/features.dag.rescue001", "First Skipped Inline Sub S1+X S1+Y"),
        ("features/save_files/features.save", "First"),
        ("recovery_and_removed/removed.dag.rescue001", "A"),
    ],
)
def test_it_reads_the_rescue_files_of_dagman(path: str, names: str) -> None:
    read, findings = parse_rescue(sample(path), file=path)

    assert findings == []
    assert read.done == names.split()


def test_it_reads_retries_with_and_without_an_exit_code() -> None:
    text = "RETRY A 2\nretry B 0 unless_exit 7\r\n\n// a comment\nRETRY A 1\nDone A\nDONE A"

    read, findings = parse_rescue(text, file="my.rescue")

    assert findings == []
    assert read.retries == {"A": (1, None), "B": (0, 7)}
    assert read.done == ["A"]
    assert read.lines == {"A": 1, "B": 2}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("JOB A a.sub", "only DONE, RETRY, OUTCOME and GROW lines, not JOB"),
        ("DONE", "DONE takes one node name, not 0 words"),
        ("DONE A B", "DONE takes one node name, not 2 words"),
        ("OUTCOME A", "OUTCOME takes"),
        ("OUTCOME A [1]", "OUTCOME takes"),
        ('OUTCOME A {"x": [1]}', "OUTCOME takes"),
        ('OUTCOME A {"x": NaN}', "OUTCOME takes"),
        ('OUTCOME A {"x": "\\u0000"}', "OUTCOME takes"),
        ("OUTCOME A " + "[" * 9999, "OUTCOME takes"),
        ("RETRY A", "RETRY takes a node name, a number"),
        ("RETRY A x", "not a number from 0: x"),
        ("RETRY A -1", "not a number from 0: -1"),
        ("RETRY A 99999999999", "not a number from 0: 99999999999"),
        ("RETRY A 1 UNLESS-EXIT", "RETRY takes a node name, a number"),
        ("RETRY A 1 UNLESS-EXIT y", "the code of UNLESS-EXIT is not a number: y"),
    ],
)
def test_a_faulty_line_is_told_with_file_and_line(line: str, message: str) -> None:
    _, findings = parse_rescue(f"# made by hand\nDONE Z\n{line}\n", file="my.rescue")

    [finding] = findings
    assert message in finding.message
    assert (finding.file, finding.line) == ("my.rescue", 3)


def test_at_most_two_hundred_faults_are_told() -> None:
    _, findings = parse_rescue("JOB A a.sub\n" * 1000, file="my.rescue")

    assert len(findings) == 200


NAMES = st.text(st.characters(categories=("L", "N"), include_characters="_-.+"), min_size=1)
OUTCOMES = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True),
    st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
)
NODES = st.lists(
    st.builds(
        NodeProgress,
        name=NAMES,
        is_done=st.booleans(),
        is_failed=st.booleans(),
        has_only_weak_children=st.just(False),
        is_final=st.just(False),
        max_retries=st.integers(0, 9),
        retry_number=st.integers(0, 9),
        unless_exit=st.none() | st.integers(-1004, 255),
        outcome=st.just("") | OUTCOMES.map(json.dumps),
    ),
    unique_by=lambda node: node.name,
)


@pytest.mark.slow
@given(NODES)
def test_what_is_written_is_read_again(nodes: list[NodeProgress]) -> None:
    read, findings = parse_rescue(write_rescue(HEADER, nodes, resets_retries=False), file="r")

    assert findings == []
    assert read.done == [node.name for node in nodes if node.is_done]
    assert read.retries == {
        node.name: (max(node.max_retries - node.retry_number, 0), node.unless_exit)
        for node in nodes
        if node.max_retries and not node.is_done and not (node.is_failed and node.outcome)
    }
    assert read.outcomes == {
        node.name: json.loads(node.outcome)
        for node in nodes
        if node.outcome and (node.is_done or node.is_failed)
    }


@given(st.text())
def test_whatever_is_read_is_told_of_and_never_raises(text: str) -> None:
    parse_rescue(text, file="any")


@pytest.mark.slow
def test_two_hundred_thousand_nodes_are_written_and_read_in_a_second() -> None:
    nodes = [NodeProgress(f"node_{n}", is_done=n % 3 > 0, max_retries=2) for n in range(200_000)]

    began = time.process_time()
    read, _ = parse_rescue(write_rescue(HEADER, nodes, resets_retries=False), file="big")

    assert len(read.done) == 133_333
    assert time.process_time() - began < 2


GROWTH = [
    GrowthLine("pass", "A"),
    GrowthLine("fragment", "A#2", "d/x y.dag.grown001"),
    GrowthLine("hand", file="f.dag.grown002", after=("A", 'q"ä'), before=("B",)),
    GrowthLine("hand", file="g.dag.grown001"),
]


def test_what_a_dag_grew_by_is_read_as_it_was_written() -> None:
    text = write_rescue(HEADER, done("A"), growth=GROWTH)
    read, findings = parse_rescue(text, file="x")

    assert findings == []
    assert [each._replace(number=0) for each in read.growth] == GROWTH
    assert read.done == ["A"]


@pytest.mark.parametrize(
    "line",
    [
        "GROW",
        "GROW A",
        "GROW []",
        'GROW {"kind": "pass"}',
        'GROW {"kind": "pass", "node": 5}',
        'GROW {"kind": "pass", "node": "A", "file": "x"}',
        'GROW {"kind": ["pass"], "node": "A"}',
        'GROW {"kind": "other", "node": "A"}',
        'GROW {"kind": "fragment", "node": "A", "after": ["B"], "file": "x"}',
        'GROW {"kind": "hand", "file": "x", "after": "B"}',
        'GROW {"kind": "hand", "file": "x", "after": [["B"]]}',
        'GROW {"kind": "hand", "after": []}',
        "GROW " + "[" * 100_000,
        f'GROW {{"kind": "hand", "file": "{"x" * 600_000}"}}',
    ],
)
def test_a_hostile_line_of_growth_is_a_fault_of_its_line(line: str) -> None:
    read, findings = parse_rescue(f"DONE A\n{line}\n", file="x")

    assert read.growth == []
    assert [(each.file, each.line) for each in findings] == [("x", 2)]
