"""Allocations and releases of a DAG's data nodes, from which the plan of its space is made.

It is made when the first data node that takes space begins, and anew when the DAG has grown or is
at another site: only then the texts of its nodes have all their values.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wms.core.errors import PilotageError
from wms.dags.engine.round import Round
from wms.dags.models import Dag, Edge, Node
from wms.dags.states import NODE_TERMINAL, NodeKind, NodeState
from wms.placement.request_ad import RequestSpec, parse_requests
from wms.placement.space_plans.storing import MOST_STEPS, SpaceStep, has_plan, store_plan
from wms.placement.states import RequestKind
from wms.placement.storages.models import Storage
from wms.placement.storages.selectors import storage_for_space

#: DAGs with more data nodes have no plan: the text of each is read.
_MOST_NODES: Final = 2000
_TAKES: Final = re.compile(r"allocate|reserve", re.IGNORECASE)
_TOUCHES: Final = re.compile(r"allocate|reserve|release", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Found:
    """A request about space, of a node."""

    node_id: int
    spec: RequestSpec
    storage: Storage


def plan_space(round_: Round, text: str, text_of: Callable[[Dag, Node], str]) -> None:
    """Make the plan of a DAG whose data node takes space, unless there is one."""
    dag = round_.dag
    mark = f"{dag.node_count} {dag.site_id or ''}"
    if not _TAKES.search(text) or has_plan(dag.pk, mark):
        return
    steps = space_steps(dag, _found(dag, text_of))
    store_plan(dag.pk, dag.workspace, steps, mark=mark)


def ended_nodes(node_ids: Collection[int]) -> set[int]:
    """Ended nodes among these, which take no space any more."""
    ended = Node.objects.filter(pk__in=node_ids, state__in=NODE_TERMINAL)
    return set(ended.values_list("pk", flat=True))


def _found(dag: Dag, text_of: Callable[[Dag, Node], str]) -> Sequence[_Found]:
    """Requests about space whose text is known and of a storage; none in a DAG with too many."""
    nodes = Node.objects.filter(dag=dag, kind=NodeKind.DATA).exclude(
        state__in=[NodeState.FAILED, NodeState.FUTILE, NodeState.SKIPPED]
    )
    rows = list(nodes.select_related("submit_description").order_by("ordinal")[: _MOST_NODES + 1])
    if len(rows) > _MOST_NODES:
        return []
    found: list[_Found] = []
    storages: dict[str, Storage | None] = {}
    for node in rows:
        for spec in _specs(dag, node, text_of):
            if spec.host not in storages:
                storages[spec.host] = _storage(spec.host)
            storage = storages[spec.host]
            if storage is not None:
                found.append(_Found(node.pk, spec, storage))
    return found


def _specs(dag: Dag, node: Node, text_of: Callable[[Dag, Node], str]) -> Sequence[RequestSpec]:
    """Requests of a node about space; none of a text that is not there, or not right, yet."""
    kinds = (RequestKind.ALLOCATE, RequestKind.RELEASE)
    try:
        text = text_of(dag, node)
        specs = parse_requests(text, directory=node.directory) if _TOUCHES.search(text) else []
    except PilotageError:
        return []
    return [spec for spec in specs if spec.kind in kinds]


def _storage(host: str) -> Storage | None:
    try:
        return storage_for_space(host)
    except PilotageError:
        return None


def space_steps(dag: Dag, found: Sequence[_Found]) -> Sequence[SpaceStep]:
    """Steps in the order of the nodes, each after those of the nodes before its own.

    Of a name that is allocated twice nobody knows which one a release is of: it is left out.
    """
    by_name: dict[str, list[_Found]] = defaultdict(list)
    for each in found:
        by_name[each.spec.allocation].append(each)
    earlier = _ancestors(dag, {each.node_id for each in found})
    kept: list[_Found] = []
    for requests in by_name.values():
        makes = [each for each in requests if each.spec.kind is RequestKind.ALLOCATE]
        gives = [each for each in requests if each.spec.kind is RequestKind.RELEASE]
        if len(makes) != 1:
            continue
        kept.append(makes[0])
        # One that comes before is of something else.
        if len(gives) == 1 and gives[0].node_id not in earlier[makes[0].node_id]:
            kept.append(gives[0])
    if len(kept) > MOST_STEPS:
        return []
    return [_step(each, kept, earlier) for each in kept]


def _step(
    each: _Found, kept: Sequence[_Found], earlier: Mapping[int, Collection[int]]
) -> SpaceStep:
    is_release = each.spec.kind is RequestKind.RELEASE
    after = frozenset(
        place
        for place, other in enumerate(kept)
        if other is not each
        and (
            other.node_id in earlier[each.node_id]
            or (is_release and other.spec.allocation == each.spec.allocation)
        )
    )
    size_bytes = 0 if is_release else each.spec.size_bytes or 0
    return SpaceStep(each.node_id, each.spec.allocation, each.storage.pk, size_bytes, after)


def _ancestors(dag: Dag, nodes: Collection[int]) -> dict[int, set[int]]:
    """Nodes of these that come before each of them."""
    places = {node: place for place, node in enumerate(sorted(nodes))}
    children: dict[int, list[int]] = defaultdict(list)
    parents_left: dict[int, int] = defaultdict(int)
    if len(nodes) > 1:
        arcs = Edge.objects.filter(parent__dag=dag).order_by()
        for parent, child in arcs.values_list("parent_id", "child_id").iterator():
            children[parent].append(child)
            parents_left[child] += 1
    before: dict[int, int] = defaultdict(int)
    ready = [node for node in children if not parents_left[node]]
    while ready:
        node = ready.pop()
        reached = before[node] | (1 << places[node] if node in places else 0)
        for child in children.get(node, ()):
            before[child] |= reached
            parents_left[child] -= 1
            if not parents_left[child]:
                ready.append(child)
    return {
        node: {other for other, place in places.items() if before[node] >> place & 1}
        for node in places
    }
