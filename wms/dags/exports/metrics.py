"""Export of a run as DAGMan's metrics: a JSON document with counts of nodes and jobs, and times.

It has the fields of both versions of DAGMan's format, and height and width of the graph.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import rustworkx
from django.db.models import Count

from wms.dags.models import Dag, DagEvent, Edge, Node
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.states import DAG_TERMINAL, NodeKind, NodeState
from wms.jobs.states import JobState

_BEGINNINGS = ("match", "begin")
#: Kinds of nodes that the first version counts as jobs, FINAL included.
_OF_JOBS = frozenset(
    {NodeKind.JOB.value, NodeKind.DATA.value, NodeKind.FINAL.value, NodeKind.PROVISIONER.value}
)


def lines(dag: Dag, now: datetime) -> Iterator[str]:
    """Text of the file.

    While the DAG is active, its end time is the current time, and it has no code.
    """
    document = json.dumps(metrics_of(dag, now), indent=4, separators=(",", ":"))
    yield document + "\n"


def metrics_of(dag: Dag, now: datetime) -> dict[str, Any]:
    """Fields in DAGMan's order: those of both versions, of the first, of the second.

    The versions disagree about `jobs_failed` and `jobs_succeeded`, which count jobs here.
    """
    counts = _node_counts(dag)
    began = (
        DagEvent.objects.filter(dag=dag, event__in=_BEGINNINGS)
        .order_by("pk")
        .values_list("created_at", flat=True)
        .first()
    ) or dag.created_at
    ended = dag.ended_at or now
    outer = Node.objects.filter(inner_dags=dag).values_list("dag_id", flat=True).first()
    return {
        "client": "condor_dagman",
        "version": _version(),
        "type": "metrics",
        "start_time": round(began.timestamp(), 3),
        "end_time": round(ended.timestamp(), 3),
        "duration": round((ended - began).total_seconds(), 3),
        "exitcode": dag.exit_code if dag.state in DAG_TERMINAL else None,
        "dagman_id": str(dag.pk),
        "parent_dagman_id": str(outer or ""),
        "rescue_dag_number": dag.rescue_number,
        **_first_version(counts),
        "metrics_version": 2,
        **_second_version(counts),
        **_job_counts(dag),
        **_shape(dag),
        "DagStatus": dag.status,
    }


def _version() -> str:
    try:
        return f"Pilotage {version('pilotage')}"
    except PackageNotFoundError:
        # Run from its sources, as it mostly is.
        return "Pilotage"


def _node_counts(dag: Dag) -> Counter[tuple[str, str]]:
    rows = Node.objects.filter(dag=dag).order_by().values_list("kind", "state")
    counts: Counter[tuple[str, str]] = Counter()
    for kind, state, number in rows.annotate(Count("pk")):
        counts["job" if kind in _OF_JOBS else kind, state] += number
        counts[kind, "all"] += number
    return counts


def _count(counts: Counter[tuple[str, str]], kind: str, *states: NodeState) -> int:
    counted_states = [state.value for state in states or NodeState]
    return sum(counts[kind, state] for state in counted_states)


def _first_version(counts: Counter[tuple[str, str]]) -> dict[str, int]:
    ended = (NodeState.DONE, NodeState.FAILED)
    jobs, inner = _count(counts, "job"), _count(counts, "subdag")
    return {
        "jobs": jobs,
        "dag_jobs": inner,
        "dag_jobs_failed": _count(counts, "subdag", NodeState.FAILED),
        "dag_jobs_succeeded": _count(counts, "subdag", NodeState.DONE),
        "total_jobs": jobs + inner,
        "total_jobs_run": _count(counts, "job", *ended) + _count(counts, "subdag", *ended),
    }


def _second_version(counts: Counter[tuple[str, str]]) -> dict[str, Any]:
    fields: dict[str, Any] = {"has_final_node": counts["final", "all"] > 0}
    for name, kind in (("nodes", "job"), ("dag_nodes", "subdag"), ("service_nodes", "service")):
        fields[name] = _count(counts, kind)
        fields[f"{name}_failed"] = _count(counts, kind, NodeState.FAILED)
        fields[f"{name}_succeeded"] = _count(counts, kind, NodeState.DONE)
    first = _first_version(counts)
    return fields | {
        "provisioner_nodes": counts["provisioner", "all"],
        "total_nodes": first["total_jobs"],
        "total_nodes_run": first["total_jobs_run"],
    }


def _job_counts(dag: Dag) -> dict[str, int]:
    rows = jobs_of(dag.pk).order_by().values_list("state")
    counts = Counter(dict(rows.annotate(Count("pk"))))
    return {
        "jobs_submitted": counts.total(),
        "jobs_succeeded": counts[JobState.DONE.value],
        "jobs_failed": counts[JobState.FAILED.value] + counts[JobState.KILLED.value],
    }


def _shape(dag: Dag) -> dict[str, int]:
    """Height and width of the graph; takes one second for 200,000 nodes."""
    special_kinds = (NodeKind.FINAL, NodeKind.SERVICE, NodeKind.PROVISIONER)
    nodes = Node.objects.filter(dag=dag).exclude(kind__in=special_kinds).order_by()
    graph: rustworkx.PyDiGraph[int, None] = rustworkx.PyDiGraph(multigraph=False)
    ids = list(nodes.values_list("pk", flat=True))
    index_of = dict(zip(ids, graph.add_nodes_from(ids), strict=True))
    arcs = Edge.objects.filter(parent__dag=dag).order_by().values_list("parent_id", "child_id")
    graph.add_edges_from_no_data([(index_of[parent], index_of[child]) for parent, child in arcs])
    generations = [len(level) for level in rustworkx.topological_generations(graph)]
    return {
        "graph_height": len(generations),
        "graph_width": max(generations, default=0),
        "num_edges": graph.num_edges(),
        "num_vertices": len(ids),
    }
