"""What a simulated run came to, in the words of the cases."""

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
from wms.dags.simulation.record import Record
from wms.dags.simulation.world import World
from wms.dags.states import DAG_TERMINAL, DagState, DagStatus, NodeState
from wms.dags.submission.workspaces import read_file
from wms.jobs.models import Workspace, WorkspaceFile

_STATES = {
    DagState.COMPLETED.value: "success",
    DagState.FAILED.value: "failed",
    DagState.REMOVED.value: "removed",
}
_FAILURES = {DagStatus.ABORTED: "aborted", DagStatus.CYCLE: "cycle", DagStatus.HALTED: "halted"}
#: The words that cases have for the states of nodes.
NODE_WORDS = {
    NodeState.WAITING.value: "unready",
    NodeState.READY.value: "ready",
    NodeState.PRE_RUNNING.value: "pre",
    NodeState.SUBMITTED.value: "submitted",
    NodeState.POST_RUNNING.value: "post",
    NodeState.DONE.value: "done",
    NodeState.FAILED.value: "error",
    NodeState.FUTILE.value: "futile",
}


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """Where a node is at the end, and why."""

    name: str
    kind: str
    state: str
    reason: str
    retries: int
    dag_id: int


@dataclass(slots=True)
class Outcome:
    """What became of a submission; one that was refused has findings, and nothing ran.

    `nodes` are those of the DAG in its order, then those of inner DAGs.
    """

    dag_state: str
    dag_status: int
    exit_code: int | None
    record: Record
    workspace: Workspace
    reason: str = ""
    dag: Dag | None = None
    world: World | None = None
    nodes: list[NodeOutcome] = field(default_factory=list)
    findings: Sequence[Finding] = ()
    warnings: Sequence[Finding] = ()
    rescue_path: str = ""
    rescue_done: list[str] | None = None

    @property
    def messages(self) -> list[str]:
        """Everything that tells what went wrong."""
        told = [str(finding) for finding in self.findings]
        told += [self.reason] if self.reason else []
        return told + [f"{node.name}: {node.reason}" for node in self.nodes if node.reason]

    def state_of(self, name: str) -> str | None:
        """Where a node is: one of the DAG, else one of the latest inner DAG that has it."""
        own = self.dag.pk if self.dag is not None else None
        found = [node for node in self.nodes if node.name == name]
        of_dag = [node for node in found if node.dag_id == own]
        return (of_dag or found)[-1].state if found else None

    def file(self, path: str) -> str | None:
        """The text of a file of the workspace, or of one that is made on demand."""
        content = read_file(self.workspace.pk, path)
        if content is not None:
            return content.decode(errors="replace")
        found = self._export(path)
        return None if found is None else "".join(export(found[0], found[1], now=self._now()))

    def has_file(self, path: str) -> bool:
        """Whether there is such a file, in the workspace or on demand."""
        files = WorkspaceFile.objects.filter(workspace=self.workspace, path=path)
        return files.exists() or self._export(path) is not None

    def _export(self, path: str) -> tuple[Dag, str] | None:
        if self.world is None:
            return None
        for dag in Dag.objects.filter(pk__in=self.world.dag_ids).order_by("pk"):
            for kind in EXPORTS:
                if export_name(dag, kind) == path and _is_written(dag, kind):
                    return dag, kind
        return None

    def _now(self) -> Any:
        return self.world.now if self.world is not None else None

    def as_dict(self) -> dict[str, Any]:
        """The outcome for programs."""
        record = self.record
        return {
            "dag_state": self.dag_state,
            "dag_status": self.dag_status,
            "exit_code": self.exit_code,
            "reason": self.reason,
            "errors": [_finding(each) for each in self.findings],
            "warnings": [_finding(each) for each in self.warnings],
            "nodes": {node.name: node.state for node in self.nodes},
            "attempts": record.attempts,
            "procs": record.processes,
            "start_order": record.start_order,
            "args": {
                name: [list(run.arguments) for run in runs]
                for name, runs in record.components.items()
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
                    "result": run.how,
                }
                for run in record.runs
            ],
        }


def _is_written(dag: Dag, kind: str) -> bool:
    """DAGMan writes metrics and event log always, the others where the DAG file asks for them."""
    return kind in {"metrics", "eventlog"} or bool(dag.exports.get(kind))


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "message": finding.message,
        "file": finding.file,
        "line": finding.line,
        "field": finding.field,
        "command": finding.command,
    }


def refused(
    findings: Sequence[Finding], workspace: Workspace, warnings: Sequence[Finding] = ()
) -> Outcome:
    """The outcome of a submission that was not accepted."""
    return Outcome(
        "invalid",
        int(DagStatus.ERROR),
        1,
        Record(),
        workspace,
        findings=findings,
        warnings=warnings,
    )


def outcome_of(world: World) -> Outcome:
    """What the run has come to."""
    dag = world.dag
    dag.refresh_from_db()
    rescue = Rescue.objects.filter(dag=dag, kind=Rescue.Kind.RESCUE).order_by("pk").last()
    return Outcome(
        dag_state=_state_word(dag),
        dag_status=dag.status,
        exit_code=dag.exit_code,
        record=world.record,
        workspace=dag.workspace,
        reason=dag.state_reason,
        dag=dag,
        world=world,
        nodes=_nodes(world),
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


def _nodes(world: World) -> list[NodeOutcome]:
    rows = Node.objects.filter(dag_id__in=world.dag_ids).order_by("dag_id", "ordinal")
    return [
        NodeOutcome(name, kind, NODE_WORDS[state], reason, retries, dag_id)
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


def values_in(text: str) -> dict[str, Any] | None:
    """The keys and values of a JSON file; None when it is none."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None
