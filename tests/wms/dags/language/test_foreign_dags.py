"""Public DAG files of other people, and what DAGMan's rules say of each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.wms.dags.language.foreign_dags import ForeignDag, foreign_dags
from wms.core.errors import Finding
from wms.dags.language.origin import Origin
from wms.dags.language.parser import parse_dag

FOREIGN = foreign_dags()


def test_there_are_more_than_a_hundred_foreign_dags_each_with_a_verdict() -> None:
    assert len({dag.source for dag in FOREIGN}) == len(FOREIGN) > 100
    assert all((dag.nodes is None) == bool(dag.faults) for dag in FOREIGN)


@pytest.mark.parametrize("dag", FOREIGN, ids=lambda dag: dag.source)
def test_a_foreign_dag_is_read_as_dagman_reads_it(dag: ForeignDag) -> None:
    spec = parse_dag(["main.dag"], dag.files.get, origin=Origin(root=dag.root))

    _assert_told(spec.findings, dag.faults)
    _assert_told(spec.warnings, dag.warnings)
    assert spec.additions == []
    if dag.nodes is not None:
        assert (len(spec.nodes), len(spec.arcs)) == (dag.nodes, dag.arcs)


def _assert_told(findings: Sequence[Finding], expected: list[tuple[str, int, str]]) -> None:
    told = [(finding.file, finding.line) for finding in findings]
    assert told == [(file, line) for file, line, _ in expected], findings
    for finding, (_, _, words) in zip(findings, expected, strict=True):
        assert words in finding.message
