"""What is known while DAG files are read: the DAG as far as it is made, and the names in scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from matching.deadline import Deadline
from wms.core.errors import InvalidInput
from wms.dags.language.arcbook import ArcBook
from wms.dags.language.bounds import (
    CHARACTERS_PER_LINE,
    ENDS_PER_ARC,
    LINES_PER_OPENING,
    READ_AGAIN,
    READ_AGAIN_LINES,
    VALUES_PER_NODE,
    Bounds,
)
from wms.dags.language.faults import Fault, FollowsFromAnother, Told, TooMuch, too_late
from wms.dags.language.lexer import SourceText
from wms.dags.language.origin import Origin
from wms.dags.language.spec import DagSpec, NodeSpec, Place, Retry
from wms.dags.states import NodeKind
from wms.jobs.content.paths import checked_path

#: The name of a variable as it is written, and in lower case.
Key = tuple[str, str]
#: The text of a file of the submission by its path, None if it is not there.
Reader = Callable[[str], str | None]
ALL_NODES = "ALL_NODES"
#: So many checked paths are remembered.
_MOST_PATHS = 100_000
#: What may be said of FINAL and its like, besides of the nodes that have places in the graph.
_ANY = frozenset(NodeKind)
_ALSO_OF = {
    "SCRIPT": _ANY,
    "VARS": _ANY,
    "TIMEOUT": _ANY,
    "ALWAYS-RUN-POST": _ANY,
    "PRE_SKIP": frozenset({NodeKind.FINAL}),
    "TOLERANCE": frozenset({NodeKind.FINAL}),
    "ABORT-DAG-ON": frozenset({NodeKind.SERVICE}),
}


@dataclass(slots=True)
class Splice:
    """A splice as the file around it sees it: where arcs to it and from it end."""

    place: Place
    initial: list[int] = field(default_factory=list)
    terminal: list[int] = field(default_factory=list)
    pins_in: dict[int, list[int]] = field(default_factory=dict)
    pins_out: dict[int, list[int]] = field(default_factory=dict)
    #: Where it was first connected by its in-pins, and where it was first named as a child.
    connected_at: Place | None = None
    child_at: Place | None = None


@dataclass(slots=True)
class Scope:
    """One name space: a DAG file or a splice, with everything that is included into it.

    `names` are the nodes that have a place in the graph, by their names inside of the scope.
    """

    prefix: str = ""
    directory: str = ""
    depth: int = 0
    names: dict[str, int] = field(default_factory=dict)
    others: dict[str, NodeSpec] = field(default_factory=dict)
    splices: dict[str, Splice] = field(default_factory=dict)
    #: Names whose own lines are at fault: what follows from that is not told again.
    broken: set[str] = field(default_factory=set)
    shared: dict[str, str] = field(default_factory=dict)
    pins_in: dict[int, list[int]] = field(default_factory=dict)
    pins_out: dict[int, list[int]] = field(default_factory=dict)

    def category(self, name: str) -> str:
        """The DAG's name of a category: splices have their own, but for those with a `+`."""
        return name if name.startswith("+") or not self.depth else self.prefix + name


class Reading:
    """Everything that is known while the files of one DAG are read."""

    def __init__(
        self,
        read: Reader,
        read_lines: Callable[[Here], None],
        bounds: Bounds,
        dag_files: Sequence[str],
        origin: Origin,
        patience: Deadline,
    ) -> None:
        #: Reads all lines of a file in a scope.
        self.read_lines = read_lines
        self.spec = DagSpec()
        self.specs: list[NodeSpec] = []
        #: FINAL and its like.
        self.special: list[NodeSpec] = []
        self.arcs = ArcBook(bounds.max_arcs)
        self.told = Told()
        self.bounds = bounds
        self.patience = patience
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
        self.common_places: set[Place] = set()
        #: Lines of CONNECT, which make arcs as those of PARENT do.
        self.connected_at: set[Place] = set()
        self.limit_depths: dict[str, int] = {}
        self.config_at: tuple[str, Place] | None = None
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

    def check_time(self) -> None:
        """Raise TooMuch when the time is up."""
        if self.patience.is_over:
            raise TooMuch(f"{too_late(self.patience)}, and this was reached")

    def text(self, path: str) -> str | None:
        """The text of a file; None if it is not there. Raises TooMuch."""
        self.check_time()
        limit = self.bounds.max_text_bytes
        if path in self._texts:
            self._lines_again += self._lines[path]
            most = READ_AGAIN_LINES + READ_AGAIN * self._lines_once
            if self._lines_again > most:
                raise TooMuch(f"splices and INCLUDE read more than {most} lines again in all")
        else:
            if len(self._texts) >= self.bounds.max_files:
                raise TooMuch(f"the files of a DAG are at most {self.bounds.max_files}")
            text = self._read(path)
            self._texts[path] = text
            self._lines[path] = _lines(text or "")
            self._lines_once += self._lines[path]
            self._text_size += _size(text or "")
            if self._text_size > limit:
                raise TooMuch(f"the text of a DAG has at most {limit} bytes in all its files")
        return self._texts[path]

    def path(self, directory: str, name: str) -> str:
        """The path of what is called `name` in a directory. Raises Fault for one outside."""
        known = self._paths.get((directory, name))
        if known is None:
            try:
                known = checked_path(self.origin.inside(directory, name) if name else "")
            except InvalidInput as error:
                raise Fault(error.findings[0].message) from None
            if len(self._paths) >= _MOST_PATHS:
                self._paths.clear()
            self._paths[directory, name] = known
        return known

    def charge(self, values: int) -> None:
        """Count values that lines for ALL_NODES set. Raises TooMuch."""
        self.check_time()
        self._values += values
        limit = VALUES_PER_NODE * self.bounds.max_nodes
        if self._values > limit:
            raise TooMuch(f"lines for {ALL_NODES} set more than {limit} values in all")

    def charge_ends(self, count: int) -> None:
        """Count nodes of splices at which arcs may end: there may be no arcs of them at all.

        Raises TooMuch.
        """
        self.check_time()
        self._ends += count
        limit = ENDS_PER_ARC * self.bounds.max_arcs
        if self._ends > limit:
            raise TooMuch(f"lines with splices name more than {limit} nodes in all")


def _lines(text: str) -> int:
    return LINES_PER_OPENING + max(text.count("\n"), len(text) // CHARACTERS_PER_LINE)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


class Here:
    """Where reading is: the file, the scope, and the line of the command."""

    __slots__ = ("command", "depth", "file", "line", "reading", "scope", "source", "words")

    def __init__(self, reading: Reading, scope: Scope, source: SourceText, depth: int) -> None:
        self.reading = reading
        self.scope = scope
        self.source = source
        self.file = source.file
        #: The words of the line behind its command.
        self.words = source.words
        #: Of splices and of files that include each other, together.
        self.depth = depth
        self.line = 0
        self.command = ""

    @property
    def place(self) -> Place:
        """The file and the line that is being read."""
        return Place(self.file, self.line)

    def warn(self, message: str, *, level: int = 9) -> None:
        """Warn of this line; from this level of DAGMAN_USE_STRICT on it is a fault."""
        self.reading.told.warn(message, self.place, self.command, level=level)

    def path(self, name: str) -> str:
        """The path of a file that the scope's directory has. Raises Fault for one outside."""
        return self.reading.path(self.scope.directory, name)

    def nodes(self, name: str) -> Iterable[NodeSpec]:
        """The node, or all of the file for ALL_NODES. Raises Fault where there is none."""
        at = self.scope.names.get(name)
        if at is not None:
            return (self.reading.specs[at],)
        if name.upper() == ALL_NODES:
            self.reading.charge(len(self.scope.names))
            specs = self.reading.specs
            return [specs[at] for at in self.scope.names.values()]
        return (self.other_node(name),)

    def node(self, name: str) -> NodeSpec:
        """The node, where ALL_NODES cannot be said. Raises Fault where there is none."""
        at = self.scope.names.get(name)
        return self.other_node(name) if at is None else self.reading.specs[at]

    def other_node(self, name: str) -> NodeSpec:
        """A node that has no place in the graph, if the command may be said of it."""
        node = self.scope.others.get(name)
        if node is None:
            self.refuse_unknown(name)
        if node.kind not in _ALSO_OF.get(self.command, frozenset()):
            raise Fault(f"{name} is a {node.kind.upper()} node, which cannot have {self.command}")
        return node

    def refuse_unknown(self, name: str, kind: str = "node") -> NoReturn:
        """Raise the Fault for a name that is none, or none of a single node."""
        if name in self.scope.broken:
            raise FollowsFromAnother
        if name in self.scope.splices:
            raise Fault(f"unknown {kind} {name}: it is a splice, {self.command} needs a node")
        raise Fault(f"unknown {kind} {name}")
