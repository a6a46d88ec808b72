from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.dags.language.parsing import (
    arcs_of,
    fault_locations,
    faults,
    read,
    values_of,
    warnings,
    well_read,
)
from wms.dags.language.origin import Origin
from wms.dags.language.parser import parse_dag
from wms.dags.states import ScriptKind

TWO = "JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B\n"
PINNED = "JOB A a\nJOB B b\nPIN_IN A 1\nPIN_OUT B 1\nPIN_IN B 2\nPIN_OUT A 2\n"


def test_nodes_of_splices_have_their_scopes_in_their_names() -> None:
    files = {"in.dag": f"{TWO}SPLICE T deep.dag\nPARENT B CHILD T", "deep.dag": TWO}

    dag = well_read("JOB X x\nSPLICE S in.dag\nJOB Y y\nPARENT X CHILD S\nPARENT S CHILD Y", files)

    assert list(dag.nodes) == ["X", "S+A", "S+B", "S+T+A", "S+T+B", "Y"]
    assert arcs_of(dag) == {
        ("X", "S+A"),
        ("S+A", "S+B"),
        ("S+B", "S+T+A"),
        ("S+T+A", "S+T+B"),
        ("S+T+B", "Y"),
    }


@dataclass
class File:
    """A DAG file for the model: nodes (None) and splices, and arcs from earlier to later ones."""

    items: list[File | None]
    arcs: list[tuple[int, int]] = field(default_factory=list)


@st.composite
def dag_files(draw: st.DrawFn, depth: int = 0) -> File:
    inner = st.none() if depth == 3 else st.none() | dag_files(depth + 1)
    items = draw(st.lists(inner, min_size=1, max_size=4))
    places = st.integers(0, len(items) - 1)
    pairs = draw(st.lists(st.tuples(places, places), max_size=5))
    return File(items, [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]])


def written(file: File, files: dict[str, str]) -> str:
    """The text of a file; those of its splices are put into `files`."""
    lines = [f"PARENT I{a} CHILD I{b}" for a, b in file.arcs]
    for at, item in enumerate(file.items):
        if item is None:
            lines.append(f"JOB I{at} s")
        else:
            text = written(item, files)
            name = f"{len(files)}.dag"
            files[name] = text
            lines.append(f"SPLICE I{at} {name}")
    return "\n".join(lines)


def flattened(file: File, prefix: str = "") -> tuple[list[str], set[tuple[str, str]]]:
    """Nodes in order, and arcs: what the file means, without any cleverness."""
    nodes: list[str] = []
    arcs: set[tuple[str, str]] = set()
    ends: list[tuple[list[str], list[str]]] = []
    for at, item in enumerate(file.items):
        name = f"{prefix}I{at}"
        inner, inner_arcs = ([name], set()) if item is None else flattened(item, f"{name}+")
        nodes += inner
        arcs |= inner_arcs
        initial = [node for node in inner if node not in {child for _, child in inner_arcs}]
        terminal = [node for node in inner if node not in {parent for parent, _ in inner_arcs}]
        ends.append((initial, terminal))
    for above, below in file.arcs:
        arcs |= {(parent, child) for parent in ends[above][1] for child in ends[below][0]}
    return nodes, arcs


@pytest.mark.slow
@given(dag_files())
def test_splices_are_flattened_as_by_hand(file: File) -> None:
    files: dict[str, str] = {}
    dag = well_read(written(file, files), files)

    assert (list(dag.nodes), arcs_of(dag)) == flattened(file)


def test_commands_in_a_splice_act_on_its_own_nodes() -> None:
    files = {
        "in.dag": TWO + 'VARS A x="$(JOB)"\nRETRY A 2\nSCRIPT PRE A p.sh $JOB\nPRIORITY B 3\n'
        "SAVE_POINT_FILE B\nPRE_SKIP A 1\nDONE B"
    }

    nodes = well_read("JOB A a\nSPLICE S in.dag", files).nodes

    assert nodes["A"].retry is None
    assert nodes["S+A"].retry
    assert nodes["S+A"].retry.count == 2
    assert nodes["S+A"].scripts
    assert nodes["S+A"].scripts[ScriptKind.PRE].executable == "p.sh"
    assert nodes["S+A"].pre_skip == 1
    assert (nodes["S+B"].priority, nodes["S+B"].is_done) == (3, True)
    assert nodes["S+B"].save_point == "save_files/S+B-case.dag.save"


def test_all_nodes_of_a_file_are_those_of_the_file_and_no_others() -> None:
    files = {"in.dag": "JOB A a\nSPLICE T deep.dag\nRETRY ALL_NODES 1", "deep.dag": "JOB A a"}

    dag = well_read('JOB A a\nSPLICE S in.dag\nVARS ALL_NODES x="1"', files)

    assert [name for name, node in dag.nodes.items() if node.retry] == ["S+A"]
    assert [name for name, node in dag.nodes.items() if node.variables] == ["A"]


def test_a_splice_may_have_a_directory_of_its_own() -> None:
    files = {
        "d/in.dag": "JOB A a.sub\nJOB B b.sub DIR e\nSPLICE T deep.dag DIR f\n"
        "SUBDAG EXTERNAL G g.dag\nSCRIPT DEBUG log ALL PRE A x",
        "d/f/deep.dag": "JOB A a.sub",
    }

    nodes = well_read("SPLICE S in.dag DIR d", files).nodes

    assert {name: (node.directory, node.source) for name, node in nodes.items()} == {
        "S+A": ("d", "d/a.sub"),
        "S+B": ("d/e", "d/e/b.sub"),
        "S+T+A": ("d/f", "d/f/a.sub"),
        "S+G": ("d", "d/g.dag"),
    }
    assert nodes["S+A"].scripts
    assert nodes["S+A"].scripts[ScriptKind.PRE].debug_file == "d/log"


def test_a_file_above_is_reached_only_inside_of_the_workspace() -> None:
    files = {"d/in.dag": "JOB A ../a.sub\nJOB B ../../b.sub"}

    dag = read("SPLICE S in.dag DIR d", files)

    assert dag.nodes["S+A"].source == "a.sub"
    assert [(each.file, each.line) for each in dag.findings] == [("d/in.dag", 2)]


def test_a_name_is_a_splice_or_a_node() -> None:
    files = {"in.dag": "JOB A a"}

    text = "SPLICE S in.dag\nJOB S s\nSPLICE S in.dag"

    assert fault_locations(text, files) == [("case.dag", 2), ("case.dag", 3)]


def test_special_nodes_and_rejects_in_splices_are_told_there() -> None:
    files = {"in.dag": "FINAL F {\n x\n}\nPROVISIONER P p\nREJECT\nSERVICE S s"}

    assert [(file, line) for file, line, _ in faults("SPLICE S in.dag", files)] == [
        ("in.dag", 1),
        ("in.dag", 4),
        ("in.dag", 5),
    ]


def test_a_service_in_a_splice_stands_beside_its_nodes() -> None:
    files = {"in.dag": "JOB A a\nSERVICE H h"}

    dag = well_read("JOB X x\nSPLICE S in.dag\nPARENT X CHILD S", files)

    assert arcs_of(dag) == {("X", "S+A")}


def test_settings_of_the_run_have_no_effect_in_splices() -> None:
    lines = "CONFIG c\nSET_JOB_ATTR a = 1\nENV SET a=b\nDOT d\nJOBSTATE_LOG j\nNODE_STATUS_FILE n"

    dag = well_read("SPLICE S in.dag", {"in.dag": lines})

    assert (dag.options, dag.attributes, dag.environment) == ({}, {}, {})
    assert (dag.dot_file, dag.jobstate_log, dag.status_file) == ("", "", "")
    assert [warning.line for warning in dag.warnings] == [1, 2, 3, 4, 5, 6]


def test_categories_of_splices_are_their_own_and_those_with_a_plus_are_everybodys() -> None:
    files = {
        "in.dag": "JOB A a\nJOB B b\nCATEGORY A c\nCATEGORY B +g\nMAXJOBS c 2\nMAXJOBS +g 5",
    }

    dag = well_read("MAXJOBS +g 3\nSPLICE S in.dag\nJOB X x\nCATEGORY X c\nMAXJOBS c 1", files)

    assert [node.category for node in dag.nodes.values()] == ["S+c", "+g", "c"]
    assert dag.categories == {"S+c": 2, "+g": 3, "c": 1}


def test_the_outer_limit_counts_even_when_the_splice_is_read_later() -> None:
    files = {"more.dag": "SPLICE S in.dag", "in.dag": "MAXJOBS +g 5\nMAXJOBS +h 7"}

    dag = well_read("MAXJOBS +g 3\nINCLUDE more.dag", files)

    assert dag.categories == {"+g": 3, "+h": 7}


def test_an_included_file_is_read_as_if_it_stood_there() -> None:
    files = {"more.dag": "PARENT A CHILD B\nJOB B b.sub\nRETRY A 1\nSPLICE S in.dag", "in.dag": TWO}

    dag = well_read("JOB A a.sub\nINCLUDE more.dag\nRETRY B 2\nPARENT B CHILD S", files)

    assert list(dag.nodes) == ["A", "B", "S+A", "S+B"]
    assert arcs_of(dag) == {("A", "B"), ("B", "S+A"), ("S+A", "S+B")}
    assert [node.retry and node.retry.count for node in dag.nodes.values()][:2] == [1, 2]
    assert dag.nodes["B"].location == ("more.dag", 2)


def test_lines_about_included_nodes_follow_the_include() -> None:
    files = {"more.dag": "JOB B b.sub"}

    text = "RETRY B 1\nINCLUDE more.dag\nRETRY B 2"

    assert fault_locations(text, files) == [("case.dag", 1)]


def test_all_nodes_are_those_that_were_read_so_far() -> None:
    files = {"more.dag": "JOB B b.sub\nPRIORITY ALL_NODES 2"}

    dag = well_read("JOB A a\nRETRY ALL_NODES 1\nINCLUDE more.dag\nRETRY ALL_NODES 3", files)

    assert [node.retry and node.retry.count for node in dag.nodes.values()] == [3, 3]
    assert [node.priority for node in dag.nodes.values()] == [2, 2]
    dag = well_read("JOB A a\nRETRY ALL_NODES 1\nINCLUDE more.dag", files)
    assert dag.nodes["B"].retry is None


def test_names_in_included_files_are_not_given_again() -> None:
    files = {"b": "JOB A a\nJOB B b"}

    first, second = faults("JOB A a\nINCLUDE b\nINCLUDE b", files)

    assert (first[:2], second[:2]) == (("b", 1), ("b", 2))
    assert "case.dag, line 1" in first[2]
    assert "line 2" in second[2]


@pytest.mark.parametrize("command", ["SPLICE X", "INCLUDE"])
def test_a_file_that_reads_itself_is_found(command: str) -> None:
    files = {"a": f"{command} b", "b": f"JOB B b\n{command} a"}

    ((file, line, message),) = faults(f"\n{command} a", files)

    assert (file, line) == ("b", 2)
    assert message.endswith("a -> b -> a")


def test_pins_join_splices_one_by_one_and_nothing_else() -> None:
    dag = well_read("SPLICE S in\nSPLICE T in\nCONNECT S T", {"in": PINNED})

    assert arcs_of(dag) == {("S+B", "T+A"), ("S+A", "T+B")}


def test_several_nodes_may_share_a_pin() -> None:
    text = "JOB A a\nJOB B b\nPIN_IN A 1\nPIN_IN B 1\nPIN_OUT A 1\nPIN_OUT B 1\nPIN_OUT B 1"

    dag = well_read("SPLICE S in\nSPLICE T in\nCONNECT S T", {"in": text})

    assert len(arcs_of(dag)) == 4


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [
        ("JOB A a", PINNED, "splice S has no out-pins"),
        (PINNED, "JOB A a", "splice T has no in-pins"),
        ("JOB A a\nPIN_OUT A 1\nPIN_OUT A 3", PINNED, "out-pin 2 of splice S is missing"),
        (PINNED, "JOB A a\nPIN_IN A 2", "in-pin 1 of splice T is missing"),
        ("JOB A a\nPIN_OUT A 1", PINNED, "S has 1 out-pins, T has 2 in-pins"),
        ("JOB A a\nPIN_OUT A 1", "JOB A a\nJOB B b\nPIN_IN A 1", "neither parents there nor"),
    ],
)
def test_pins_that_do_not_fit_are_told_where_they_are_joined(above, below, message) -> None:
    ((file, line, told),) = faults(
        "SPLICE S above\nSPLICE T below\nCONNECT S T", {"above": above, "below": below}
    )

    assert (file, line) == ("case.dag", 3)
    assert message in told
    assert "pin" in told


def test_a_splice_has_pins_or_parents() -> None:
    files = {"in": PINNED}
    text = "JOB X x\nSPLICE S in\nSPLICE T in\n"

    for lines in ("PARENT X CHILD T\nCONNECT S T", "CONNECT S T\nPARENT X CHILD T"):
        ((_, line, message),) = faults(text + lines, files)
        assert line == 5
        assert "line 4" in message
    dag = read(f"{text}CONNECT S T\nPARENT X CHILD S\nPARENT T CHILD X", files)
    assert dag.statistics.cycle


def test_several_dag_files_run_as_one() -> None:
    files = {
        "a.dag": "JOB A s\nJOB B s\nPARENT A CHILD B\nSPLICE S in.dag\nCATEGORY A c",
        "b.dag": "JOB A s\nRETRY ALL_NODES 1\nFINAL F f\nSUBMIT-DESCRIPTION s {\n x\n}\n"
        "SAVE_POINT_FILE A",
        "in.dag": "JOB X s",
    }

    dag = parse_dag(["a.dag", "b.dag"], files.get)

    assert dag.findings == []
    assert list(dag.nodes) == ["0.A", "0.B", "0.S+X", "1.A", "1.F"]
    assert [name for name, node in dag.nodes.items() if node.retry] == ["1.A"]
    assert dag.nodes["0.A"].source == dag.nodes["0.S+X"].source == "s"
    assert dag.nodes["1.A"].source in dag.descriptions
    assert dag.nodes["0.A"].category == "c"
    assert dag.nodes["1.A"].save_point == "save_files/1.A-a.dag.save"


def test_several_dag_files_have_one_final_node() -> None:
    files = {"a.dag": "FINAL F f", "b.dag": "\nFINAL G g"}

    (finding,) = parse_dag(["a.dag", "b.dag"], files.get).findings

    assert (finding.file, finding.line) == ("b.dag", 2)
    assert "0.F of a.dag" in finding.message


def test_a_dag_that_runs_in_a_directory_finds_its_files_there() -> None:
    dag = parse_dag(
        ["d/in.dag"],
        {"d/in.dag": "JOB A a.sub\nINCLUDE more\nDOT x.dot", "d/more": 'VARS A x="1"'}.get,
        origin=Origin("d"),
    )

    assert dag.findings == []
    assert (dag.nodes["A"].directory, dag.nodes["A"].source) == ("d", "d/a.sub")
    assert dag.dot_file == "d/x.dot"
    assert values_of(dag, "A") == {"x": "1"}


def test_a_limit_that_is_given_again_or_starts_nothing_is_warned_of() -> None:
    text = "MAXJOBS c 2\nMAXJOBS c 2\nMAXJOBS c 0"

    again, never = warnings(text)

    assert (again[1], never[1]) == (3, 3)
    assert "limit 2" in again[2]
    assert "limit is 0" in never[2]
