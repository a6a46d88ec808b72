"""Nodes of a DAG whose definition an edit changes, and what follows them.

The definition of a node is what it runs, and with what: kind, directory, VARS, scripts, commands
of its description, the arcs to it, and the edited files that these name. How often and how soon
it runs, and its limits, say nothing about the result of a node that is done.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from wms.dags.language.plain_values import texts_of
from wms.dags.language.spec import DagSpec, NodeSpec
from wms.dags.resubmission.versions import Version
from wms.dags.states import NodeKind
from wms.jobs.description.submit_file import SubmitFile

_MACRO = re.compile(r"\$\$?[A-Za-z]*\([^()]*\)|\$[A-Za-z_]+")
_SEPARATOR = re.compile(r"[\s,]+")
_GLOB = re.compile(r"([\[\]?])")
_FILE_COMMANDS = (
    "executable", "transfer_input_files", "common_input_files", "public_input_files", "input",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of an edit on nodes that are done, by their names in the order of the DAG.

    Of `changed` the definition is another, or they are to run behind other nodes than before;
    `following` come after them, or after nodes that are new; `gone` are not in the DAG any more.
    """

    changed: tuple[str, ...] = ()
    following: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def effect_of(
    old: Version, new: Version, *, edited: Collection[str], done: Collection[str]
) -> Effect:
    """Effect of an edit on nodes that are done; `edited` are the paths of changed files."""
    changed = set(_changed(old, new, edited))
    fresh = new.dag.nodes.keys() - old.dag.nodes.keys()
    following = _descendants(new.dag, changed | fresh) - changed
    known = set(done)
    names = [name for name in new.dag.nodes if name in known]
    return Effect(
        changed=tuple(name for name in names if name in changed),
        following=tuple(name for name in names if name in following),
        gone=tuple(sorted(known - new.dag.nodes.keys())),
    )


def _changed(old: Version, new: Version, edited: Collection[str]) -> Iterator[str]:
    """Names of nodes that are in both versions, and not the same."""
    comparison = _Comparison(old, new, edited)
    parents_before = _parents(old.dag)
    parents_now = _parents(new.dag)
    nothing: set[str] = set()
    for name, node in new.dag.nodes.items():
        before = old.dag.nodes.get(name)
        if before is None:
            continue
        has_more = not parents_now.get(name, nothing) <= parents_before.get(name, nothing)
        if has_more or comparison.differ(before, node):
            yield name


def _parents(dag: DagSpec) -> dict[str, set[str]]:
    names = list(dag.nodes)
    parents: dict[str, set[str]] = defaultdict(set)
    for parent, child in zip(dag.arcs.parents, dag.arcs.children, strict=True):
        parents[names[child]].add(names[parent])
    return parents


def _descendants(dag: DagSpec, roots: Collection[str]) -> set[str]:
    """Names of the nodes below these."""
    if not roots:
        return set()
    names = list(dag.nodes)
    children: dict[int, list[int]] = defaultdict(list)
    for parent, child in zip(dag.arcs.parents, dag.arcs.children, strict=True):
        children[parent].append(child)
    todo = deque(at for at, name in enumerate(names) if name in roots)
    found: set[int] = set()
    while todo:
        for child in children.get(todo.popleft(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return {names[at] for at in found}


@dataclass(slots=True)
class _Comparison:
    """Comparison of nodes; what nodes of one description share is compared once."""

    old: Version
    new: Version
    edited: Collection[str]
    _sources: dict[tuple[str, str], bool] = field(default_factory=dict)
    _reads: dict[tuple[str, str], bool] = field(default_factory=dict)

    def differ(self, before: NodeSpec, now: NodeSpec) -> bool:
        """Whether a node runs something else than before."""
        return (
            _own(before) != _own(now)
            or self._has_other_source(before, now)
            or self._names_edited_file(now)
        )

    def _has_other_source(self, before: NodeSpec, now: NodeSpec) -> bool:
        key = before.source, now.source
        if key not in self._sources:
            self._sources[key] = self._differ(before, now)
        return self._sources[key]

    def _differ(self, before: NodeSpec, now: NodeSpec) -> bool:
        if now.kind is NodeKind.SUBDAG:
            # Which files the DAG inside reads is not known here.
            return before.source != now.source or bool(self.edited)
        described = self.old.submit_files.get(before.source), self.new.submit_files.get(now.source)
        if None not in described:
            return _content(described[0]) != _content(described[1])
        inline = (
            self.old.dag.descriptions.get(before.source),
            self.new.dag.descriptions.get(now.source),
        )
        if inline[0] is not None and inline[1] is not None:
            return inline[0].text != inline[1].text
        return before.source != now.source or now.source in self.edited

    def _names_edited_file(self, node: NodeSpec) -> bool:
        if not self.edited:
            return False
        for script in (node.scripts or {}).values():
            # One that is a macro alone is the name of the node, a code or a count.
            told = [each for each in script.arguments if _MACRO.sub("", each)]
            named = [script.executable, *told]
            if any(self._is_edited(node.directory, each) for each in named):
                return True
        key = node.source, node.directory
        if key not in self._reads:
            described = self.new.submit_files.get(node.source)
            self._reads[key] = described is not None and any(
                self._is_edited(node.directory, name) for name in _file_names(described)
            )
        return self._reads[key]

    def _is_edited(self, directory: str, name: str) -> bool:
        """Whether a name, in which macros stand for anything, may be that of an edited file."""
        path = posixpath.normpath(posixpath.join(directory, name))
        if "$" not in path:
            return any(each == path or each.startswith(f"{path}/") for each in self.edited)
        pattern = _MACRO.sub("*", _GLOB.sub(r"[\1]", path))
        pattern = "*" if "$" in pattern else pattern
        return any(
            fnmatchcase(each, pattern) or fnmatchcase(each, f"{pattern}/*") for each in self.edited
        )


def _own(node: NodeSpec) -> tuple[Any, ...]:
    """Definition of a node by the DAG file alone."""
    scripts = {
        kind: (each.executable, each.arguments, each.defer_status)
        for kind, each in (node.scripts or {}).items()
    }
    grows = node.grows
    return (
        node.kind,
        node.directory,
        node.is_noop,
        node.pre_skip,
        texts_of(node.variables),
        scripts,
        type(grows),
        getattr(grows, "text", getattr(grows, "path", "")),
    )


def _content(described: SubmitFile | None) -> tuple[Any, ...]:
    """Commands of a description, wherever in the file they stand."""
    assert described is not None
    queues = [
        {name: value for name, value in queue.as_dict().items() if name != "line"}
        for queue in described.queues
        if not queue.is_single
    ]
    return described.commands, described.attributes, queues, len(described.queues)


def _file_names(described: SubmitFile) -> Iterator[str]:
    """Names of files in a description, relative to the directory of its node."""
    initial = described.commands.get("initialdir", "").strip().strip('"')
    for queue in described.queues:
        if queue.file:
            yield queue.file
    every = [described.commands, *(queue.commands for queue in described.queues)]
    for commands in every:
        for command in _FILE_COMMANDS:
            names = _SEPARATOR.split(commands.get(command, "").strip())
            for name in (each.strip('"') for each in names):
                if name and "://" not in name:
                    # Programs are looked up in the directory of the node.
                    yield name if command == "executable" else posixpath.join(initial, name)
