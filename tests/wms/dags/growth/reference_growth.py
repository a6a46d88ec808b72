"""Random DAGs that grow, and a plain model of what becomes of them, without time and order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st


@dataclass(slots=True)
class GrowingNode:
    """A node: its parents in its own file, its code, and the passes or the fragment after it."""

    name: str
    parents: list[str] = field(default_factory=list)
    code: int = 0
    passes: int = 1
    fragment: list[GrowingNode] | None = None


def text_of(nodes: Sequence[GrowingNode]) -> str:
    """The nodes as a DAG file, or a fragment, has them."""
    lines = [f"JOB {node.name} {node.name}.sub" for node in nodes]
    lines += [f"PARENT {p} CHILD {node.name}" for node in nodes for p in node.parents]
    for node in nodes:
        if node.fragment is not None:
            lines.append(f"EXPAND {node.name} {node.name}.dag")
        elif node.passes > 1:
            lines.append(f"REPEAT {node.name} WHILE (Pass < {node.passes}) MAX 9")
    return "\n".join([*lines, ""])


def fragments_in(nodes: Sequence[GrowingNode]) -> Iterator[tuple[str, str]]:
    """Names and texts of all fragments, however deep."""
    for node in nodes:
        if node.fragment is not None:
            yield f"{node.name}.dag", text_of(node.fragment)
            yield from fragments_in(node.fragment)


def states_of(nodes: Sequence[GrowingNode]) -> dict[str, str]:
    """The state of each node in the end, of those included by which the DAG has grown."""
    parents = {node.name: set(node.parents) for node in nodes}
    waiting = list(nodes)
    states: dict[str, str] = {}
    while waiting:
        node = next(each for each in waiting if parents[each.name] <= states.keys())
        waiting.remove(node)
        is_free = all(states[name] == "done" for name in parents[node.name])
        states[node.name] = ("error" if node.code else "done") if is_free else "futile"
        if states[node.name] != "done":
            continue
        new = list(node.fragment or [])
        first, _, number = node.name.partition("#")
        if int(number or 1) < node.passes:
            new = [GrowingNode(f"{first}#{int(number or 1) + 1}", passes=node.passes)]
        inner = {parent for each in new for parent in each.parents}
        leaves = {each.name for each in new} - inner
        for above in parents.values():
            if leaves and node.name in above:
                above.remove(node.name)
                above |= leaves
        parents |= {each.name: set(each.parents) or {node.name} for each in new}
        waiting += new
    return states


@st.composite
def dags_that_grow(draw: st.DrawFn, prefix: str = "n", depth: int = 2) -> list[GrowingNode]:
    """A DAG of up to four nodes, or a fragment, which may have fragments in turn."""
    nodes: list[GrowingNode] = []
    for number in range(draw(st.integers(1 if depth == 2 else 0, 4 if depth == 2 else 3))):
        before = [node.name for node in nodes]
        node = GrowingNode(
            f"{prefix}{number}",
            draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else [],
            draw(st.sampled_from([0, 0, 0, 0, 0, 1])),
        )
        grows = draw(st.sampled_from(["", "pass", "fragment", "fragment"]))
        if grows == "pass":
            node.passes = draw(st.integers(2, 4))
        elif grows and depth:
            node.fragment = draw(dags_that_grow(f"{node.name}x", depth - 1))
        nodes.append(node)
    return nodes
