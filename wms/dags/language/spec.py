"""Parsed DAG (`DagSpec`): nodes with their properties, arcs, options of the run, statistics.

Also its faults and warnings, limits of categories, and inline submit descriptions; each node,
script and variable has its file and line.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from wms.core.errors import Finding
from wms.dags.states import NodeKind, ScriptKind


class SourceLocation(NamedTuple):
    """A file of the submission and a line in it."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ScriptSpec:
    """A script of a node. `arguments` still have their macros."""

    executable: str
    arguments: tuple[str, ...]
    location: SourceLocation
    #: This exit status means "not yet": it is run again, after so many seconds at the earliest.
    defer_status: int | None = None
    defer_s: int = 0
    #: Its stdout, stderr or both are appended to this file of the workspace.
    debug_file: str = ""
    debug_stream: Literal["", "STDOUT", "STDERR", "ALL"] = ""


class Variable(NamedTuple):
    """One value of VARS; with `is_appended` it stands behind the description and wins over it."""

    name: str
    value: str
    location: SourceLocation
    is_appended: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """RETRY. `changes` are commands of the description that change with every retry.

    A change is the command, `*` or `=`, and a factor or a value: (`request_memory`, `*`, `2`).
    """

    count: int
    unless_exit: int | None = None
    avoids_sites: bool = False
    changes: tuple[tuple[str, Literal["*", "="], str], ...] = ()


@dataclass(frozen=True, slots=True)
class AbortRule:
    """ABORT-DAG-ON: this code ends the DAG, with `return_code` if one is given."""

    exit_code: int
    return_code: int | None = None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """TOLERANCE: the number, or the percentage, of processes of a job list that may fail."""

    limit: int
    is_percent: bool = False
    fails_fast: bool = True


@dataclass(frozen=True, slots=True)
class GroupTolerance:
    """TOLERANCE CATEGORY: the number, or the percentage, of nodes of a category that may fail.

    `depth` is that of the splice whose line it is.
    """

    limit: int
    is_percent: bool
    depth: int
    location: SourceLocation

    @property
    def given(self) -> str:
        """The tolerance as it is written."""
        return f"{self.limit}%" if self.is_percent else str(self.limit)


@dataclass(frozen=True, slots=True)
class GateSpec:
    """GATE: who may open it, and what it does after a time; a deadline of 0 s is none.

    `who` are `user:...`, `group:...` and `role:...`; nobody named are those who may steer the DAG.
    A gate that `opens_at` a time asks nobody.
    """

    who: tuple[str, ...] = ()
    deadline_s: int = 0
    opens_then: bool = False
    opens_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """REPEAT: another pass follows a pass that ended well while this ClassAd expression is true.

    There are `most` passes at most; `pass_number` is that of the node.
    """

    text: str
    most: int
    location: SourceLocation
    pass_number: int = 1


@dataclass(frozen=True, slots=True)
class Expansion:
    """EXPAND: the DAG fragment of this path, which the node returns, follows the node."""

    path: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """TIMEOUT in seconds: in the queue before the first start, and from start to end; 0 is no
    limit.
    """

    queue_s: int = 0
    run_s: int = 0


@dataclass(slots=True)
class NodeSpec:
    """A node as the DAG files describe it.

    `name` has the scopes of its splices (`S+A`). `source` is the path of its submit description,
    inner DAG file or placement request in the workspace, directories of splices and DIR applied, or
    the key of a description in `DagSpec.descriptions`. `directory` is where its files are looked up
    and its scripts run: a path in the workspace, empty for its top.
    """

    name: str
    kind: NodeKind
    source: str
    file: str
    line: int
    directory: str = ""
    is_noop: bool = False
    is_done: bool = False
    priority: int = 0
    category: str = ""
    retry: Retry | None = None
    #: By their names in lower case.
    variables: Mapping[str, Variable] | None = None
    scripts: dict[ScriptKind, ScriptSpec] | None = None
    pre_skip: int | None = None
    abort: AbortRule | None = None
    tolerance: Tolerance | None = None
    time_limits: TimeLimits | None = None
    always_runs_post: bool = False
    #: Relative to the workspace; None for none.
    save_point: str | None = None
    #: Of GATE nodes only.
    gate: GateSpec | None = None
    #: What follows the node is found out when it ends.
    grows: Repeat | Expansion | None = None

    @property
    def location(self) -> SourceLocation:
        """File and line where the node is defined."""
        # Made when asked for: of a million nodes it would be 100 MB.
        return SourceLocation(self.file, self.line)


@dataclass(frozen=True, slots=True)
class InlineDescription:
    """A submit description inside a DAG file; `text` begins on the line after `location`.

    Lines of `text` are those of the file, comments included, so that faults find their line.
    """

    text: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class ArcCondition:
    """WHEN: the arc holds if this ClassAd expression over the outcome of its parent is true."""

    text: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class JoinRule:
    """JOIN: the node runs once so many of its arcs hold; None for all of them."""

    needed: int | None
    location: SourceLocation


class Arc(NamedTuple):
    """An arc from a parent to a child, as positions in `DagSpec.nodes`."""

    parent: int
    child: int
    is_weak: bool


@dataclass(slots=True)
class Arcs:
    """All arcs, each pair of nodes once; a strong arc wins over a weak one of the same pair."""

    parents: array[int] = field(default_factory=lambda: array("I"))
    children: array[int] = field(default_factory=lambda: array("I"))
    weak: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.parents)

    def __iter__(self) -> Iterator[Arc]:
        for parent, child, weak in zip(self.parents, self.children, self.weak, strict=True):
            yield Arc(parent, child, bool(weak))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run; limits of 0 are none.

    CONFIG files of the DAG may set them (`language.config`); those of the submission win.
    """

    max_jobs: int = 0
    max_idle: int = 0
    max_pre: int = 20
    max_post: int = 20
    max_hold_scripts: int = 20
    max_job_holds: int = 100
    priority: int = 0
    always_run_post: bool = False
    depth_first: bool = False
    retry_node_first: bool = False
    reset_retries: bool = True
    max_rescue: int = 100
    data_attempts: int = 10
    #: Of nodes without a TIMEOUT of their own.
    timeout_queue_s: int = 0
    timeout_run_s: int = 0


@dataclass(slots=True)
class Statistics:
    """Shape of a DAG; `widths` by depth. FINAL, PROVISIONER and SERVICE nodes do not count."""

    nodes: int = 0
    arcs: int = 0
    height: int = 0
    width: int = 0
    widths: list[int] = field(default_factory=list)
    #: Names along a cycle, first and last the same; empty when there is none.
    cycle: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DagSpec:
    """One or several DAG files that run as one DAG, splices and includes resolved.

    `nodes` are in the order of the files. `descriptions` are the shared and the inline ones by the
    key that `NodeSpec.source` has. `categories` are the limits of MAXJOBS, `tolerances` the
    failures that are tolerated by category. `options` are those of CONFIG files, by the names of
    RunOptions. `environment` is that of the scripts, by ENV SET. `conditions` are by the positions
    of parent and child, `joins` by that of the node. `is_whole` is false where reading has stopped.
    """

    nodes: dict[str, NodeSpec] = field(default_factory=dict)
    arcs: Arcs = field(default_factory=Arcs)
    descriptions: dict[str, InlineDescription] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    tolerances: dict[str, GroupTolerance] = field(default_factory=dict)
    #: GATE nodes, and nodes that the DAG may grow after.
    gates: list[NodeSpec] = field(default_factory=list)
    growing: list[NodeSpec] = field(default_factory=list)
    #: Expression of SUCCESS WHEN; empty where there is none.
    success_rule: str = ""
    options: dict[str, int | bool] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    conditions: dict[tuple[int, int], ArcCondition] = field(default_factory=dict)
    joins: dict[int, JoinRule] = field(default_factory=dict)
    #: File names of NODE_STATUS_FILE, JOBSTATE_LOG and DOT; empty where not asked for.
    status_file: str = ""
    jobstate_log: str = ""
    dot_file: str = ""
    statistics: Statistics = field(default_factory=Statistics)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    #: What plain DAGMan does not know, line by line.
    additions: list[Finding] = field(default_factory=list)
    is_whole: bool = False
