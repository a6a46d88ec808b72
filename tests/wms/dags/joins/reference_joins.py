"""Reference evaluator of DAGs with conditions and joins, and random ones to compare with.

It knows neither time nor order: what becomes of a node follows from what became of its parents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

#: The conditions that are drawn, and what each says of a node's state, code and Yield.
CONDITIONS: dict[str, Callable[[str, int, float | None], bool]] = {
    "(ExitCode == 0)": lambda _, code, __: code == 0,
    '(State == "failed")': lambda state, _, __: state == "failed",
    "(ExitCode > 1 || Yield > 0.5)": lambda _, code, value: (
        code > 1 or (value is not None and value > 0.5)
    ),
    "(Nothing > 1)": lambda *_: False,
}
PLAIN, WEAK = "plain", "weak"


@dataclass(slots=True)
class JoinNode:
    """A node: what its arcs are, by parent; how many it needs; its code, and what it returns."""

    name: str
    arcs: dict[str, str] = field(default_factory=dict)
    needed: int | None = None
    code: int = 0
    value: float | None = None

    def lines(self) -> list[str]:
        """The node as a DAG file has it."""
        lines = [f"JOB {self.name} {self.name}.sub"]
        for parent, arc in self.arcs.items():
            weak, when = "WEAK " if arc == WEAK else "", f" WHEN {arc}" if arc in CONDITIONS else ""
            lines.append(f"{weak}PARENT {parent} CHILD {self.name}{when}")
        return lines + ([f"JOIN {self.name} {self.needed}"] if self.needed else [])


def states_of(nodes: list[JoinNode]) -> tuple[dict[str, str], bool]:
    """State that each node ends in, parents before children; and whether the DAG is a success."""
    states: dict[str, str] = {}
    by_name = {node.name: node for node in nodes}
    handled = {
        parent
        for node in nodes
        for parent, arc in node.arcs.items()
        if arc in CONDITIONS and _holds(arc, by_name[parent])
    }
    for node in nodes:
        verdicts = [
            _verdict(arc, by_name[parent], states[parent], is_handled=parent in handled)
            for parent, arc in node.arcs.items()
        ]
        needed = node.needed or len(verdicts)
        if verdicts.count("holds") >= needed:
            states[node.name] = "failed" if node.code else "done"
        elif len(verdicts) - verdicts.count("ruled out") < needed:
            states[node.name] = "skipped"
        else:
            states[node.name] = "futile"
    failed = {name for name, state in states.items() if state == "failed"}
    return states, failed <= handled and "futile" not in states.values()


def _holds(condition: str, parent: JoinNode) -> bool:
    return CONDITIONS[condition]("failed" if parent.code else "done", parent.code, parent.value)


def _verdict(arc: str, parent: JoinNode, state: str, *, is_handled: bool) -> str:
    if state in ("skipped", "futile"):
        return "ruled out" if state == "skipped" else "lost"
    if arc in CONDITIONS:
        return "holds" if _holds(arc, parent) else "ruled out"
    if state == "done" or arc == WEAK:
        return "holds"
    return "ruled out" if is_handled else "lost"


@st.composite
def dags_with_joins(draw: st.DrawFn) -> list[JoinNode]:
    """Up to six nodes; parents come before children."""
    nodes: list[JoinNode] = []
    for name in "ABCDEF"[: draw(st.integers(2, 6))]:
        parents = draw(st.sets(st.sampled_from([n.name for n in nodes]))) if nodes else set()
        kinds = st.sampled_from([PLAIN, PLAIN, WEAK, *CONDITIONS])
        arcs = {parent: draw(kinds) for parent in sorted(parents)}
        needed = draw(st.none() | st.integers(1, len(arcs))) if arcs else None
        code = draw(st.sampled_from([0, 0, 1, 3]))
        nodes.append(JoinNode(name, arcs, needed, code, draw(st.sampled_from([None, 0.2, 0.9]))))
    return nodes
