"""Growth that a rescue tells of, done again to the parsed DAG files of a further run.

So nodes that a run grew by are nodes of the next one from its beginning, done ones included, and
what was decided is not asked again.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Finding
from wms.dags.growth.records import Insertion, write_insertions
from wms.dags.language.growth import next_pass
from wms.dags.language.size_limits import MAX_FINDINGS
from wms.dags.language.spec import ArcCondition, Arcs, DagSpec, NodeSpec, Repeat
from wms.dags.models import Dag, Node
from wms.dags.rescue.text import GrowthLine
from wms.dags.states import GrowthKind
from wms.dags.submission.checking import CheckedDag


@dataclass(frozen=True, slots=True)
class Resumed:
    """An insertion that a rescue tells of: the node before, and the names of the new ones."""

    kind: GrowthKind
    node: str
    names: Sequence[str]


def grow_from_rescue(
    checked: CheckedDag, lines: Sequence[GrowthLine], file: str
) -> tuple[list[Resumed], list[Finding]]:
    """Add to a DAG what a rescue says that it grew by; the insertions, and faults of the lines."""
    if not lines:
        return [], []
    growing = _GrowingSpec(checked)
    done: list[Resumed] = []
    findings: list[Finding] = []
    for line in lines:
        fault = growing.fault_of_pass(line.node)
        if fault:
            findings.append(Finding(fault, file=file, line=line.number, command="GROW"))
            if len(findings) == MAX_FINDINGS:
                break
        else:
            name = growing.add_pass(line.node)
            done.append(Resumed(GrowthKind.PASS, line.node, [name]))
    growing.finish()
    return done, findings


def record_resumed(dag: Dag, resumed: Sequence[Resumed], *, actor: Actor) -> None:
    """Write the insertions of a new DAG that it has from its beginning."""
    if not resumed:
        return
    first = Node.objects.values_list("ordinal", flat=True).get(dag=dag, name=resumed[0].names[0])
    named = Node.objects.filter(dag=dag, name__in=[each.node for each in resumed])
    nodes = {node.name: node for node in named}
    reason = "an earlier run grew by it"
    insertions = [Insertion(each.kind, nodes[each.node], each.names, reason) for each in resumed]
    write_insertions(dag, first, insertions, actor=actor)


class _GrowingSpec:
    """A parsed DAG to which nodes are added; its arcs are written back by `finish`."""

    def __init__(self, checked: CheckedDag) -> None:
        self._checked = checked
        self._spec: DagSpec = checked.dag
        self._positions = {name: at for at, name in enumerate(self._spec.nodes)}
        self._children: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for arc in self._spec.arcs:
            self._children[arc.parent].append((arc.child, arc.is_weak))
        self._conditions: dict[int, dict[int, ArcCondition]] = defaultdict(dict)
        for (parent, child), rule in self._spec.conditions.items():
            self._conditions[parent][child] = rule
        self._needs = {
            node.name: needs for needs, nodes in checked.nodes_by_needs.items() for node in nodes
        }

    def fault_of_pass(self, name: str) -> str:
        """Why no pass can follow the node of this name; empty if one can."""
        node = self._spec.nodes.get(name)
        if node is None:
            return f"the DAG has no node {name[:255]}"
        if not isinstance(node.grows, Repeat):
            return f"node {name} has no REPEAT line"
        if node.grows.pass_number >= node.grows.most:
            return f"node {name} is the last pass that its REPEAT line allows"
        following = next_pass(node).name
        if following in self._spec.nodes:
            return f"the DAG has a node {following} already"
        if len(self._spec.nodes) >= conf().max_dag_nodes:
            return f"a DAG has at most {conf().max_dag_nodes} nodes"
        return ""

    def add_pass(self, name: str) -> str:
        """Add the pass after the one of this name, in its place; returns the new name."""
        at = self._positions[name]
        node = next_pass(self._spec.nodes[name])
        new = self._add(node)
        needs = self._needs.get(name)
        if needs is not None:
            self._needs[node.name] = needs
            self._checked.nodes_by_needs[needs].append(node)
        self._children[new] = self._children.pop(at, [])
        self._children[at] = [(new, False)]
        if at in self._conditions:
            self._conditions[new] = self._conditions.pop(at)
        return node.name

    def _add(self, node: NodeSpec) -> int:
        at = len(self._positions)
        self._positions[node.name] = at
        self._spec.nodes[node.name] = node
        return at

    def finish(self) -> None:
        """Write arcs and conditions back."""
        arcs = [
            (parent, child, is_weak)
            for parent in sorted(self._children)
            for child, is_weak in sorted(self._children[parent])
        ]
        self._spec.arcs = Arcs(
            array("I", [parent for parent, _, _ in arcs]),
            array("I", [child for _, child, _ in arcs]),
            bytearray(is_weak for _, _, is_weak in arcs),
        )
        self._spec.conditions = {
            (parent, child): rule
            for parent, rules in self._conditions.items()
            for child, rule in rules.items()
        }
