"""Checking the nodes of a DAG with their descriptions, as far as can be known without the site."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matching.deadline import Deadline
from matching.needs import Needs
from matching.substitution import uses_macros
from wms.core.errors import Finding
from wms.dags.description.needs import MAX_DIFFERENT_NEEDS
from wms.dags.description.rendering import CannotRender, Identity, NodeContext, Renderer
from wms.dags.description.retry_changes import change_fault
from wms.dags.description.source_places import place_of, text_of
from wms.dags.description.submit_file import SubmitFile
from wms.dags.language.bounds import MAX_FINDINGS
from wms.dags.language.faults import too_late
from wms.dags.language.spec import DagSpec, NodeSpec
from wms.dags.states import NodeKind
from wms.dags.submission.time_warnings import Durations, time_warnings
from wms.dags.submission.warnings import warnings_of
from wms.sites.vocabulary import Vocabulary

#: Nodes that run something other than jobs of a description.
_OTHERS = frozenset({NodeKind.SUBDAG, NodeKind.DATA})
#: So many jobs of a list are looked at for the first node of a description; then one of each.
_MOST_OF_LIST = 1000
#: Of the names of inputs and outputs so many characters are kept; what a name takes besides.
_MOST_TEXT_OF_NAMES = 512 * 1024 * 1024
_COST_OF_NAME = 64


def check_nodes(
    dag: DagSpec,
    submit_files: Mapping[str, SubmitFile],
    *,
    uploaded: Collection[str],
    owner_name: str,
    group_name: str,
    cpu_segments_s: Sequence[int],
    words: Vocabulary | None,
    allow_missing_files: bool = False,
    patience: Deadline | None = None,
) -> tuple[list[Finding], list[Finding]]:
    """What is wrong with the nodes, and what may not be meant, each once, with its file and line.

    What depends on the site is known only after the match. Nodes whose description is not there, or
    has faults itself, are left out. `words` are those that sites and queues offer today.
    When patience ends, so does the check, and it is a fault.
    """
    patience = patience or Deadline(None, 0)
    identity = Identity(owner=owner_name, group=group_name, cpu_segments_s=cpu_segments_s)
    checker = _Checker(submit_files, identity, patience)
    for count, node in enumerate(dag.nodes.values()):
        if patience.is_over:
            message = f"{too_late(patience)}: {count} of {len(dag.nodes)} nodes were looked at"
            checker.faults.append(Finding(message, *node.place))
            return checker.faults[-MAX_FINDINGS:], []
        if node.kind in _OTHERS or node.is_noop or node.source not in submit_files:
            continue
        checker.check(node)
        if checker.has_enough:
            checker.knows_all_made = False
            break
    # What a node at fault makes is not known: nothing is said of what it might have made.
    missing = checker.files.missing(submit_files, uploaded) if checker.knows_all_made else []
    warnings = warnings_of(dag, submit_files, checker.needs.items(), words, patience)
    longest_s = words.longest_s if words else None
    told = time_warnings(submit_files, checker.needs.items(), checker.durations, longest_s)
    warnings = [*told, *warnings][:MAX_FINDINGS]
    # Nodes that share a description share its faults.
    faults = list(dict.fromkeys(checker.faults))[:MAX_FINDINGS]
    if allow_missing_files or _may_make_files(dag, submit_files):
        return faults, [*missing, *warnings][:MAX_FINDINGS]
    return [*faults, *missing][:MAX_FINDINGS], warnings


def _may_make_files(dag: DagSpec, submit_files: Mapping[str, SubmitFile]) -> bool:
    """Whether something other than jobs with known outputs may put files into the workspace."""
    return any(
        node.scripts
        or node.kind in _OTHERS
        or (node.source not in submit_files and not node.is_noop)
        for node in dag.nodes.values()
    )


class _Checker:
    """Looks at one node after the other; what they share is looked at once."""

    def __init__(
        self, submit_files: Mapping[str, SubmitFile], identity: Identity, patience: Deadline
    ) -> None:
        self.faults: list[Finding] = []
        self.needs: dict[Needs, NodeSpec] = {}
        #: Whether each node's outputs are known; else somebody has a fault to mend first.
        self.knows_all_made = True
        self.files = _FileNames()
        self.durations = Durations()
        self._submit_files = submit_files
        self._identity = identity
        self._patience = patience
        self._renderers: dict[str, Renderer | None] = {}
        self._last: Needs | None = None

    @property
    def has_enough(self) -> bool:
        """Whether so much is wrong that the rest need not be looked at."""
        return len(self.faults) >= MAX_FINDINGS or len(self.needs) > MAX_DIFFERENT_NEEDS

    def check(self, node: NodeSpec) -> None:
        """Take in the faults, the needs and the files of a node."""
        source = node.source
        is_first = source not in self._renderers
        if is_first:
            self._renderers[source] = self._renderer(self._submit_files[source])
            self.files.add_lists(node, self._submit_files[source])
        renderer = self._renderers[source]
        if renderer is None:
            self.knows_all_made = False
            return
        context = _context(node)
        try:
            for fields in renderer.fields(context, most=_MOST_OF_LIST if is_first else 1):
                self._take(node, fields)
                if self._patience.is_over:
                    self.knows_all_made = False
                    return
        except CannotRender as error:
            self.knows_all_made = False
            self._add(error, node)
            return
        try:
            if node.retry is not None and node.retry.changes:
                self._check_changes(node, renderer)
        except CannotRender as error:
            self._add(error, node)

    def _renderer(self, submit_file: SubmitFile) -> Renderer | None:
        return None if submit_file.findings else Renderer(submit_file, self._identity)

    def _take(self, node: NodeSpec, fields: Mapping[str, Any]) -> None:
        self.files.add(node, fields)
        self.durations.add(node, fields)
        needs = fields["needs"]
        if needs is self._last or needs in self.needs:
            return
        self._last = needs
        self.needs[needs] = node
        if len(self.needs) > MAX_DIFFERENT_NEEDS:
            message = f"the nodes of a DAG have at most {MAX_DIFFERENT_NEEDS} different needs"
            self.faults.append(Finding(message, *node.place))

    def _check_changes(self, node: NodeSpec, renderer: Renderer) -> None:
        """What RETRY changes must fit the description."""
        retry = node.retry
        assert retry is not None
        for name, operation, value in retry.changes:
            if fault := change_fault(operation, value):
                raise CannotRender(f"RETRY {name}{operation}{value}: {fault}")
        for number in {1, retry.count} if retry.count else ():
            try:
                for _ in renderer.fields(_context(node, number), most=1):
                    pass
            except CannotRender as error:
                raise CannotRender(f"RETRY, in retry {number}: {error}") from error

    def _add(self, error: CannotRender, node: NodeSpec) -> None:
        """The fault with its place, and with the node's name where other nodes may be without."""
        submit_file = self._submit_files[node.source]
        texts = [text_of(name, submit_file) for name in error.names]
        place = place_of(error.names, node, submit_file)
        if error.names[:1] == ("executable",) and not any(texts):
            # It is the description that lacks it, for all of its nodes.
            place = (submit_file.file, None) if submit_file.file != node.place.file else node.place
        message = str(error)
        own = {node.place, *(variable.place for variable in (node.variables or {}).values())}
        if place not in own and any(map(uses_macros, texts)):
            message = f"node {node.name}: {message}"
        self.faults.append(Finding(message, *place))


def _context(node: NodeSpec, retry_number: int = 0) -> NodeContext:
    """The node as it is known before it runs. Only what a check asks for."""
    changes = node.retry.changes if node.retry is not None else ()
    if not node.variables:
        return NodeContext(node.name, 0, retry_number, directory=node.directory, changes=changes)
    variables: dict[str, str] = {}
    appended: dict[str, str] = {}
    for name, variable in node.variables.items():
        if variable.is_appended:
            appended[name] = variable.value
        else:
            variables[name] = variable.value
    return NodeContext(
        node.name,
        0,
        retry_number,
        variables,
        appended,
        directory=node.directory,
        changes=changes,
    )


@dataclass(slots=True)
class _FileNames:
    """The names of files that the nodes make and want, where they are known."""

    made: set[str] = field(default_factory=set)
    wanted: dict[tuple[str, str, str, tuple[str, ...]], NodeSpec] = field(default_factory=dict)
    outputs: set[tuple[str, str, tuple[str, ...]]] = field(default_factory=set)
    #: What items of queue statements are read from, with the node and the line.
    lists: list[tuple[NodeSpec, str, int]] = field(default_factory=list)
    #: Of the node before: many nodes name the same.
    last: tuple[Any, ...] = ()
    #: So much text may still be kept, and then nothing is said of missing files.
    room: int = field(default_factory=lambda: _MOST_TEXT_OF_NAMES)

    def add(self, node: NodeSpec, fields: Mapping[str, Any]) -> None:
        """Take in those of a node."""
        get = fields.get
        named = (
            node.source, node.directory, get("directory", ""), get("executable", "/"),
            get("input_files", ()), get("output_files", ()), get("stdout_name", ""),
        )  # fmt: skip
        if self.room <= 0 or named == self.last:
            return
        self.last = named
        source, *place, executable, inputs, outputs, stdout = named
        self.room -= sum(map(len, inputs)) + sum(map(len, outputs))
        self.room -= _COST_OF_NAME * (len(inputs) + len(outputs))
        if self.room <= 0:
            self.wanted.clear()
            self.outputs.clear()
            return
        self.wanted.setdefault((source, *place, (executable, *inputs)), node)
        self.outputs.add((*place, (*outputs, stdout) if stdout else outputs))

    def add_lists(self, node: NodeSpec, submit_file: SubmitFile) -> None:
        """Take in the files that the queue statements of a description read."""
        names = [queue for queue in submit_file.queues if queue.file and "$" not in queue.file]
        self.lists += [(node, queue.file, queue.line) for queue in names]

    def missing(
        self, submit_files: Mapping[str, SubmitFile], uploaded: Collection[str]
    ) -> list[Finding]:
        """Inputs that were neither uploaded nor are made by another node; none if these are too
        many to be known.
        """
        if self.room <= 0:
            return []
        there = {_joined(*place, name) for *place, names in self.outputs for name in names}
        there.update(uploaded)
        found = (
            Finding(
                f"{command} of node {node.name} was not uploaded, and no node makes it: {name}",
                file=submit_files[node.source].file,
                line=line or submit_files[node.source].lines.get(command),
            )
            for node, command, name, path, line in self._paths()
            if path not in there
        )
        told: dict[Finding, None] = {}
        for each in found:
            told[each] = None
            if len(told) >= MAX_FINDINGS:
                break
        return list(told)

    def _paths(self) -> Iterator[tuple[NodeSpec, str, str, str, int]]:
        """What the nodes want, with the command that names it, its path, and the line if known."""
        for node, name, line in self.lists:
            yield node, "queue", name, _joined(node.directory, name), line
        for (_, *places, names), node in self.wanted.items():
            node_directory, directory = map(str, places)
            executable, *inputs = names
            if not executable.startswith("/"):
                yield node, "executable", executable, _joined(node_directory, executable), 0
            for name in inputs:
                path = _joined(node_directory, directory, name)
                yield node, "transfer_input_files", name, path, 0


def _joined(*parts: str) -> str:
    return posixpath.normpath(posixpath.join(*parts))
