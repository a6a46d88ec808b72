"""Allocations that requests of a DAG name: whether the DAG makes them, or its owner has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from wms.core.errors import Finding
from wms.core.models import User
from wms.dags.language.spec import DagSpec
from wms.dags.states import NodeKind
from wms.placement.allocations import own_allocations
from wms.placement.request_ad import RequestSpec
from wms.placement.states import RequestKind
from wms.placement.submission import no_allocation

#: Nodes with VARS of their own whose requests of one text are checked with the DAG.
MOST_CHECKED: Final = 1000


@dataclass(slots=True)
class NamedAllocations:
    """Names of the allocations that are made, and of each other one the finding that it is not.

    Not `is_whole`, a name is told by the site alone.
    """

    made: set[str] = field(default_factory=set)
    named: dict[str, Finding] = field(default_factory=dict)
    is_whole: bool = True

    def note(
        self,
        specs: Sequence[RequestSpec],
        placed: Callable[[list[Finding]], list[Finding]],
        *,
        file: str,
    ) -> None:
        """Note what some requests make and name."""
        for spec in specs:
            if spec.kind is RequestKind.ALLOCATE:
                self.made.add(spec.allocation)
                self.is_whole &= "allocation_id" not in spec.unknown
            elif spec.allocation and spec.allocation not in self.named:
                [self.named[spec.allocation]] = placed([no_allocation(spec, file=file)])

    def faults(
        self, owner: User, now: datetime, *, dag: DagSpec, files: Collection[str]
    ) -> list[Finding]:
        """Faults of allocations that nobody makes; a query or two where the DAG makes not all."""
        wanted = self.named.keys() - self.made
        if not wanted or not self.is_whole or not _is_all_read(dag, files):
            return []
        missing = wanted - own_allocations(owner, wanted, now)
        return [self.named[name] for name in sorted(missing)]


def _is_all_read(dag: DagSpec, files: Collection[str]) -> bool:
    """Whether every request of the DAG was looked at: others come later, or are too many."""
    nodes = dag.nodes.values()
    if any(node.kind is NodeKind.SUBDAG for node in nodes):
        return False
    sources = Counter(node.source for node in nodes if node.kind is NodeKind.DATA)
    return all(
        count <= MOST_CHECKED and (source in files or source in dag.descriptions)
        for source, count in sources.items()
    )
