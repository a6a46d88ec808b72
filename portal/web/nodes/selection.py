"""Selection of DAG nodes on a page: by state, name, level, or position in the graph.

Position means the critical path, nodes that block most, or neighbours of a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils import timezone

from portal.shared.drawings import drawing_of, ends_by
from wms.core.errors import NotFound
from wms.dags.models import Dag, Node
from wms.dags.reading.drawing_analysis import longest_path, most_blocking_nodes
from wms.dags.reading.drawing_states import DRAWN, States
from wms.dags.states import NODE_TERMINAL, NodeState

#: Questions that the table of nodes answers, with the words of their links.
SHOWS = {
    "failing": "Failing: failed once, retrying",
    "blocking": "Blocking most others",
    "critical": "On the longest path",
    "never": "Will never run",
}
_MOST_BLOCKING = 200
_FAILING = Q(retry_number__gt=0) & ~Q(state__in=NODE_TERMINAL)


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """Node selection in an address; empty for all nodes."""

    state: str = ""
    show: str = ""
    text: str = ""
    level: int | None = None

    @property
    def is_everything(self) -> bool:
        """True for all nodes."""
        return self == NodeSelection()

    @property
    def is_searched(self) -> bool:
        """True when the drawing is searched for the nodes, which have an order of their own."""
        return self.level is not None or self.show in ("blocking", "critical")


def selection_of(query: QueryDict) -> NodeSelection:
    """Selection in the address. Raises NotFound for unknown values."""
    state, show, level = query.get("nodes", ""), query.get("show", ""), query.get("level", "")
    if state and state not in NodeState.values:
        raise NotFound(f"There is no node state {state!r}.")
    if show and show not in SHOWS:
        raise NotFound(f"There is no selection of nodes called {show!r}.")
    if level and not (level.isascii() and level.isdigit() and 0 < int(level[:9]) < 10**8):
        raise NotFound(f"There is no level {level!r}.")
    return NodeSelection(state, show, query.get("q", "").strip(), int(level[:9]) if level else None)


def chosen_rows(nodes: QuerySet[Node], choice: NodeSelection) -> QuerySet[Node]:
    """Nodes that match the selection by their columns."""
    if choice.state:
        nodes = nodes.filter(state=choice.state)
    if choice.text:
        nodes = nodes.filter(name__icontains=choice.text)
    if choice.show == "failing":
        return nodes.filter(_FAILING)
    return nodes.filter(state=NodeState.FUTILE) if choice.show == "never" else nodes


@dataclass(frozen=True, slots=True)
class FoundNodes:
    """Nodes found in the drawing, in display order.

    `notes` say something of each, by its id; `remark` of all.
    """

    ids: Sequence[int]
    notes: dict[int, str] = field(default_factory=dict)
    remark: str = ""


def search_nodes(dag: Dag, states: States, choice: NodeSelection) -> FoundNodes:
    """Nodes selected by their position in the graph and by their state."""
    drawing, codes = drawing_of(dag), states.codes
    notes: dict[int, str] = {}
    remark = ""
    if choice.show == "blocking":
        found = most_blocking_nodes(drawing, codes)
        about = "" if found.is_exact else "about "
        shown = found.nodes[:_MOST_BLOCKING]
        indexes = [index for index, _ in shown]
        notes = {drawing.id_of(index): f"{about}{count} wait" for index, count in shown}
        if len(found.nodes) > _MOST_BLOCKING:
            remark = f"The first {_MOST_BLOCKING} of {len(found.nodes)}."
        if not found.is_exact:
            remark += " The numbers are estimated from a sample of the nodes that are not done."
    elif choice.show == "critical":
        begun = (dag.matched_at or dag.created_at).timestamp()
        ends = ends_by(dag, states, begun=begun, now=timezone.now().timestamp())
        indexes = longest_path(ends)
        remark = (
            "Each of them waited longest for the one before it; for those that have not ended, the "
            "mean time of the others is assumed."
        )
    else:
        wanted = (choice.level or 1) - 1
        indexes = [index for index, level in enumerate(drawing.levels) if level == wanted]
        indexes.sort(key=drawing.orders.__getitem__)
    if choice.state:
        wanted_codes = _codes_of(choice.state)
        indexes = [index for index in indexes if codes[index] in wanted_codes]
    return FoundNodes([drawing.id_of(index) for index in indexes], notes, remark)


def _codes_of(state: str) -> set[int]:
    """Drawing codes of a node state; a submitted node may be drawn in its job's state."""
    codes_of_jobs = range(len(NodeState.values), len(DRAWN))
    own = {DRAWN.index(state)}
    return own | set(codes_of_jobs) if state == NodeState.SUBMITTED else own
