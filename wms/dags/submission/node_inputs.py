"""Input data of a DAG's nodes as they are stored with it, for the negotiation: two sets of names.

One has what its nodes want near, the other what they may fetch from afar: all of them run at one
site. What DATA nodes of the DAG place itself is expected at the storages that they name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matching.descriptions.macro_functions import UNKNOWN
from wms.core.models import User
from wms.dags.language.spec import DagSpec, NodeSpec
from wms.dags.states import NodeKind
from wms.jobs.directives import ANYWHERE
from wms.jobs.input_data.sets import shared_sets
from wms.jobs.input_data.wanted import Wanted, names_in
from wms.placement.catalogue.names import checked_name, is_logical
from wms.placement.request_ad import RequestSpec

#: So many names of a DAG count in its negotiation; jobs that name others wait near these.
MOST_NAMES: Final = 10_000
_MAY_PLACE: Final = frozenset({NodeKind.DATA, NodeKind.SUBDAG})


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """Logical names that a node wants as inputs, and whether they may come from afar."""

    names: tuple[str, ...]
    is_anywhere: bool

    @classmethod
    def of(cls, directives: Mapping[str, Any] | None) -> NodeInputs | None:
        """The inputs in a job's directives, as far as they are known before it is made."""
        names = tuple(name for name in names_in(directives) if UNKNOWN not in name)
        if not names or directives is None:
            return None
        return cls(names, directives.get("data_access") == ANYWHERE)


def placed_by(specs: Sequence[RequestSpec]) -> dict[str, str]:
    """Names that placement requests write, with the storages that they name."""
    return {
        checked_name(spec.destination_url): spec.destination_storage
        for spec in specs
        if is_logical(spec.destination_url)
        and spec.destination_storage
        and not spec.unknown & {"dest_url", "dest_storage"}
    }


def inputs_of_nodes(
    nodes_by_inputs: Mapping[NodeInputs, Sequence[NodeSpec]],
    dag: DagSpec,
    placed: Mapping[str, str],
    *,
    owner: User,
    done: Collection[str],
) -> tuple[Wanted | None, Wanted | None, str]:
    """What the nodes that are not done want near, what from anywhere, and the name of one of them.

    Where nodes, scripts or inner DAGs may place files, what is nowhere yet is not waited for.
    """
    names_done = set(done)
    names: tuple[dict[str, None], dict[str, None]] = {}, {}
    first = ""
    for inputs, nodes in nodes_by_inputs.items():
        is_open = (n.name for n in nodes if not n.is_done and n.name not in names_done)
        name = next(is_open, "")
        if name:
            first = first or name
            names[inputs.is_anywhere].update(dict.fromkeys(inputs.names))
    may_place = any(node.kind in _MAY_PLACE or node.scripts for node in dag.nodes.values())

    def wanted(found: Mapping[str, None], *, is_anywhere: bool) -> Wanted | None:
        kept = tuple(sorted(found)[:MOST_NAMES])
        if not kept:
            return None
        expected = tuple((name, placed[name]) for name in kept if name in placed)
        return Wanted(
            owner.username,
            kept,
            is_anywhere,
            not may_place,
            expected,
            is_of_dag=True,
            limited_to=owner.limited_to,
        )

    near, far = names
    return wanted(near, is_anywhere=False), wanted(far, is_anywhere=True), first


def stored_inputs(near: Wanted | None, far: Wanted | None, node: str) -> dict[str, Any]:
    """Columns of a DAG for its input data; no query for most DAGs, which have none.

    The caller has opened a transaction, in which the sets are held.
    """
    wanted = [each for each in (near, far) if each is not None]
    if not wanted:
        return {}
    known = shared_sets(wanted)
    return {
        "near_inputs_id": known[near].pk if near is not None else None,
        "far_inputs_id": known[far].pk if far is not None else None,
        "input_node": node,
    }
