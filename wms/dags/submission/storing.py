"""Storage of a new DAG's nodes, arcs and submit descriptions: hundreds of thousands in seconds.

Nodes and arcs are stored by COPY. Nodes that are done already, in the file or by a rescue, are
marked, with events; retries are those that the rescue has left. The counters of the DAG are set.
Also the storage of nodes by which a DAG grows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from django.db import connection

from wms.core.actors import Actor
from wms.dags.engine import transitions
from wms.dags.engine.node_features import features_row
from wms.dags.engine.node_work import begins_plain
from wms.dags.joins.storing import JoinPlan, KeptOutcomes, plan_joins, store_joins
from wms.dags.language.plain_values import texts_of
from wms.dags.language.spec import DagSpec, NodeSpec, TimeLimits
from wms.dags.models import Dag, SubmitDescription
from wms.dags.states import COUNTED_KINDS, NodeKind
from wms.dags.submission.sql import COPY_ARCS, COPY_NODES, RESERVE_NODE_IDS
from wms.jobs.description.submit_file import SubmitFile
from wms.jobs.models import WorkspaceFile


def store_nodes(
    dag: Dag,
    spec: DagSpec,
    submit_files: Mapping[str, SubmitFile],
    *,
    done: Collection[str],
    retries: Mapping[str, tuple[int, int | None]],
    outcomes: Mapping[str, Mapping[str, Any]],
    done_reason: str,
    actor: Actor,
) -> None:
    """Store the nodes, arcs and descriptions of a new DAG. `done`, `retries` and `outcomes`, of
    nodes with conditions on arcs from them, come from a rescue.

    Nodes that are done in the DAG file or by the rescue get an event as well; the counters of `dag`
    are updated. Nodes without a TIMEOUT of their own get that of the DAG's options.
    """
    is_done = _done(spec, done)
    plan = plan_joins(spec)
    unfinished = _unfinished_parents(spec, is_done)
    ids = store_graph(
        dag, spec, submit_files, plan=plan, unfinished_parents=unfinished, retries=retries
    )
    if plan.joined:
        store_joins(dag, spec, plan, ids)
    kept = KeptOutcomes(spec, plan, ids, is_done, outcomes)
    dag.done_count, dag.failed_count = kept.mark(dag, reason=done_reason, actor=actor)
    marked = transitions.move(
        "mark done",
        [ids[index] for index, flag in enumerate(is_done) if flag],
        dag_id=dag.pk,
        actor=actor,
        reason=done_reason,
    )
    kept.count()
    counts = marked.by_dag.get(dag.pk)
    dag.done_count += counts["done_count"] if counts else 0
    dag.node_count = sum(node.kind in COUNTED_KINDS for node in spec.nodes.values())
    Dag.objects.filter(pk=dag.pk).update(
        done_count=dag.done_count, failed_count=dag.failed_count, node_count=dag.node_count
    )


def store_graph(
    dag: Dag,
    spec: DagSpec,
    submit_files: Mapping[str, SubmitFile],
    *,
    plan: JoinPlan,
    unfinished_parents: list[int],
    retries: Mapping[str, tuple[int, int | None]] = MappingProxyType({}),
    first_ordinal: int = 1,
) -> list[int]:
    """Store nodes that wait, the arcs between them, and their descriptions; the ids by position.

    The joins of `plan` are stored by `store_joins`, when all arcs of their nodes are there.
    """
    _set_default_limits(dag, spec)
    descriptions = _store_descriptions(dag, spec, submit_files, is_new=first_ordinal == 1)
    ids = new_node_ids(len(spec.nodes))
    for index in plan.joined:
        # What it waits for is its join.
        unfinished_parents[index] = 1
    priority = int(dag.options.get("priority", 0))
    with connection.cursor() as cursor:
        with cursor.copy(COPY_NODES) as copy:
            for index, node in enumerate(spec.nodes.values()):
                row = _node_row(node, descriptions, retries.get(node.name))
                copy.write_row(
                    (ids[index], dag.pk, node.name, node.kind.value, first_ordinal + index,
                     row.description, node.directory, row.variables, row.features,
                     node.priority + priority, node.category, "waiting", "",
                     unfinished_parents[index], row.max_retries, 0,
                     index not in plan.parents and begins_plain(node.kind, row.features))
                )  # fmt: skip
        with cursor.copy(COPY_ARCS) as copy:
            for arc in spec.arcs:
                copy.write_row((ids[arc.parent], ids[arc.child], arc.is_weak))
    return ids


def _set_default_limits(dag: Dag, spec: DagSpec) -> None:
    queue_s, run_s = (int(dag.options.get(f"timeout_{kind}_s", 0)) for kind in ("queue", "run"))
    if queue_s or run_s:
        limits = TimeLimits(queue_s, run_s)
        for node in spec.nodes.values():
            # As ALL_NODES has it: neither FINAL nor what stands beside the nodes.
            if node.kind in COUNTED_KINDS and node.time_limits is None:
                node.time_limits = limits


class _Row:
    """Computed columns of a node."""

    __slots__ = ("description", "features", "max_retries", "variables")

    def __init__(
        self, description: int | None, variables: str, features: str | None, max_retries: int
    ) -> None:
        self.description = description
        self.variables = variables
        self.features = features
        self.max_retries = max_retries


def _node_row(
    node: NodeSpec, descriptions: Mapping[str, int], rescued: tuple[int, int | None] | None
) -> _Row:
    description = descriptions.get(node.source)
    given, _ = texts_of(node.variables, as_written=True)
    variables = json.dumps(given) if given else "{}"
    features = features_row(node, keeps_source=description is None)
    max_retries = node.retry.count if node.retry is not None else 0
    if rescued is not None:
        max_retries, unless_exit = rescued
        if unless_exit is not None:
            features = {**(features or {}), "unless_exit": unless_exit}
    return _Row(description, variables, json.dumps(features) if features else None, max_retries)


def new_node_ids(count: int) -> list[int]:
    """Ids for so many nodes that are to be stored, rising."""
    with connection.cursor() as cursor:
        cursor.execute(RESERVE_NODE_IDS, [count])
        return sorted(row[0] for row in cursor.fetchall())


def _store_descriptions(
    dag: Dag, spec: DagSpec, submit_files: Mapping[str, SubmitFile], *, is_new: bool
) -> dict[str, int]:
    """Rows of submit descriptions and inline placement requests, by source.

    Those that the DAG has already stay: the engine reads a file that has changed since.
    """
    requests = {
        node.source: {"request": spec.descriptions[node.source].text}
        for node in spec.nodes.values()
        if node.kind is NodeKind.DATA and node.source in spec.descriptions
    }
    contents: dict[str, Any] = {name: file.as_dict() for name, file in submit_files.items()}
    files = WorkspaceFile.objects.filter(
        workspace=dag.workspace_id, path__in=contents.keys() - spec.descriptions.keys()
    )
    hashes = dict(files.values_list("path", "blob_id"))
    named, known = {**contents, **requests}, dict[str, int]()
    if not is_new:
        stored = SubmitDescription.objects.filter(dag=dag, name__in=list(named))
        known.update(stored.values_list("name", "pk"))
    rows = SubmitDescription.objects.bulk_create(
        SubmitDescription(dag=dag, name=name, content=content, sha256=hashes.get(name, ""))
        for name, content in named.items()
        if name not in known
    )
    return {**known, **{row.name: row.pk for row in rows}}


def _done(spec: DagSpec, done: Collection[str]) -> bytearray:
    names = set(done)
    return bytearray(
        (node.is_done or node.name in names)
        and node.kind not in (NodeKind.FINAL, NodeKind.PROVISIONER)
        for node in spec.nodes.values()
    )


def _unfinished_parents(spec: DagSpec, is_done: bytearray) -> list[int]:
    unfinished = [0] * len(spec.nodes)
    for parent, child in _pairs(spec):
        if not is_done[parent]:
            unfinished[child] += 1
    return unfinished


def _pairs(spec: DagSpec) -> Iterator[tuple[int, int]]:
    return zip(spec.arcs.parents, spec.arcs.children, strict=True)
