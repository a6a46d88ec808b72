"""Outcome of a simulated submission: findings, states of DAG and nodes, files, rescue, and trace.

States have the names that conformance cases use. Also the outcome as JSON values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wms.core.errors import Finding
from wms.dags.exports.catalogue import EXPORTS, export, export_name
from wms.dags.models import Dag, DagEvent, Node, Rescue
from wms.dags.rescue.text import parse_rescue
from wms.dags.simulation.behaviour import US_PER_S
from wms.dags.simulation.context import SimulationContext
from wms.dags.simulation.trace import Trace
from wms.dags.states import DAG_TERMINAL, DagState, DagStatus, NodeState
from wms.dags.submission.workspaces import read_file
from wms.jobs.models import Workspace, WorkspaceFile

_STATES = {
    DagState.COMPLETED.value: "success",
    DagState.FAILED.value: "failed",
    DagState.REMOVED.value: "removed",
}
_FAILURES = {DagStatus.ABORTED: "aborted", DagStatus.CYCLE: "cycle", DagStatus.HALTED: "halted"}
#: State names of nodes in conformance cases and dry runs.
CASE_STATE_NAMES = {
    NodeState.WAITING.value: "unready",
    NodeState.READY.value: "ready",
    NodeState.PRE_RUNNING.value: "pre",
    NodeState.SUBMITTED.value: "submitted",
    NodeState.POST_RUNNING.value: "post",
    NodeState.DONE.value: "done",
    NodeState.FAILED.value: "error",
    NodeState.FUTILE.value: "futile",
    NodeState.SKIPPED.value: "skipped",
}


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """State of a node at the end of the simulation."""

    name: str
    kind: str
    state: str
    reason: str
    retries: int
    dag_id: int


@dataclass(slots=True)
class Outcome:
    """Outcome of a submission; a refused one has findings, and nothing ran.

    `nodes` are the nodes of the DAG in its order, then those of inner DAGs.
    """

    dag_state: str
    dag_status: int
    exit_code: int | None
    trace: Trace
    workspace: Workspace
    reason: str = ""
    dag: Dag | None = None
    context: SimulationContext | None = None
    nodes: list[NodeOutcome] = field(default_factory=list)
    findings: Sequence[Finding] = ()
    warnings: Sequence[Finding] = ()
    rescue_path: str = ""
    rescue_done: list[str] | None = None

    @property
    def messages(self) -> list[str]:
        """Messages of the findings, reasons of the DAG and of its nodes."""
        messages = [str(finding) for finding in self.findings]
        messages += [self.reason] if self.reason else []
        return messages + [f"{node.name}: {node.reason}" for node in self.nodes if node.reason]

    def state_of(self, name: str) -> str | None:
        """State of the node of this name in the DAG, else in the latest inner DAG that has one."""
        own_id = self.dag.pk if self.dag is not None else None
        nodes = [node for node in self.nodes if node.name == name]
        own_nodes = [node for node in nodes if node.dag_id == own_id]
        return (own_nodes or nodes)[-1].state if nodes else None

    def file(self, path: str) -> str | None:
        """Text of a file of the workspace, or of an export; None without such a file."""
        content = read_file(self.workspace.pk, path)
        if content is not None:
            return content.decode(errors="replace")
        source = self._export_source(path)
        return None if source is None else "".join(export(*source, now=self._now()))

    def has_file(self, path: str) -> bool:
        """Whether there is such a file in the workspace, or such an export."""
        files = WorkspaceFile.objects.filter(workspace=self.workspace, path=path)
        return files.exists() or self._export_source(path) is not None

    def _export_source(self, path: str) -> tuple[Dag, str] | None:
        if self.context is None:
            return None
        for dag in Dag.objects.filter(pk__in=self.context.dag_ids).order_by("pk"):
            for kind in EXPORTS:
                if export_name(dag, kind) == path and _is_written(dag, kind):
                    return dag, kind
        return None

    def _now(self) -> Any:
        return self.context.now if self.context is not None else None

    def as_dict(self) -> dict[str, Any]:
        """Outcome as JSON values."""
        trace = self.trace
        return {
            "dag_state": self.dag_state,
            "dag_status": self.dag_status,
            "exit_code": self.exit_code,
            "reason": self.reason,
            "errors": [finding_as_dict(each) for each in self.findings],
            "warnings": [finding_as_dict(each) for each in self.warnings],
            "nodes": {node.name: node.state for node in self.nodes},
            "attempts": trace.attempts,
            "procs": trace.processes,
            "start_order": trace.start_order,
            "args": {
                name: [list(run.arguments) for run in runs]
                for name, runs in trace.components.items()
            },
            "rescue_file": self.rescue_path or None,
            "rescue_done": self.rescue_done,
            "runs": [
                {
                    "component": run.component,
                    "run": run.number,
                    "process": run.process,
                    "start_s": run.started_us / US_PER_S,
                    "end_s": None if run.ended_us is None else run.ended_us / US_PER_S,
                    "result": run.ending,
                }
                for run in trace.runs
            ],
        }


def _is_written(dag: Dag, kind: str) -> bool:
    """DAGMan writes metrics and event log always, the others where the DAG file asks for them."""
    return kind in {"metrics", "eventlog"} or bool(dag.exports.get(kind))


def finding_as_dict(finding: Finding) -> dict[str, Any]:
    """Finding as JSON values."""
    return {
        "message": finding.message,
        "file": finding.file,
        "line": finding.line,
        "field": finding.field,
        "command": finding.command,
    }


def refused_outcome(
    findings: Sequence[Finding], workspace: Workspace, warnings: Sequence[Finding] = ()
) -> Outcome:
    """Outcome of a submission that was refused."""
    return Outcome(
        "invalid",
        int(DagStatus.ERROR),
        1,
        Trace(),
        workspace,
        findings=findings,
        warnings=warnings,
    )


def outcome_of_run(context: SimulationContext) -> Outcome:
    """Outcome of a simulation that has ended."""
    dag = context.dag
    dag.refresh_from_db()
    rescue = Rescue.objects.filter(dag=dag, kind=Rescue.Kind.RESCUE).order_by("pk").last()
    return Outcome(
        dag_state=_state_word(dag),
        dag_status=dag.status,
        exit_code=dag.exit_code,
        trace=context.trace,
        workspace=dag.workspace,
        reason=dag.state_reason,
        dag=dag,
        context=context,
        nodes=_nodes(context),
        warnings=_warnings(dag),
        rescue_path=rescue.path if rescue is not None else "",
        rescue_done=_done_in(dag.workspace, rescue) if rescue is not None else None,
    )


def _state_word(dag: Dag) -> str:
    if dag.state == DagState.FAILED:
        return _FAILURES.get(DagStatus(dag.status), "failed")
    if dag.state in DAG_TERMINAL:
        return _STATES[dag.state]
    # Nothing can happen any more, and yet it has not ended.
    return f"unfinished ({dag.state})"


def _nodes(context: SimulationContext) -> list[NodeOutcome]:
    rows = Node.objects.filter(dag_id__in=context.dag_ids).order_by("dag_id", "ordinal")
    return [
        NodeOutcome(name, kind, CASE_STATE_NAMES[state], reason, retries, dag_id)
        for name, kind, state, reason, retries, dag_id in rows.values_list(
            "name", "kind", "state", "state_reason", "retry_number", "dag_id"
        )
    ]


def _warnings(dag: Dag) -> list[Finding]:
    facts = DagEvent.objects.filter(dag=dag, event="submit").values_list("facts", flat=True).first()
    return [Finding(**warning) for warning in (facts or {}).get("warnings", [])]


def _done_in(workspace: Workspace, rescue: Rescue) -> list[str]:
    content = read_file(workspace.pk, rescue.path) or b""
    text, _ = parse_rescue(content.decode(), file=rescue.path)
    return sorted(text.done)


def parse_json_object(text: str) -> dict[str, Any] | None:
    """JSON object in a text, None when there is none."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None
