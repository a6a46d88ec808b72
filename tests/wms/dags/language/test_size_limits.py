"""Limits on nested splices, text, files and repeated reading of DAG files."""

from __future__ import annotations

import pytest

from tests.wms.dags.language.parsing import faults, well_read
from wms.dags.language.parser import parse_dag
from wms.dags.language.size_limits import SizeLimits


def test_splices_are_nested_to_a_bounded_depth() -> None:
    files = {f"{n}": f"SPLICE S {n + 1}" for n in range(60)} | {"60": "JOB A a"}

    ((file, line, message),) = faults("SPLICE S 0", files)

    assert (file, line) == ("49", 1)
    assert "more than 50 deep" in message
    assert len(well_read("SPLICE S 11", files).nodes) == 1


def test_splices_of_splices_cannot_grow_without_end() -> None:
    twice = {str(n): f"SPLICE A {n + 1}\nSPLICE B {n + 1}" for n in range(40)} | {"40": ""}

    (fault,) = faults("SPLICE S 0", twice | {"40": "JOB A a"}, limits=SizeLimits(max_nodes=1000))
    assert "1000 nodes" in fault[2]


def test_text_and_files_are_bounded() -> None:
    (fault,) = faults("JOB A a\n# " + "x" * 100, limits=SizeLimits(max_text_bytes=100))
    assert "100 bytes" in fault[2]

    (fault,) = faults(
        "INCLUDE a\nINCLUDE b\nINCLUDE c",
        {"a": "", "b": "", "c": ""},
        limits=SizeLimits(max_files=3),
    )
    assert fault[:2] == ("case.dag", 3)


def test_lines_for_all_nodes_are_bounded() -> None:
    nodes = "\n".join(f"JOB N{n} s" for n in range(100))

    (fault,) = faults(f"{nodes}\n" + "RETRY ALL_NODES 1\n" * 30, limits=SizeLimits(max_nodes=100))

    assert fault[:2] == ("case.dag", 121)
    assert "2000 values" in fault[2]


def _doubling(depth: int, command: str, last: str) -> dict[str, str]:
    """Files that each read the next one twice."""
    lines = {"SPLICE": "SPLICE A {0}\nSPLICE B {0}\n", "INCLUDE": "INCLUDE {0}\nINCLUDE {0}\n"}
    return {f"s{n}": lines[command].format(f"s{n + 1}") for n in range(depth)} | {f"s{depth}": last}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["SPLICE", "INCLUDE"])
@pytest.mark.parametrize("last", ["", "# nothing\n", "#" * 10_000])
def test_what_files_read_again_is_bounded_by_what_they_say(command: str, last: str) -> None:
    files = _doubling(40, command, last)

    (finding,) = parse_dag(["s0"], files.get).findings

    assert "again" in finding.message
    assert (finding.command, finding.file[:1]) == (command, "s")
    assert finding.line in (1, 2)


@pytest.mark.slow
def test_every_line_may_be_a_splice_of_the_same_file() -> None:
    count = 30_000
    files = {"s0": "".join(f"SPLICE S{n} s1\n" for n in range(count)), "s1": "JOB A a NOOP\n"}

    dag = parse_dag(["s0"], files.get)

    assert dag.findings == []
    assert len(dag.nodes) == count
