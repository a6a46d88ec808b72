"""Nodes that are alike are checked once, and nothing is missed by that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.core.errors import Finding
from wms.dags.language.parser import parse_dag
from wms.dags.submission.node_checks import check_nodes
from wms.jobs.description.submit_file import parse_submit_file

_LINES = st.sampled_from(
    [
        "arguments = $(x) $(JOB)", 'arguments = "$(x)"', 'arguments = $(x)"', "arguments = \\$(x)",
        "arguments = '$(x)'", "arguments = \"'$(x)\"", "arguments = $(x:a b)",
        "arguments = $INT(x)", "request_memory = $(x)", "arguments = $(x)\nrequest_cpus = $(y)",
        "output = $(x)", "transfer_input_files = $(x)", "shell = $(x)", "+A = $(x)",
        "arguments = $(y)\nallowed_execute_duration = $(x)", "arguments = $$(A) $(x)",
        "arguments = $(x)\nqueue 2",
    ]
)  # fmt: skip
_VALUES = st.sampled_from(
    ["1", "2", "1024", "a b", "", " ", "'", '\\"', "$(y)", "$(x)", "$$(Name)", "ü", "-1", "../a"]
)
_KEYS = st.sampled_from(["x", "x", "x", "y", "request_memory", "arguments", "+Tags", "+Own"])
_PAIRS = st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=2)


def _found(description: str, nodes: dict[str, dict[str, str]]) -> tuple[set[Finding], list]:
    """Faults of nodes with these variables, and the names of the nodes by their needs."""
    lines = [f"JOB {name} a.sub" for name in nodes]
    for name, given_ in nodes.items():
        lines.append(f"VARS {name} " + " ".join(f'{k}="{v}"' for k, v in given_.items()))
    dag = parse_dag(["a.dag"], {"a.dag": "\n".join(lines)}.get)
    assert dag.findings == []
    found = check_nodes(
        dag,
        {"a.sub": parse_submit_file(description, file="a.sub")},
        uploaded=(),
        owner_name="alice",
        group_name="",
        cpu_segments_s=(500, 5000),
        offered=None,
        # One that several nodes have is told once.
        allow_missing_files=True,
    )
    needs = {needs: [node.name for node in nodes] for needs, nodes in found.nodes_by_needs.items()}
    faults = {Finding(each.message, each.file) for each in found.faults}
    return faults, sorted(needs.items(), key=lambda each: each[1])


@pytest.mark.slow
@given(_LINES, st.lists(_PAIRS, min_size=1, max_size=5))
def test_nodes_of_a_dag_are_checked_as_each_is_alone(
    line: str, variables: list[dict[str, str]]
) -> None:
    description = f"executable = /bin/true\n{line}\n"
    nodes = {f"N{number}": given_ for number, given_ in enumerate(variables)}

    faults, needs = _found(description, nodes)

    alone = [_found(description, {name: given_}) for name, given_ in nodes.items()]
    assert faults == set().union(*(found for found, _ in alone))
    assert sorted(name for _, names in needs for name in names) == sorted(
        name for _, found in alone for _, names in found for name in names
    )
    for each, names in needs:
        assert all([(each, [name])] == alone[int(name[1:])][1] for name in names)


def test_a_node_whose_value_is_no_plain_word_is_checked_by_itself() -> None:
    description = "executable = /bin/true\narguments = $(x)\nqueue\n"

    faults, needs = _found(description, {"A": {"x": "1"}, "B": {"x": '2\\"'}, "C": {"x": "3"}})

    assert [each.file for each in faults] == ["a.dag"]
    assert [names for _, names in needs] == [["A", "C"]]
