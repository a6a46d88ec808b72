from __future__ import annotations

import pytest

from tests.wms.dags.language.parsing import faults, read, warning_locations, well_read
from wms.core.errors import InvalidInput
from wms.dags.language.origin import Origin, read_origin
from wms.dags.language.parser import parse_dag
from wms.dags.states import ScriptKind

ROOT = "/home/alice/proj"
IN_RUN = Origin("run", ROOT)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a.sub", "run/a.sub"),
        ("../common/a.sub", "common/a.sub"),
        ("/home/alice/proj/common/a.sub", "common/a.sub"),
        ("//home/alice/proj/./run/../x/a.sub", "x/a.sub"),
        ("../../proj/x/a.sub", "x/a.sub"),
    ],
)
def test_names_are_looked_up_from_the_folder_of_the_submission(name: str, path: str) -> None:
    dag = well_read(f"JOB A {name}", origin=IN_RUN)

    assert (dag.nodes["A"].source, dag.nodes["A"].directory) == (path, "run")


@pytest.mark.parametrize(
    ("line", "path", "directory"),
    [
        ("JOB A a.sub DIR ../common", "common/a.sub", "common"),
        ("JOB A a.sub DIR /home/alice/proj/common", "common/a.sub", "common"),
        ("JOB A a.sub DIR ..", "a.sub", ""),
        ("JOB A a.sub DIR /home/alice/proj/", "a.sub", ""),
        ("SUBDAG EXTERNAL A ../in.dag", "in.dag", "run"),
        ("SPLICE S ../s.dag", "run/b.sub", "run"),
        ("SPLICE S s.dag DIR ..", "b.sub", ""),
        ("SPLICE S /home/alice/proj/s.dag DIR /home/alice/proj/d", "d/b.sub", "d"),
        ("INCLUDE ../s.dag", "run/b.sub", "run"),
    ],
)
def test_directories_of_nodes_splices_and_included_files_follow(
    line: str, path: str, directory: str
) -> None:
    dag = well_read(line, {"s.dag": "JOB A b.sub"}, origin=IN_RUN)

    (node,) = dag.nodes.values()
    assert (node.source, node.directory) == (path, directory)


def test_scripts_below_the_root_are_found_from_the_directory_of_their_node() -> None:
    dag = well_read(
        "JOB A a.sub\nJOB B b.sub DIR ../d\n"
        "SCRIPT PRE ALL_NODES /home/alice/proj/bin/pre.sh\nSCRIPT POST ALL_NODES /bin/true",
        origin=IN_RUN,
    )

    scripts = [node.scripts or {} for node in dag.nodes.values()]
    assert [each[ScriptKind.PRE].executable for each in scripts] == ["../bin/pre.sh"] * 2
    assert [each[ScriptKind.POST].executable for each in scripts] == ["/bin/true"] * 2


def test_each_dag_file_may_be_read_in_its_own_folder() -> None:
    files = {
        "a/one.dag": "JOB A a.sub\nSPLICE S s.dag",
        "a/s.dag": "JOB B b.sub DIR d",
        "two.dag": "JOB A a.sub",
    }

    dag = parse_dag(["a/one.dag", "two.dag"], files.get, origin=Origin(uses_dag_dir=True))

    assert dag.findings == []
    assert {name: node.source for name, node in dag.nodes.items()} == {
        "0.A": "a/a.sub",
        "0.S+B": "a/d/b.sub",
        "1.A": "a.sub",
    }


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("/home/alice/run/x.sub", Origin()),
        ("../../common/x.sub", Origin("d")),
        ("/home/alice/other/x.sub", IN_RUN),
        ("../../../bob/x.sub", IN_RUN),
    ],
)
@pytest.mark.parametrize("command", ["JOB A {}", "SPLICE A {}", "INCLUDE {}", "JOB A a DIR {}"])
def test_a_name_outside_of_the_workspace_is_a_fault_of_its_line(
    command: str, name: str, origin: Origin
) -> None:
    ((_, line, message),) = faults(command.format(name), origin=origin)

    assert line == 1
    assert message.startswith(name)


def test_files_that_are_made_on_demand_keep_the_last_part_of_a_name_elsewhere() -> None:
    text = "DOT /tmp/x.dot\nNODE_STATUS_FILE ../../f\nJOBSTATE_LOG log"

    dag = read(text)

    assert (dag.dot_file, dag.status_file, dag.jobstate_log) == ("x.dot", "f", "log")
    assert warning_locations(text) == [("case.dag", 1), ("case.dag", 2)]


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ({}, Origin()),
        ({"directory": " ./run/ ", "root": "/home//alice/proj/ "}, IN_RUN),
        ({"directory": ".", "root": "/"}, Origin(root="/")),
        ({"directory": "/home/alice/proj/run", "root": ROOT}, IN_RUN),
        ({"directory": ROOT, "root": ROOT}, Origin(root=ROOT)),
        ({"uses_dag_dir": True}, Origin(uses_dag_dir=True)),
    ],
)
def test_an_origin_is_read(given: dict[str, str], origin: Origin) -> None:
    assert read_origin(**given) == origin


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"directory": "../run"}, "directory"),
        ({"directory": "/home/alice/run"}, "directory"),
        ({"directory": "/home/bob", "root": ROOT}, "directory"),
        ({"directory": "a\tb"}, "directory"),
        ({"root": "home/alice"}, "root"),
        ({"root": "/home/\x1balice"}, "root"),
        ({"root": "/" + "x" * 1000}, "root"),
        ({"directory": "d", "uses_dag_dir": True}, "use_dag_dir"),
    ],
)
def test_an_origin_that_cannot_be_is_refused(given: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_origin(**given)

    assert [each.field for each in refused.value.findings] == [field]
