"""Objects of a portal as values: DAGs, jobs, clusters, sites, pilots, findings.

Each keeps in `raw` all that the API told of it; its fields are those that programs ask for most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Raw = Mapping[str, Any]


def time_of(text: str | None) -> datetime | None:
    """Time with its zone, as the API writes it; None for none."""
    # Python 3.9 does not read the Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


@dataclass(frozen=True)
class Finding:
    """A fault or a warning with its place."""

    message: str
    file: str = ""
    line: int | None = None
    command: str = ""
    field: str = ""
    column: int | None = None

    @classmethod
    def of(cls, raw: Raw) -> Finding:
        """Finding that the API tells so."""
        return cls(
            str(raw.get("message") or ""),
            str(raw.get("file") or ""),
            raw.get("line"),
            str(raw.get("command") or ""),
            str(raw.get("field") or ""),
            raw.get("column"),
        )

    @property
    def place(self) -> str:
        """`file:line:column`, or the field; empty if it has no place."""
        if self.file:
            numbers = [number for number in (self.line, self.column) if number]
            return ":".join(map(str, [self.file, *numbers]))
        return self.field

    def __str__(self) -> str:
        """The place and the message, as compilers write it."""
        return f"{self.place}: {self.message}" if self.place else self.message


@dataclass(frozen=True)
class NodeCounts:
    """Number of nodes of a DAG in each state."""

    total: int = 0
    done: int = 0
    submitted: int = 0
    ready: int = 0
    failed: int = 0
    futile: int = 0
    skipped: int = 0

    @classmethod
    def of(cls, raw: Raw) -> NodeCounts:
        """Counts that the API tells so."""
        return cls(**{name: int(raw.get(name) or 0) for name in cls.__dataclass_fields__})

    @property
    def ended(self) -> int:
        """Nodes that have ended, in whatever way."""
        return self.done + self.failed + self.futile + self.skipped


@dataclass(frozen=True)
class Dag:
    """A DAG."""

    id: int
    name: str
    owner: str
    state: str
    state_reason: str
    state_cause: str
    site: str
    nodes: NodeCounts
    labels: Sequence[str]
    priority: int | None
    unmatched_reason: str
    exit_code: int | None
    created_at: datetime | None
    ended_at: datetime | None
    raw: Raw = field(repr=False, compare=False)

    #: States in which it has ended.
    ENDS = frozenset({"completed", "failed", "removed"})

    @classmethod
    def of(cls, raw: Raw) -> Dag:
        """DAG that the API tells so."""
        return cls(
            id=raw["id"],
            name=raw["name"],
            owner=raw["owner"],
            state=raw["state"],
            state_reason=raw.get("state_reason") or "",
            state_cause=raw.get("state_cause") or "",
            site=raw.get("site") or "",
            nodes=NodeCounts.of(raw.get("nodes") or {}),
            labels=tuple(raw.get("labels") or ()),
            priority=raw.get("priority"),
            unmatched_reason=raw.get("unmatched_reason") or "",
            exit_code=raw.get("exit_code"),
            created_at=time_of(raw.get("created_at")),
            ended_at=time_of(raw.get("ended_at")),
            raw=raw,
        )

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state in self.ENDS

    @property
    def is_well(self) -> bool:
        """Whether it has ended well."""
        return self.state == "completed"

    @property
    def warnings(self) -> Sequence[Finding]:
        """Warnings of its submission; empty if it was not just submitted."""
        return tuple(map(Finding.of, self.raw.get("warnings") or ()))


@dataclass(frozen=True)
class Cluster:
    """A cluster: one job or many of one description."""

    id: int
    name: str
    owner: str
    state: str
    state_reason: str
    size: int
    made: int
    done: int
    failed: int
    killed: int
    faulty: int
    labels: Sequence[str]
    created_at: datetime | None
    raw: Raw = field(repr=False, compare=False)

    #: States in which it has ended.
    ENDS = frozenset({"completed", "removed"})

    @classmethod
    def of(cls, raw: Raw) -> Cluster:
        """Cluster that the API tells so."""
        counts = ("size", "made", "done", "failed", "killed", "faulty")
        return cls(
            id=raw["id"],
            name=raw["name"],
            owner=raw["owner"],
            state=raw["state"],
            state_reason=raw.get("state_reason") or "",
            labels=tuple(raw.get("labels") or ()),
            created_at=time_of(raw.get("created_at")),
            raw=raw,
            **{name: int(raw.get(name) or 0) for name in counts},
        )

    @property
    def has_ended(self) -> bool:
        """Whether all of its jobs have ended."""
        return self.state in self.ENDS

    @property
    def is_well(self) -> bool:
        """Whether all of its jobs are done."""
        return self.state == "completed" and self.done == self.size

    @property
    def warnings(self) -> Sequence[Finding]:
        """Warnings of its submission; empty if it was not just submitted."""
        return tuple(map(Finding.of, self.raw.get("warnings") or ()))


@dataclass(frozen=True)
class Job:
    """A job."""

    id: int
    name: str
    owner: str
    state: str
    state_reason: str
    state_cause: str
    process: int
    attempt_number: int
    created_at: datetime | None
    raw: Raw = field(repr=False, compare=False)

    #: States in which it has ended.
    ENDS = frozenset({"done", "failed", "killed"})

    @classmethod
    def of(cls, raw: Raw) -> Job:
        """Job that the API tells so."""
        return cls(
            id=raw["id"],
            name=raw["name"],
            owner=raw["owner"],
            state=raw["state"],
            state_reason=raw.get("state_reason") or "",
            state_cause=raw.get("state_cause") or "",
            process=int(raw.get("process") or 0),
            attempt_number=int(raw.get("attempt_number") or 0),
            created_at=time_of(raw.get("created_at")),
            raw=raw,
        )

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state in self.ENDS

    @property
    def is_well(self) -> bool:
        """Whether it has ended well."""
        return self.state == "done"


@dataclass(frozen=True)
class Site:
    """A site; `standing` is empty while it takes new DAGs."""

    name: str
    state: str
    is_enabled: bool
    standing: str
    standing_reason: str
    queues: Sequence[str]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> Site:
        """Site that the API tells so."""
        standing = raw.get("standing") or {}
        return cls(
            name=raw["name"],
            state=raw["state"],
            is_enabled=bool(raw.get("is_enabled")),
            standing=standing.get("kind") or "",
            standing_reason=standing.get("reason") or "",
            queues=tuple(queue["name"] for queue in raw.get("queues") or ()),
            raw=raw,
        )


@dataclass(frozen=True)
class Pilot:
    """A pilot."""

    uuid: str
    site: str
    queue: str
    state: str
    state_reason: str
    native_id: str
    heartbeat_at: datetime | None
    created_at: datetime | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> Pilot:
        """Pilot that the API tells so."""
        return cls(
            uuid=raw["uuid"],
            site=raw["site"],
            queue=raw["queue"],
            state=raw["state"],
            state_reason=raw.get("state_reason") or "",
            native_id=raw.get("native_id") or "",
            heartbeat_at=time_of(raw.get("heartbeat_at")),
            created_at=time_of(raw.get("created_at")),
            raw=raw,
        )


@dataclass(frozen=True)
class Check:
    """Result of a check: faults, warnings, and the shape of a DAG."""

    is_faultless: bool
    findings: Sequence[Finding]
    warnings: Sequence[Finding]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> Check:
        """Check that the API tells so."""
        return cls(
            bool(raw["is_faultless"]),
            tuple(map(Finding.of, raw["findings"])),
            tuple(map(Finding.of, raw["warnings"])),
            raw,
        )


@dataclass(frozen=True)
class LogPart:
    """A part of a log: its text, where it begins and ends, and whether more may come."""

    text: str
    offset: int
    next_offset: int
    is_growing: bool


@dataclass(frozen=True)
class FollowedLog:
    """Place up to which a portal has read the log of a DAG that runs elsewhere."""

    dag: int
    dag_state: str
    offset: int
    is_over: bool
    fault: str
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> FollowedLog:
        """Progress that the API tells so."""
        return cls(
            raw["dag"], raw["dag_state"], raw["offset"], bool(raw["is_over"]),
            raw.get("fault") or "", raw,
        )  # fmt: skip


@dataclass(frozen=True)
class Event:
    """An event of one object; `name` is that of a node, of others empty."""

    id: int
    kind: str
    object: str
    name: str
    event: str
    from_state: str
    to_state: str
    actor: str
    reason: str
    created_at: datetime | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> Event:
        """Event that the API tells so."""
        return cls(
            raw["id"], raw["kind"], raw["object"], raw.get("name") or "", raw["event"],
            raw["from_state"], raw["to_state"], raw["actor"], raw["reason"],
            time_of(raw["created_at"]), raw,
        )  # fmt: skip


@dataclass(frozen=True)
class EventBatch:
    """The next events, the cursor behind them, and in how many seconds to ask again."""

    events: Sequence[Event]
    cursor: str
    again_s: float

    @classmethod
    def of(cls, raw: Raw) -> EventBatch:
        """Batch that the API tells so."""
        return cls(tuple(map(Event.of, raw["events"])), raw["cursor"], float(raw["again_s"]))
