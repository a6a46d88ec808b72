"""Needs of a DAG's nodes as they are stored with it, for the negotiation: few, and the largest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

from matching.task_queues.largest_needs import largest_needs
from matching.task_queues.needs import Needs
from wms.dags.language.spec import NodeSpec

#: So many needs of a DAG are kept; with more, the engine finds out that a site does not meet one.
MOST_NEEDS = 100
#: The DAG has these itself.
_OF_DAG = ("owner", "owner_group")
_DEFAULTS = {each.name: each.default for each in fields(Needs)}


def stored_needs(
    nodes_by_needs: Mapping[Needs, Sequence[NodeSpec]], *, done: Collection[str]
) -> dict[str, Any]:
    """Columns of a DAG for the needs of its nodes that are not done, largest amounts first.

    Each need has one node that has it. Needs that are met wherever others are, are left out.
    """
    names = set(done)
    first: dict[Needs, str] = {}
    for needs, nodes in nodes_by_needs.items():
        open_nodes = (node.name for node in nodes if not node.is_done and node.name not in names)
        name = next(open_nodes, None)
        if name is not None:
            first[needs] = name
    kept = sorted(
        largest_needs(first),
        key=lambda needs: (-needs.memory_mb, -needs.cores, -needs.gpus, -needs.cpu_time_s),
    )[:MOST_NEEDS]
    return {
        "node_needs": [_given(needs) for needs in kept],
        "need_nodes": [first[needs] for needs in kept],
    }


def with_more_needs(
    needs: Sequence[Mapping[str, Any]],
    nodes: Sequence[str],
    more: Mapping[Needs, Sequence[NodeSpec]],
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Stored needs of a DAG that has grown, with a node for each; those before come first."""
    new = stored_needs(more, done=())
    added = [
        (each, name)
        for each, name in zip(new["node_needs"], new["need_nodes"], strict=True)
        if each not in needs
    ]
    pairs = [*zip(needs, nodes, strict=True), *added][:MOST_NEEDS]
    return [each for each, _ in pairs], [name for _, name in pairs]


def _given(needs: Needs) -> dict[str, Any]:
    """Needs that differ from the defaults, without what the DAG has itself."""
    return {
        name: value
        for name, value in needs.as_dict().items()
        if name not in _OF_DAG and getattr(needs, name) != _DEFAULTS[name]
    }
