"""Growth that a rescue tells of, done again to the parsed DAG files of a further run.

So nodes that a run grew by are nodes of the next one from its beginning, done ones included, and
what was decided is not asked again. Of fragments the copies are read.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Finding
from wms.core.models import User
from wms.dags.growth.fragments import check_fragment, leaves_of, roots_of
from wms.dags.growth.records import Insertion, write_insertions
from wms.dags.language.commands.growth import next_pass
from wms.dags.language.graph_shape import find_cycle, graph_of
from wms.dags.language.origin import Origin
from wms.dags.language.size_limits import MAX_FINDINGS
from wms.dags.language.spec import (
    ArcCondition,
    Arcs,
    DagSpec,
    Expansion,
    JoinRule,
    NodeSpec,
    Repeat,
)
from wms.dags.models import Dag, Node
from wms.dags.rescue.text import GrowthLine
from wms.dags.states import GrowthKind
from wms.dags.submission.checking import CheckedDag
from wms.jobs.models import Workspace


@dataclass(frozen=True, slots=True)
class Resumed:
    """An insertion that a rescue tells of, its nodes, and the position of the first one."""

    line: GrowthLine
    names: Sequence[str]
    first: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What fragments are read from and checked with: those of their DAG."""

    workspace: Workspace
    owner: User
    origin: Origin


def grow_from_rescue(
    checked: CheckedDag, lines: Sequence[GrowthLine], file: str, around: Surroundings
) -> tuple[list[Resumed], list[Finding]]:
    """Add to a DAG what a rescue says that it grew by; the insertions, and faults of the lines."""
    if not lines:
        return [], []
    growing = _GrowingSpec(checked, around)
    done: list[Resumed] = []
    for line in lines:
        first = growing.size
        names, faults = growing.add(line)
        if faults:
            return [], [each if each.file else _at(each, file, line) for each in faults]
        done.append(Resumed(line, names, first))
    growing.finish()
    if cycle := growing.cycle():
        message = f"what the DAG grew by makes a cycle with it: {' -> '.join(cycle[:20])}"
        return [], [_at(Finding(message), file, lines[-1])]
    return done, []


def _at(fault: Finding, file: str, line: GrowthLine) -> Finding:
    return replace(fault, file=file, line=line.number, command="GROW")


def record_resumed(dag: Dag, resumed: Sequence[Resumed], *, actor: Actor) -> None:
    """Write the insertions of a new DAG that it has from its beginning."""
    if not resumed:
        return
    named = Node.objects.filter(dag=dag, name__in=[each.line.node for each in resumed])
    nodes = {node.name: node for node in named}
    insertions = [
        Insertion(
            GrowthKind(each.line.kind),
            nodes.get(each.line.node),
            each.names,
            "an earlier run grew by it",
            path=each.line.file,
            after=each.line.after,
            before=each.line.before,
        )
        for each in resumed
    ]
    write_insertions(dag, resumed[0].first + 1, insertions, actor=actor)


class _GrowingSpec:
    """A parsed DAG to which nodes are added; its arcs are written back by `finish`."""

    def __init__(self, checked: CheckedDag, around: Surroundings) -> None:
        self._checked = checked
        self._around = around
        self._spec: DagSpec = checked.dag
        self._positions = {name: at for at, name in enumerate(self._spec.nodes)}
        self._children: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for arc in self._spec.arcs:
            self._children[arc.parent].append((arc.child, arc.is_weak))
        self._parent_counts = Counter(self._spec.arcs.children)
        self._conditions: dict[int, dict[int, ArcCondition]] = defaultdict(dict)
        for (parent, child), rule in self._spec.conditions.items():
            self._conditions[parent][child] = rule
        self._needs = {
            node.name: needs for needs, nodes in checked.nodes_by_needs.items() for node in nodes
        }

    @property
    def size(self) -> int:
        """Number of nodes, which is the position of the next one."""
        return len(self._positions)

    def add(self, line: GrowthLine) -> tuple[list[str], list[Finding]]:
        """Add the nodes of a line; their names, or faults. One without a file is of the line."""
        if line.kind == GrowthKind.HAND:
            return self._add_by_hand(line)
        node = self._spec.nodes.get(line.node)
        if node is None:
            return [], [Finding(f"the DAG has no node {line.node[:255]}")]
        if line.kind == GrowthKind.PASS:
            fault = self._fault_of_pass(node)
            return ([], [Finding(fault)]) if fault else (self._add_pass(node), [])
        if not isinstance(node.grows, Expansion):
            return [], [Finding(f"node {node.name} has no EXPAND line")]
        behind = self._positions[node.name]
        return self._read_fragment(
            line, node.directory, lambda spec: self._insert_after(spec, behind)
        )

    def _add_by_hand(self, line: GrowthLine) -> tuple[list[str], list[Finding]]:
        unknown = [name for name in (*line.after, *line.before) if name not in self._positions]
        if unknown:
            return [], [Finding(f"the DAG has no node {unknown[0][:255]}")]
        after, before = (
            [self._positions[name] for name in names] for names in (line.after, line.before)
        )
        directory = self._around.origin.directory
        return self._read_fragment(
            line, directory, lambda spec: self._insert_between(spec, after, before)
        )

    def _fault_of_pass(self, node: NodeSpec) -> str:
        if not isinstance(node.grows, Repeat):
            return f"node {node.name} has no REPEAT line"
        if node.grows.pass_number >= node.grows.most:
            return f"node {node.name} is the last pass that its REPEAT line allows"
        following = next_pass(node).name
        if following in self._spec.nodes:
            return f"the DAG has a node {following} already"
        return self._room_fault(1)

    def _room_fault(self, count: int) -> str:
        most = conf().max_dag_nodes
        return f"a DAG has at most {most} nodes" if self.size + count > most else ""

    def _add_pass(self, before: NodeSpec) -> list[str]:
        """Add the pass after this one, in its place."""
        at = self._positions[before.name]
        node = next_pass(before)
        new = self._add(node)
        needs = self._needs.get(before.name)
        if needs is not None:
            self._needs[node.name] = needs
            self._checked.nodes_by_needs[needs].append(node)
        self._children[new] = self._children.pop(at, [])
        self._children[at] = [(new, False)]
        if at in self._conditions:
            self._conditions[new] = self._conditions.pop(at)
        return [node.name]

    def _read_fragment(
        self, line: GrowthLine, directory: str, insert: Callable[[DagSpec], None]
    ) -> tuple[list[str], list[Finding]]:
        fragment = check_fragment(
            line.file,
            workspace=self._around.workspace,
            owner=self._around.owner,
            origin=replace(self._around.origin, directory=directory),
            binding=self._checked.description.binding,
        )
        spec = fragment.dag
        faults = fragment.findings or [
            Finding(f"the DAG has a node {name} already", *each.location)
            for name, each in spec.nodes.items()
            if name in self._spec.nodes
        ]
        if fault := self._room_fault(len(spec.nodes)):
            faults = [Finding(fault)]
        if faults:
            return [], faults[:MAX_FINDINGS]
        if spec.nodes:
            insert(spec)
            self._take_over(fragment)
        return list(spec.nodes), []

    def _insert(self, spec: DagSpec) -> int:
        """Insert nodes and what is between them; the position of the first one."""
        offset = self.size
        for node in spec.nodes.values():
            self._add(node)
        for arc in spec.arcs:
            self._children[offset + arc.parent].append((offset + arc.child, arc.is_weak))
        for (parent, child), condition in spec.conditions.items():
            self._conditions[offset + parent][offset + child] = condition
        for at, rule in spec.joins.items():
            self._spec.joins[offset + at] = rule
        return offset

    def _insert_between(self, spec: DagSpec, after: Sequence[int], before: Sequence[int]) -> None:
        """Insert nodes behind some and before others."""
        offset = self._insert(spec)
        leaves = leaves_of(spec)
        for parent in after:
            self._children[parent] += [(offset + at, False) for at in roots_of(spec)]
        for at in leaves:
            self._children[offset + at] += [(child, False) for child in before]
        for child in before:
            self._widen_join(child, len(leaves))

    def _insert_after(self, spec: DagSpec, behind: int) -> None:
        """Insert nodes behind one, whose arcs without a condition their last nodes take over."""
        offset = self._insert(spec)
        decided = self._conditions.get(behind, {})
        arcs = self._children[behind]
        handed = [arc for arc in arcs if arc[0] not in decided]
        self._children[behind] = [
            *(arc for arc in arcs if arc[0] in decided),
            *((offset + at, False) for at in roots_of(spec)),
        ]
        leaves = leaves_of(spec)
        for at in leaves:
            self._children[offset + at] = list(handed)
        for child, _ in handed:
            self._widen_join(child, len(leaves) - 1)

    def _widen_join(self, child: int, more: int) -> None:
        """Let a node that needed all of its arcs need the further ones, too."""
        rule = self._spec.joins.get(child)
        if rule is not None and rule.needed == self._parent_counts[child]:
            self._spec.joins[child] = JoinRule(None, rule.location)
        self._parent_counts[child] += more

    def _take_over(self, fragment: CheckedDag) -> None:
        """Take over what else a fragment has: descriptions, limits, needs, gates."""
        checked, spec, new = self._checked, self._spec, fragment.dag
        checked.submit_files = {**fragment.submit_files, **checked.submit_files}
        checked.warnings += fragment.warnings
        for needs, nodes in fragment.nodes_by_needs.items():
            checked.nodes_by_needs.setdefault(needs, []).extend(nodes)
            self._needs.update((node.name, needs) for node in nodes)
        spec.descriptions.update(new.descriptions)
        spec.categories = {**new.categories, **spec.categories}
        spec.tolerances = {**new.tolerances, **spec.tolerances}
        spec.gates += new.gates

    def _add(self, node: NodeSpec) -> int:
        at = self.size
        self._positions[node.name] = at
        self._spec.nodes[node.name] = node
        return at

    def cycle(self) -> list[str]:
        """Names along a cycle, as a rescue that was changed by hand may make one."""
        names = list(self._spec.nodes)
        return [names[at] for at in find_cycle(graph_of(len(names), self._spec.arcs))]

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
