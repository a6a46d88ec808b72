"""State of the DAG parser: nodes, arcs, splices, names by scope, limits used, and the current line.

Through it commands look up nodes by name, read files of the submission within the limits, and give
warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from matching.negotiation.deadline import Deadline
from wms.core.errors import Finding, InvalidInput
from wms.dags.language.arc_table import ArcTable
from wms.dags.language.faults import (
    ConsequentFault,
    DagTooLarge,
    Fault,
    FindingCollector,
    deadline_message,
)
from wms.dags.language.lexer import SourceText
from wms.dags.language.origin import Origin
from wms.dags.language.size_limits import (
    CHARACTERS_PER_LINE,
    ENDS_PER_ARC,
    LINES_PER_OPENING,
    MAX_FINDINGS,
    READ_AGAIN,
    READ_AGAIN_LINES,
    VALUES_PER_NODE,
    SizeLimits,
)
from wms.dags.language.spec import DagSpec, NodeSpec, Retry, SourceLocation
from wms.dags.states import NodeKind
from wms.jobs.content.paths import checked_path

#: The name of a variable as it is written, and in lower case.
Key = tuple[str, str]
#: The text of a file of the submission by its path, None if it is not there.
Reader = Callable[[str], str | None]
ALL_NODES = "ALL_NODES"
#: Size of the cache of checked paths.
_MAX_CACHED_PATHS = 100_000
#: Kinds of nodes outside of the graph (FINAL, SERVICE, PROVISIONER) that a command is allowed for.
_ANY = frozenset(NodeKind)
_ALLOWED_ON_SPECIAL_NODES = {
    "SCRIPT": _ANY,
    "VARS": _ANY,
    "TIMEOUT": _ANY,
    "ALWAYS-RUN-POST": _ANY,
    "PRE_SKIP": frozenset({NodeKind.FINAL}),
    "TOLERANCE": frozenset({NodeKind.FINAL}),
    "ABORT-DAG-ON": frozenset({NodeKind.SERVICE}),
}
#: Commands about what a node runs: a gate runs nothing.
_REFUSED_ON_GATES = frozenset(
    {"SCRIPT", "VARS", "RETRY", "PRE_SKIP", "TOLERANCE", "TIMEOUT", "ALWAYS-RUN-POST"}
)


@dataclass(slots=True)
class Splice:
    """A splice as the file around it sees it: the nodes at which arcs to it and from it end."""

    location: SourceLocation
    initial: list[int] = field(default_factory=list)
    terminal: list[int] = field(default_factory=list)
    pins_in: dict[int, list[int]] = field(default_factory=dict)
    pins_out: dict[int, list[int]] = field(default_factory=dict)
    #: Locations of its first CONNECT by in-pins, and of its first PARENT line as a child.
    connected_at: SourceLocation | None = None
    child_at: SourceLocation | None = None


@dataclass(slots=True)
class Scope:
    """One name space: a DAG file or a splice, with everything that is included into it.

    `names` are the nodes that are in the graph, by their names inside of the scope.
    """

    prefix: str = ""
    directory: str = ""
    depth: int = 0
    names: dict[str, int] = field(default_factory=dict)
    others: dict[str, NodeSpec] = field(default_factory=dict)
    splices: dict[str, Splice] = field(default_factory=dict)
    #: Names with faulty lines of their own: faults that follow from these are dropped.
    broken: set[str] = field(default_factory=set)
    shared: dict[str, str] = field(default_factory=dict)
    pins_in: dict[int, list[int]] = field(default_factory=dict)
    pins_out: dict[int, list[int]] = field(default_factory=dict)

    @property
    def kind_words(self) -> str:
        """What it is for people: a splice, or a fragment of a DAG that runs."""
        return "a splice" if self.prefix else "a fragment"

    def category(self, name: str) -> str:
        """Full name of a category: a splice has categories of its own, unless the name begins with
        `+`.
        """
        return name if name.startswith("+") or not self.depth else self.prefix + name


class ParseState:
    """State shared by all files of one DAG while they are parsed."""

    def __init__(
        self,
        read: Reader,
        read_lines: Callable[[Cursor], None],
        limits: SizeLimits,
        dag_files: Sequence[str],
        origin: Origin,
        deadline: Deadline,
    ) -> None:
        #: Reads all lines of a file in a scope.
        self.read_lines = read_lines
        self.spec = DagSpec()
        self.specs: list[NodeSpec] = []
        #: FINAL and its like.
        self.special: list[NodeSpec] = []
        self.arcs = ArcTable(limits.max_arcs)
        self.collector = FindingCollector()
        self.limits = limits
        self.deadline = deadline
        self.dag_files = dag_files
        self.origin = origin
        #: Descriptions with names, by the prefix of their scope.
        self.shared: dict[str, dict[str, str]] = {}
        #: Files that are being read, each out of the one before.
        self.open_files: list[str] = []
        self.retries: dict[str, Retry] = {}
        #: Names of VARS as they stand before a quote.
        self.variable_keys: dict[str, Key] = {}
        #: Lines of VARS ALL_NODES, which single nodes may override without a warning.
        self.all_nodes_locations: set[SourceLocation] = set()
        #: Lines of CONNECT, which make arcs as those of PARENT do.
        self.connected_at: set[SourceLocation] = set()
        self.limit_depths: dict[str, int] = {}
        self.config_at: tuple[str, SourceLocation] | None = None
        self.success_at: SourceLocation | None = None
        #: Characters of what ENV SET gives.
        self.environment_length = 0
        self._read = read
        self._texts: dict[str, str | None] = {}
        self._paths: dict[tuple[str, str], str] = {}
        self._text_size = 0
        #: Lines of each text, as it is counted what it takes to read it; those of all, and of what
        #: was read again.
        self._lines: dict[str, int] = {}
        self._lines_once = 0
        self._lines_again = 0
        self._values = 0
        self._ends = 0

    def note_addition(self, what: str, location: SourceLocation, command: str) -> None:
        """Note what plain DAGMan does not know; those beyond the limit are dropped."""
        if len(self.spec.additions) < MAX_FINDINGS:
            message = f"plain DAGMan does not know {what}"
            finding = Finding(message, location.file, location.line, command=command)
            self.spec.additions.append(finding)

    def check_time(self) -> None:
        """Raise DagTooLarge when the deadline has passed."""
        if self.deadline.is_over:
            raise DagTooLarge(f"{deadline_message(self.deadline)}, and this was reached")

    def text(self, path: str) -> str | None:
        """Text of a file; None if there is no such file. Raises DagTooLarge."""
        self.check_time()
        limit = self.limits.max_text_bytes
        if path in self._texts:
            self._lines_again += self._lines[path]
            most = READ_AGAIN_LINES + READ_AGAIN * self._lines_once
            if self._lines_again > most:
                raise DagTooLarge(f"splices and INCLUDE read more than {most} lines again in all")
        else:
            if len(self._texts) >= self.limits.max_files:
                raise DagTooLarge(f"the files of a DAG are at most {self.limits.max_files}")
            text = self._read(path)
            self._texts[path] = text
            self._lines[path] = _lines(text or "")
            self._lines_once += self._lines[path]
            self._text_size += _size(text or "")
            if self._text_size > limit:
                raise DagTooLarge(f"the text of a DAG has at most {limit} bytes in all its files")
        return self._texts[path]

    def forget_texts(self) -> None:
        """Free the memory of the texts, when all files are read."""
        self._texts.clear()

    def path(self, directory: str, name: str) -> str:
        """Path of the file called `name` in a directory.

        Raises Fault for one outside of the workspace.
        """
        known = self._paths.get((directory, name))
        if known is None:
            try:
                known = checked_path(self.origin.inside(directory, name) if name else "")
            except InvalidInput as error:
                raise Fault(error.findings[0].message) from None
            if len(self._paths) >= _MAX_CACHED_PATHS:
                self._paths.clear()
            self._paths[directory, name] = known
        return known

    def charge_values(self, values: int) -> None:
        """Count values that lines for ALL_NODES set. Raises DagTooLarge."""
        self.check_time()
        self._values += values
        limit = VALUES_PER_NODE * self.limits.max_nodes
        if self._values > limit:
            raise DagTooLarge(f"lines for {ALL_NODES} set more than {limit} values in all")

    def charge_ends(self, count: int) -> None:
        """Count nodes of splices that lines name as ends of arcs, even where no arcs result.

        Raises DagTooLarge.
        """
        self.check_time()
        self._ends += count
        limit = ENDS_PER_ARC * self.limits.max_arcs
        if self._ends > limit:
            raise DagTooLarge(f"lines with splices name more than {limit} nodes in all")


def _lines(text: str) -> int:
    return LINES_PER_OPENING + max(text.count("\n"), len(text) // CHARACTERS_PER_LINE)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


class Cursor:
    """Position of the parser: file, scope, line and command."""

    __slots__ = ("command", "depth", "file", "line", "scope", "source", "state", "words")

    def __init__(self, state: ParseState, scope: Scope, source: SourceText, depth: int) -> None:
        self.state = state
        self.scope = scope
        self.source = source
        self.file = source.file
        #: The words of the line behind its command.
        self.words = source.words
        #: Depth of nested splices and included files together.
        self.depth = depth
        self.line = 0
        self.command = ""

    @property
    def location(self) -> SourceLocation:
        """File and line of the command."""
        return SourceLocation(self.file, self.line)

    def text_of(self, location: SourceLocation) -> str:
        """Words for a line: its number, and its file if that is another one."""
        line = f"line {location.line}"
        return line if location.file == self.file else f"{location.file}, {line}"

    def warn(self, message: str, *, level: int = 9) -> None:
        """Add a warning for this line; from this level of DAGMAN_USE_STRICT on it is a fault."""
        self.state.collector.add_warning(message, self.location, self.command, level=level)

    def note_addition(self, what: str) -> None:
        """Note what on this line plain DAGMan does not know; those beyond the limit are dropped."""
        self.state.note_addition(what, self.location, self.command)

    def path(self, name: str) -> str:
        """Path of a file in the directory of the scope.

        Raises Fault for one outside of the workspace.
        """
        return self.state.path(self.scope.directory, name)

    def nodes(self, name: str) -> Iterable[NodeSpec]:
        """The node of this name, or all nodes of the scope for ALL_NODES. Raises Fault."""
        at = self.scope.names.get(name)
        if at is not None:
            node = self.state.specs[at]
            if node.gate is not None and self.command in _REFUSED_ON_GATES:
                raise Fault(f"{name} is a GATE node, which cannot have {self.command}")
            return (node,)
        if name.upper() == ALL_NODES:
            self.state.charge_values(len(self.scope.names))
            return self._all_nodes()
        return (self.other_node(name),)

    def _all_nodes(self) -> list[NodeSpec]:
        """All nodes of the scope; without gates if the command is about what a node runs."""
        specs = self.state.specs
        found = [specs[at] for at in self.scope.names.values()]
        if self.command in _REFUSED_ON_GATES:
            return [node for node in found if node.gate is None]
        return found

    def node(self, name: str) -> NodeSpec:
        """The node of this name; ALL_NODES is not allowed. Raises Fault."""
        at = self.scope.names.get(name)
        return self.other_node(name) if at is None else self.state.specs[at]

    def other_node(self, name: str) -> NodeSpec:
        """FINAL, PROVISIONER or SERVICE node of this name, if the command is allowed for it.

        Raises Fault.
        """
        node = self.scope.others.get(name)
        if node is None:
            self.refuse_unknown(name)
        if node.kind not in _ALLOWED_ON_SPECIAL_NODES.get(self.command, frozenset()):
            raise Fault(f"{name} is a {node.kind.upper()} node, which cannot have {self.command}")
        return node

    def refuse_unknown(self, name: str, kind: str = "node") -> NoReturn:
        """Raise Fault for an unknown name, or for a splice where a node is needed."""
        if name in self.scope.broken:
            raise ConsequentFault
        if name in self.scope.splices:
            raise Fault(f"unknown {kind} {name}: it is a splice, {self.command} needs a node")
        raise Fault(f"unknown {kind} {name}")
