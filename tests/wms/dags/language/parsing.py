"""Parsing of DAG files given as texts, for tests: faults, warnings, arcs and variables."""

from __future__ import annotations

from collections.abc import Mapping

from wms.dags.language.origin import TOP
from wms.dags.language.parser import parse_dag
from wms.dags.language.size_limits import SizeLimits
from wms.dags.language.spec import DagSpec

Findings = list[tuple[str, int | None, str]]
_LIMITS = SizeLimits()


def read(
    text: str, files: Mapping[str, str] | None = None, *, limits: SizeLimits = _LIMITS, origin=TOP
) -> DagSpec:
    """DAG of `case.dag`, parsed together with other files."""
    return parse_dag(
        ["case.dag"], {**(files or {}), "case.dag": text}.get, limits=limits, origin=origin
    )


def well_read(text: str, files: Mapping[str, str] | None = None, **options) -> DagSpec:
    """DAG of `case.dag`, which must have no faults."""
    dag = read(text, files, **options)
    assert dag.findings == []
    return dag


def faults(text: str, files: Mapping[str, str] | None = None, **options) -> Findings:
    """File, line and message of each fault."""
    return [(f.file, f.line, f.message) for f in read(text, files, **options).findings]


def warnings(text: str, files: Mapping[str, str] | None = None) -> Findings:
    """File, line and message of each warning about a DAG without faults."""
    return [(w.file, w.line, w.message) for w in well_read(text, files).warnings]


def fault_locations(
    text: str, files: Mapping[str, str] | None = None, **options
) -> list[tuple[str, int | None]]:
    """File and line of each fault."""
    return [(f.file, f.line) for f in read(text, files, **options).findings]


def warning_locations(
    text: str, files: Mapping[str, str] | None = None
) -> list[tuple[str, int | None]]:
    """File and line of each warning about a DAG without faults."""
    return [(w.file, w.line) for w in well_read(text, files).warnings]


def arcs_of(dag: DagSpec) -> set[tuple[str, str]]:
    """Arcs as pairs of names."""
    names = list(dag.nodes)
    return {(names[arc.parent], names[arc.child]) for arc in dag.arcs}


def values_of(dag: DagSpec, name: str) -> dict[str, str]:
    """Values of a node's VARS by name."""
    return {each.name: each.value for each in (dag.nodes[name].variables or {}).values()}
