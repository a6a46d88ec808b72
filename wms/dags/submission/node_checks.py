"""Check of the nodes of a submitted DAG with their submit descriptions and input files.

As far as possible before the site is known; it returns faults and warnings with file and line.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matching.descriptions.substitution import uses_macros
from matching.negotiation.deadline import Deadline
from matching.task_queues.needs import Needs
from wms.core.errors import Finding
from wms.dags.language.faults import deadline_message
from wms.dags.language.plain_values import texts_of
from wms.dags.language.size_limits import MAX_FINDINGS
from wms.dags.language.spec import DagSpec, NodeSpec
from wms.dags.states import NodeKind
from wms.dags.submission.command_locations import command_text, location_of_command
from wms.dags.submission.description_warnings import dag_warnings
from wms.dags.submission.like_nodes import LikeNodes
from wms.dags.submission.node_inputs import NodeInputs
from wms.dags.submission.time_warnings import LongestDurations, time_warnings
from wms.jobs.description.misspelt_commands import told
from wms.jobs.description.needs import MAX_DIFFERENT_NEEDS
from wms.jobs.description.rendering import CannotRender, Identity, NodeContext, Renderer
from wms.jobs.description.retry_changes import change_fault
from wms.jobs.description.submit_file import SubmitFile
from wms.sites.vocabulary import Vocabulary

#: Nodes that run something other than jobs of a description.
_WITHOUT_JOBS = frozenset({NodeKind.SUBDAG, NodeKind.DATA, NodeKind.GATE})
#: The fields that tell which files a job needs beside its program, and which it makes.
_OF_FILES = frozenset({"directory", "input_files", "output_files", "stdout_name"})
#: Jobs of a list that are checked for the first node of a description; later one of each.
_MAX_CHECKED_JOBS = 1000
#: Characters of file names that are kept, and the cost of a name besides its characters.
_MAX_NAME_CHARACTERS = 512 * 1024 * 1024
_COST_OF_NAME = 64


@dataclass(slots=True)
class NodeChecks:
    """Faults and warnings about nodes, and the nodes by their needs and inputs before the match."""

    faults: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    nodes_by_needs: dict[Needs, list[NodeSpec]] = field(default_factory=dict)
    nodes_by_inputs: dict[NodeInputs, list[NodeSpec]] = field(default_factory=dict)


def check_nodes(
    dag: DagSpec,
    submit_files: Mapping[str, SubmitFile],
    *,
    uploaded: Collection[str],
    owner_name: str,
    group_name: str,
    cpu_segments_s: Sequence[int],
    offered: Vocabulary | None,
    allow_missing_files: bool = False,
    knows_all_makers: bool = True,
    is_late: bool = False,
    deadline: Deadline | None = None,
) -> NodeChecks:
    """Faults and warnings about the nodes, each once, with file and line, and their needs.

    What depends on the site is checked after the match. Nodes whose description is missing or
    faulty are left out. With `is_late` no site is known before a pilot claims a job. `offered` are
    the words that sites and queues offer today. Without `knows_all_makers` something else may make
    files, and none is told to be missing. A check that exceeds the deadline ends with a
    fault.
    """
    deadline = deadline or Deadline(None, 0)
    identity = Identity(owner=owner_name, group=group_name, cpu_segments_s=cpu_segments_s)
    checker = _Checker(submit_files, identity, deadline, is_late=is_late)
    for count, node in enumerate(dag.nodes.values()):
        if deadline.is_over:
            message = (
                f"{deadline_message(deadline)}: {count} of {len(dag.nodes)} nodes were looked at"
            )
            checker.faults.append(Finding(message, *node.location))
            return NodeChecks(checker.faults[-MAX_FINDINGS:])
        if node.kind in _WITHOUT_JOBS or node.is_noop or node.source not in submit_files:
            continue
        checker.check(node)
        if checker.is_full:
            checker.all_outputs_known = False
            break
    # Outputs of faulty nodes are unknown: no missing inputs are reported then.
    knows_all_makers = knows_all_makers and checker.all_outputs_known
    missing = checker.files.missing(submit_files, uploaded) if knows_all_makers else []
    first_nodes = [(needs, nodes[0]) for needs, nodes in checker.needs.items()]
    warnings = dag_warnings(dag, submit_files, first_nodes, offered, deadline)
    findings = time_warnings(submit_files, first_nodes, checker.durations, offered)
    warnings = [*findings, *warnings][:MAX_FINDINGS]
    # Nodes that share a description share its faults.
    faults = list(dict.fromkeys(checker.faults))[:MAX_FINDINGS]
    if allow_missing_files or _may_make_files(dag, submit_files):
        warnings = [*missing, *warnings][:MAX_FINDINGS]
    else:
        faults = [*faults, *missing][:MAX_FINDINGS]
    return NodeChecks(faults, warnings, checker.needs, checker.inputs)


def _may_make_files(dag: DagSpec, submit_files: Mapping[str, SubmitFile]) -> bool:
    """Whether scripts, inner DAGs or unknown jobs may put further files into the workspace."""
    return any(
        node.scripts
        or node.kind in _WITHOUT_JOBS
        or (node.source not in submit_files and not node.is_noop)
        for node in dag.nodes.values()
        if node.kind is not NodeKind.GATE
    )


class _Checker:
    """Checks the nodes one after the other; shared descriptions are checked once."""

    def __init__(
        self,
        submit_files: Mapping[str, SubmitFile],
        identity: Identity,
        deadline: Deadline,
        *,
        is_late: bool,
    ) -> None:
        self._is_late = is_late
        self.faults: list[Finding] = []
        self.needs: dict[Needs, list[NodeSpec]] = {}
        self.inputs: dict[NodeInputs, list[NodeSpec]] = {}
        #: Whether each node's outputs are known, that is no node is faulty.
        self.all_outputs_known = True
        self.files = _FileReferences()
        self.durations = LongestDurations()
        self._submit_files = submit_files
        self._identity = identity
        self._deadline = deadline
        self._renderers: dict[str, Renderer | None] = {}
        self._last: tuple[Needs | None, list[NodeSpec]] = (None, [])
        self._like_nodes = LikeNodes()

    @property
    def is_full(self) -> bool:
        """Whether there are so many faults or needs that the rest is not checked."""
        return len(self.faults) >= MAX_FINDINGS or len(self.needs) > MAX_DIFFERENT_NEEDS

    def check(self, node: NodeSpec) -> None:
        """Add the faults, the needs and the files of a node."""
        like = self._like_nodes.nodes_with_needs_of(node)
        if like is not None:
            like.append(node)
        else:
            self._check_by_itself(node)

    def _check_by_itself(self, node: NodeSpec) -> None:
        source = node.source
        is_first = source not in self._renderers
        if is_first:
            self._renderers[source] = self._renderer(self._submit_files[source])
            self.files.add_item_files(node, self._submit_files[source])
        renderer = self._renderers[source]
        if renderer is None:
            self.all_outputs_known = False
            return
        context = _context(node)
        try:
            for fields in renderer.fields(context, most=_MAX_CHECKED_JOBS if is_first else 1):
                self._add_fields(node, fields)
                if self._deadline.is_over:
                    self.all_outputs_known = False
                    return
        except CannotRender as error:
            self._add_faulty(node, error)
            return
        if node.retry is not None and node.retry.changes:
            self._check_changes(node, renderer)
        elif self._like_nodes.is_new_kind(node):
            # Nodes with input data are listed one by one: each may be done already.
            is_like_others = not self.inputs and renderer.only_arguments_vary(context)
            self._like_nodes.add(node, self._last[1] if is_like_others else None)

    def _renderer(self, submit_file: SubmitFile) -> Renderer | None:
        if submit_file.is_unreadable:
            return None
        return Renderer(submit_file, self._identity, is_late=self._is_late)

    def _add_faulty(self, node: NodeSpec, error: CannotRender) -> None:
        """Add the faults of a node, and its files."""
        self._add_files(node, error.fields)
        for fault in error.all:
            self._add_fault(fault, node)

    def _add_files(self, node: NodeSpec, fields: Mapping[str, Any]) -> None:
        """Add the files of a node with faults, as far as they are known."""
        queues = self._submit_files[node.source].queues
        if fields.keys() >= _OF_FILES and all(queue.is_single for queue in queues):
            self.files.add(node, fields)
        else:
            self.all_outputs_known = False

    def _add_fields(self, node: NodeSpec, fields: Mapping[str, Any]) -> None:
        if self._submit_files[node.source].faulty:
            self._add_files(node, fields)
        else:
            self.files.add(node, fields)
        self.durations.add(node, fields)
        inputs = NodeInputs.of(fields.get("directives"))
        if inputs is not None:
            self.inputs.setdefault(inputs, []).append(node)
        needs = fields["needs"]
        last, nodes = self._last
        if needs is not last:
            nodes = self.needs.setdefault(needs, [])
            self._last = needs, nodes
        if nodes and nodes[-1] is node:
            return
        nodes.append(node)
        if len(self.needs) > MAX_DIFFERENT_NEEDS:
            message = f"the nodes of a DAG have at most {MAX_DIFFERENT_NEEDS} different needs"
            self.faults.append(Finding(message, *node.location))

    def _check_changes(self, node: NodeSpec, renderer: Renderer) -> None:
        """Add a fault if a change of RETRY does not fit the description."""
        try:
            self._refuse_changes(node, renderer)
        except CannotRender as error:
            self._add_fault(error, node)

    def _refuse_changes(self, node: NodeSpec, renderer: Renderer) -> None:
        """Raise CannotRender if a change of RETRY does not fit the description."""
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

    def _add_fault(self, error: CannotRender, node: NodeSpec) -> None:
        """Add the fault with its location, and with the node's name where other nodes may be
        without it.
        """
        submit_file = self._submit_files[node.source]
        message, names = told(error, submit_file)
        texts = [command_text(name, submit_file) for name in names]
        location = location_of_command(names, node, submit_file)
        if names[:1] == ("executable",) and not any(texts):
            # It is the description that lacks it, for all of its nodes.
            location = (
                (submit_file.file, None)
                if submit_file.file != node.location.file
                else node.location
            )
        own = {node.location, *(variable.location for variable in (node.variables or {}).values())}
        if location not in own and any(map(uses_macros, texts)):
            message = f"node {node.name}: {message}"
        self.faults.append(Finding(message, *location))


def _context(node: NodeSpec, retry_number: int = 0) -> NodeContext:
    """The node before its first run, as a check needs it."""
    changes = node.retry.changes if node.retry is not None else ()
    variables, appended = texts_of(node.variables)
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
class _FileReferences:
    """Names of files that nodes need and make, as far as they are known."""

    required: dict[tuple[str, str, str, tuple[str, ...]], NodeSpec] = field(default_factory=dict)
    outputs: set[tuple[str, str, tuple[str, ...]]] = field(default_factory=set)
    #: Files that queue statements read items from, with the node and the line.
    item_files: list[tuple[NodeSpec, str, int]] = field(default_factory=list)
    #: Names of the previous node: many nodes have the same.
    last: tuple[Any, ...] = ()
    #: Characters that may still be kept; at 0 missing files are not reported.
    remaining_characters: int = field(default_factory=lambda: _MAX_NAME_CHARACTERS)

    def add(self, node: NodeSpec, fields: Mapping[str, Any]) -> None:
        """Add the files of a node."""
        get = fields.get
        # What goes to a URL comes into no workspace.
        sent = (get("directives") or {}).get("output_urls", ())
        outputs = get("output_files", ())
        outputs = tuple(name for name in outputs if name not in sent) if sent else outputs
        named = (
            node.source, node.directory, get("directory", ""), get("executable", "/"),
            get("input_files", ()), outputs, get("stdout_name", ""),
        )  # fmt: skip
        if self.remaining_characters <= 0 or named == self.last:
            return
        self.last = named
        source, *location, executable, inputs, outputs, stdout = named
        self.remaining_characters -= sum(map(len, inputs)) + sum(map(len, outputs))
        self.remaining_characters -= _COST_OF_NAME * (len(inputs) + len(outputs))
        if self.remaining_characters <= 0:
            self.required.clear()
            self.outputs.clear()
            return
        self.required.setdefault((source, *location, (executable, *inputs)), node)
        self.outputs.add((*location, (*outputs, stdout) if stdout else outputs))

    def add_item_files(self, node: NodeSpec, submit_file: SubmitFile) -> None:
        """Add the files that the queue statements of a description read."""
        names = [queue for queue in submit_file.queues if queue.file and "$" not in queue.file]
        self.item_files += [(node, queue.file, queue.line) for queue in names]

    def missing(
        self, submit_files: Mapping[str, SubmitFile], uploaded: Collection[str]
    ) -> list[Finding]:
        """Findings about inputs that were not uploaded and that no node makes; none if there are
        too many names to keep.
        """
        if self.remaining_characters <= 0:
            return []
        there = {_joined(*location, name) for *location, names in self.outputs for name in names}
        there.update(uploaded)
        missing_inputs = (
            Finding(
                f"{command} of node {node.name} is missing, and no node makes it: {name}",
                file=submit_files[node.source].file,
                line=line or submit_files[node.source].lines.get(command),
            )
            for node, command, name, path, line in self._required_files()
            if path not in there
        )
        findings: dict[Finding, None] = {}
        for each in missing_inputs:
            findings[each] = None
            if len(findings) >= MAX_FINDINGS:
                break
        return list(findings)

    def _required_files(self) -> Iterator[tuple[NodeSpec, str, str, str, int]]:
        """Files that nodes need: node, command, name, path, and the line or 0."""
        for node, name, line in self.item_files:
            yield node, "queue", name, _joined(node.directory, name), line
        for (_, *places, names), node in self.required.items():
            node_directory, directory = map(str, places)
            executable, *inputs = names
            if not executable.startswith("/"):
                yield node, "executable", executable, _joined(node_directory, executable), 0
            for name in inputs:
                path = _joined(node_directory, directory, name)
                yield node, "transfer_input_files", name, path, 0


def _joined(*parts: str) -> str:
    return posixpath.normpath(posixpath.join(*parts))
