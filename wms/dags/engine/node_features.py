"""Features of a node beyond a plain job (scripts, retry, abort, ...), as values and as JSON.

Written from the parsed DAG file, read from the node's row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from wms.dags.language.plain_values import texts_of
from wms.dags.language.spec import (
    AbortRule,
    GateSpec,
    NodeSpec,
    Repeat,
    SourceLocation,
    TimeLimits,
    Tolerance,
)
from wms.dags.states import NodeKind, ScriptKind


@dataclass(frozen=True, slots=True)
class Script:
    """A script of a node; `arguments` still have their macros."""

    executable: str
    arguments: tuple[str, ...]
    defer_status: int | None = None
    defer_s: int = 0
    debug_file: str = ""
    debug_stream: str = ""


@dataclass(frozen=True, slots=True)
class Features:
    """Features of one node; a plain node has none."""

    scripts: Mapping[str, Script] = field(default_factory=dict)
    pre_skip: int | None = None
    unless_exit: int | None = None
    avoids_sites: bool = False
    changes: tuple[tuple[str, str, str], ...] = ()
    abort: AbortRule | None = None
    tolerance: Tolerance | None = None
    time_limits: TimeLimits | None = None
    always_runs_post: bool = False
    save_point: str | None = None
    is_noop: bool = False
    gate: GateSpec | None = None
    repeat: Repeat | None = None
    expand: str = ""
    source: str = ""
    appended: Mapping[str, str] = field(default_factory=dict)

    def script(self, kind: ScriptKind) -> Script | None:
        """The node's script of this kind, if it has one."""
        return self.scripts.get(kind.value)


PLAIN = Features()


def features_of(values: Mapping[str, Any] | None) -> Features:
    """Features in the JSON of a row."""
    if not values:
        return PLAIN
    known: dict[str, Any] = dict(values)
    scripts = {
        kind: Script(**{**given, "arguments": tuple(given["arguments"])})
        for kind, given in known.pop("scripts", {}).items()
    }
    for name, kind in (("abort", AbortRule), ("tolerance", Tolerance), ("time_limits", TimeLimits)):
        if name in known:
            known[name] = kind(**known[name])
    if "gate" in known:
        known["gate"] = _gate(known["gate"])
    if "repeat" in known:
        known["repeat"] = _repeat(known["repeat"])
    if "changes" in known:
        known["changes"] = tuple(tuple(change) for change in known["changes"])
    return Features(scripts=scripts, **known)


def features_row(spec: NodeSpec, *, keeps_source: bool) -> dict[str, Any] | None:
    """JSON of the features of a node of a DAG file; None for a plain node.

    `keeps_source`: the node's file is read when it starts, or there is no description for it yet.
    """
    if not keeps_source and _is_usual(spec):
        return None
    row = _rules_row(spec)
    row["pre_skip"] = spec.pre_skip
    row["save_point"] = spec.save_point
    row["always_runs_post"] = spec.always_runs_post
    row["is_noop"] = spec.is_noop
    if spec.gate is not None:
        row["gate"] = _gate_row(spec.gate)
    elif keeps_source or spec.kind in (NodeKind.SUBDAG, NodeKind.DATA):
        row["source"] = spec.source
    _, row["appended"] = texts_of(spec.variables)
    return {
        name: value
        for name, value in row.items()
        if value not in (None, False, [], {}) or name == "gate"
    } or None


def _rules_row(spec: NodeSpec) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if spec.scripts:
        row["scripts"] = {kind.value: _script_row(script) for kind, script in spec.scripts.items()}
    if spec.retry is not None:
        row["unless_exit"] = spec.retry.unless_exit
        row["avoids_sites"] = spec.retry.avoids_sites
        row["changes"] = [list(change) for change in spec.retry.changes]
    for name in ("abort", "tolerance", "time_limits"):
        if (rule := getattr(spec, name)) is not None:
            row[name] = asdict(rule)
    if isinstance(spec.grows, Repeat):
        row["repeat"] = _repeat_row(spec.grows)
    elif spec.grows is not None:
        row["expand"] = spec.grows.path
    return row


def _repeat_row(rule: Repeat) -> dict[str, Any]:
    return {"text": rule.text, "most": rule.most, "pass_number": rule.pass_number}


def _repeat(row: Mapping[str, Any]) -> Repeat:
    return Repeat(location=SourceLocation("", 0), **row)


def _gate_row(gate: GateSpec) -> dict[str, Any]:
    row = {
        "who": list(gate.who),
        "deadline_s": gate.deadline_s,
        "opens_then": gate.opens_then,
        "opens_at": gate.opens_at.isoformat() if gate.opens_at is not None else None,
    }
    return {name: value for name, value in row.items() if value}


def _gate(row: Mapping[str, Any]) -> GateSpec:
    opens_at = row.get("opens_at")
    return GateSpec(
        who=tuple(row.get("who", ())),
        deadline_s=row.get("deadline_s", 0),
        opens_then=row.get("opens_then", False),
        opens_at=datetime.fromisoformat(opens_at) if opens_at else None,
    )


def _is_usual(spec: NodeSpec) -> bool:
    """Whether a job of a DAG file has nothing but a description and values for that, as most."""
    retry = spec.retry
    return (
        spec.kind is NodeKind.JOB
        and not (spec.is_noop or spec.always_runs_post or spec.scripts)
        and (retry is None or not (retry.avoids_sites or retry.changes))
        and (retry is None or retry.unless_exit is None)
        and spec.grows is None
        and spec.abort is None
        and spec.tolerance is None
        and spec.time_limits is None
        and spec.pre_skip is None
        and spec.save_point is None
        and not texts_of(spec.variables)[1]
    )


def _script_row(script: Any) -> dict[str, Any]:
    row = {
        "executable": script.executable,
        "arguments": list(script.arguments),
        "defer_status": script.defer_status,
        "defer_s": script.defer_s,
        "debug_file": script.debug_file,
        "debug_stream": script.debug_stream,
    }
    return {name: value for name, value in row.items() if value not in (None, "")}
