"""Nodes of which a check would find what it found of a node before, so that it is not done again.

Most nodes of a large DAG differ from each other by their name and some values, which their jobs
are given as arguments.
"""

from __future__ import annotations

from wms.dags.language.plain_values import is_plain_word, names_of_plain_words
from wms.dags.language.spec import NodeSpec

#: Description, directory, and names of variables.
_Kind = tuple[str, str, tuple[str, ...]]


class LikeNodes:
    """Kinds of nodes that are alike but for plain words in their arguments, each with those that
    have been checked.
    """

    def __init__(self) -> None:
        self._nodes: dict[_Kind, list[NodeSpec] | None] = {}

    def is_new_kind(self, node: NodeSpec) -> bool:
        """Whether nothing has been noted about the node's kind."""
        kind = _kind(node)
        return kind is not None and kind not in self._nodes

    def add(self, node: NodeSpec, nodes: list[NodeSpec] | None) -> None:
        """Note what is known of the kind of a node without faults.

        `nodes` are those with the same needs, to which others of its kind belong too; None if
        their jobs differ in more than arguments.
        """
        if (kind := _kind(node)) is not None:
            self._nodes[kind] = nodes

    def nodes_with_needs_of(self, node: NodeSpec) -> list[NodeSpec] | None:
        """Nodes with the same needs as this one, if a check would find nothing else of it."""
        kind = _kind(node) if self._nodes else None
        return self._nodes.get(kind) if kind is not None else None


def _kind(node: NodeSpec) -> _Kind | None:
    """Kind of a node; None for one that may be unlike others of the same."""
    if node.retry is not None and node.retry.changes:
        return None
    names = names_of_plain_words(node.variables)
    if names is None or not is_plain_word(node.name):
        return None
    return node.source, node.directory, names
