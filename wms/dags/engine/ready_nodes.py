"""Ready nodes as rows: thousands are read in each round, most of them for a few values only."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import QuerySet

from wms.dags.models import Node


class ReadyNode(NamedTuple):
    """What submitting a node depends on; the fields are those of `Node`, the last of its work."""

    pk: int
    name: str
    kind: str
    submit_description_id: int | None
    directory: str
    variables: dict[str, str]
    features: dict[str, Any] | None
    category: str
    retry_number: int
    pre_code: int | None


_COLUMNS = (*ReadyNode._fields[:-1], "work__pre_code")


def ready_nodes(nodes: QuerySet[Node]) -> list[ReadyNode]:
    """These nodes, in their order. One query."""
    return [ReadyNode(*row) for row in nodes.values_list(*_COLUMNS)]
