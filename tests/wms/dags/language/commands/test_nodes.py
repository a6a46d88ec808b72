from __future__ import annotations

from itertools import permutations

import pytest

from tests.wms.dags.language.parsing import faults, read, well_read
from wms.dags.language.size_limits import SizeLimits
from wms.dags.states import NodeKind
from wms.dags.submission.checking import dag_size_limits


def test_a_node_is_read_with_its_place() -> None:
    node = well_read("\n JOB A sub/a.sub").nodes["A"]

    assert (node.kind, node.source, node.location) == (NodeKind.JOB, "sub/a.sub", ("case.dag", 2))
    assert (node.directory, node.is_noop, node.is_done) == ("", False, False)
    assert (node.retry, node.variables, node.scripts, node.save_point) == (None, None, None, None)


@pytest.mark.parametrize("order", list(permutations(["DIR d/./e", "noop", "Done"])))
def test_the_options_of_a_node_stand_in_any_order(order: tuple[str, ...]) -> None:
    node = well_read(f"JOB A a.sub {' '.join(order)}").nodes["A"]

    assert (node.directory, node.source) == ("d/e", "d/e/a.sub")
    assert node.is_noop
    assert node.is_done


@pytest.mark.parametrize(
    "line", ["JOB N /dev/null", "FINAL N ../../n.sub", "SUBDAG EXTERNAL N /n.dag"]
)
def test_the_file_of_a_noop_node_may_be_any_for_nobody_reads_it(line: str) -> None:
    (refused,) = faults(f"{line} DIR d")

    node = well_read(f"{line} DIR d NOOP").nodes["N"]

    assert refused[:2] == ("case.dag", 1)
    assert (node.is_noop, node.directory, node.source) == (True, "d", "")


@pytest.mark.parametrize("directory", [".", "./"])
def test_the_directory_of_the_dag_may_be_named(directory: str) -> None:
    node = well_read(f"JOB A a.sub DIR {directory}").nodes["A"]

    assert (node.directory, node.source) == ("", "a.sub")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("SUBDAG EXTERNAL N n.dag DIR d NOOP DONE", NodeKind.SUBDAG),
        ("subdag external N n.dag DIR d NOOP DONE", NodeKind.SUBDAG),
        ("DATA N n.dag DIR d NOOP DONE", NodeKind.DATA),
        ("FINAL N n.dag DIR d NOOP", NodeKind.FINAL),
        ("PROVISIONER N n.dag DIR d", NodeKind.PROVISIONER),
        ("SERVICE N n.dag DIR d", NodeKind.SERVICE),
    ],
)
def test_nodes_are_of_several_kinds(line: str, kind: NodeKind) -> None:
    node = well_read(line).nodes["N"]

    assert (node.kind, node.directory, node.source) == (kind, "d", "d/n.dag")


@pytest.mark.parametrize(("opening", "closing"), [("{", "}"), ("@=END", "@END")])
@pytest.mark.parametrize("command", ["JOB", "FINAL", "DATA"])
def test_a_description_may_stand_in_the_dag_file(command: str, opening: str, closing: str) -> None:
    text = f"{command} A {opening}\n  x = 1\n\n # why \\\n  y = {{}} \\\n{closing} NOOP\nJOB B b"

    dag = well_read(text)

    node = dag.nodes["A"]
    assert node.is_noop
    assert dag.descriptions[node.source].text == "  x = 1\n\n # why \\\n  y = {} \\"
    assert dag.descriptions[node.source].location == ("case.dag", 1)
    assert dag.nodes["B"].location.line == 7


def test_a_subdag_has_no_description_in_the_file() -> None:
    assert well_read("SUBDAG EXTERNAL A {\n").nodes["A"].source == "{"


def test_nodes_share_a_description_wherever_it_stands() -> None:
    dag = well_read("JOB A common\nSUBMIT-DESCRIPTION common {\n x = 1\n}\nJOB B common DIR d")

    assert dag.nodes["A"].source == dag.nodes["B"].source
    assert dag.descriptions[dag.nodes["A"].source].text == " x = 1"
    assert dag.nodes["B"].directory == "d"


def test_a_splice_has_descriptions_of_its_own_and_those_around_it() -> None:
    files = {"in": "JOB A common\nJOB B mine\nJOB C file\nSUBMIT-DESCRIPTION mine {\n inner\n}"}
    text = "SPLICE S in\nJOB B mine\nSUBMIT-DESCRIPTION common {\n outer\n}"

    dag = well_read(text, files)

    texts = {
        name: dag.descriptions[node.source].text if node.source in dag.descriptions else node.source
        for name, node in dag.nodes.items()
    }
    assert texts == {"S+A": " outer", "S+B": " inner", "S+C": "file", "B": "mine"}


def test_a_description_is_never_taken_for_a_file() -> None:
    dag = well_read("JOB A ./common\nJOB B common\nSUBMIT-DESCRIPTION common {\n}")

    assert dag.nodes["A"].source == "common"
    assert dag.nodes["A"].source not in dag.descriptions
    assert dag.nodes["B"].source in dag.descriptions


def test_a_description_is_given_once() -> None:
    (fault,) = read("SUBMIT-DESCRIPTION s {\n}\nSUBMIT-DESCRIPTION s {\n}").findings

    assert (fault.line, fault.command) == (3, "SUBMIT-DESCRIPTION")
    assert "line 1" in fault.message


def test_a_file_with_a_path_of_the_greatest_length_has_no_descriptions() -> None:
    name = "d/" * 511 + "d"

    (fault,) = read(f"INCLUDE {name}", {name: "JOB A {\n}\nJOB B b"}).findings

    assert (fault.file, fault.line) == (name, 1)
    assert fault.command == "JOB"


def test_a_closing_mark_stands_alone_at_the_beginning_of_a_line() -> None:
    dag = well_read("JOB A @=E\n@END\n x @E\n  @E\nJOB B {\n}x\n x}\n\t}\t\r\nJOB C c")

    assert [each.text for each in dag.descriptions.values()] == ["@END\n x @E", "}x\n x}"]
    assert list(dag.nodes) == ["A", "B", "C"]


def test_done_may_be_said_in_a_line_of_its_own() -> None:
    dag = well_read("DONE A\nJOB A a\nJOB B b")

    assert [node.is_done for node in dag.nodes.values()] == [True, False]


def test_a_dag_of_a_million_nodes_and_two_is_not_too_large() -> None:
    assert SizeLimits().max_nodes >= 1_000_002
    assert dag_size_limits().max_nodes >= 1_000_002
