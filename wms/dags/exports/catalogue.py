"""Catalogue of a DAG's exports, files that DAGMan would write: their kinds, names and texts.

The kinds are node status file, `jobstate.log`, DOT, metrics and job event log. Texts are made on
demand, piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from wms.core.errors import NotFound
from wms.dags.exports.dot import lines as dot_lines
from wms.dags.exports.event_log import lines as eventlog_lines
from wms.dags.exports.jobstate import lines as jobstate_lines
from wms.dags.exports.metrics import lines as metrics_lines
from wms.dags.exports.status import lines as status_lines
from wms.dags.models import Dag


@dataclass(frozen=True, slots=True)
class Export:
    """One kind of file: its name, content type and function.

    `lines` takes the DAG and the current time; it reads row by row with a constant number of
    queries, so that the text of a DAG of any size can be sent while it is made.
    """

    title: str
    suffix: str
    content_type: str
    lines: Callable[[Dag, datetime], Iterator[str]]


#: By kind; the names that DAG files ask for are kept under the same kinds in `Dag.exports`.
EXPORTS: Mapping[str, Export] = {
    "status": Export("node status file", ".status", "text/plain", status_lines),
    "jobstate": Export("jobstate.log", ".jobstate.log", "text/plain", jobstate_lines),
    "dot": Export("picture of the graph (DOT)", ".dot", "text/vnd.graphviz", dot_lines),
    "metrics": Export("metrics", ".metrics", "application/json", metrics_lines),
    "eventlog": Export("job event log", ".nodes.log", "text/plain", eventlog_lines),
}


def export_name(dag: Dag, kind: str) -> str:
    """Name of the file: the one in the DAG file, else DAGMan's default name."""
    asked = dag.exports.get(kind, "")
    return asked or f"{base_name(dag)}{_export_of_kind(kind).suffix}"


def base_name(dag: Dag) -> str:
    """Prefix of the names of a DAG's own files: its first DAG file."""
    return dag.dag_files[0] if dag.dag_files else f"{dag.name}.dag"


def export(dag: Dag, kind: str, *, now: datetime) -> Iterator[str]:
    """Text of a file, in pieces. Raises NotFound for an unknown kind."""
    return _export_of_kind(kind).lines(dag, now)


def _export_of_kind(kind: str) -> Export:
    known = EXPORTS.get(kind)
    if known is None:
        raise NotFound(f"There is no export {kind!r}, only {', '.join(EXPORTS)}.")
    return known
