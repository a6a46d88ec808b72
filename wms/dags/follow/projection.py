"""Projection of job log events onto the nodes of a followed DAG, without database access.

Rows of clusters and processes are changed in memory only; steps of nodes (submit, retry, fail, ...)
are collected in order for `step_application`. Also warnings, the fault that makes the log
impossible, and the abort of the DAG.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wms.dags.engine.node_features import Features
from wms.dags.engine.settling.decisions import (
    JOB_REMOVED,
    NO_CODE,
    Attempt,
    Decision,
    Next,
    after_job,
    after_post,
)
from wms.dags.follow import event_log
from wms.dags.follow.bad_events import EventAction, EventCounts, EventKind, check_event
from wms.dags.follow.event_log import LogEvent
from wms.dags.models import FollowedCluster, FollowedProcess
from wms.dags.states import NodeState

_IDLE, _RUNNING, _HELD, _ENDED = FollowedProcess.Phase
#: Events of the node's state machine by decision.
_EVENTS = {
    Next.SUCCEED: "succeed",
    Next.FAIL: "fail",
    Next.RETRY: "retry",
    Next.RUN_POST: "start post",
}
_STATES = {
    "submit": NodeState.SUBMITTED,
    "succeed": NodeState.DONE,
    "skip": NodeState.DONE,
    "fail": NodeState.FAILED,
    "retry": NodeState.READY,
    "start post": NodeState.POST_RUNNING,
}
#: States of nodes that may be ready when their step is applied.
_NOT_BEGUN = frozenset({NodeState.WAITING, NodeState.READY})
_CHECKED_KINDS = {
    event_log.SUBMIT: EventKind.SUBMIT,
    event_log.EXECUTE: EventKind.EXECUTE,
    event_log.TERMINATED: EventKind.END,
    event_log.ABORTED: EventKind.ABORT,
}
_PHASES = {
    event_log.HELD: _HELD,
    event_log.RELEASED: _IDLE,
    event_log.EVICTED: _IDLE,
    event_log.SHADOW_EXCEPTION: _IDLE,
    event_log.SUSPENDED: _IDLE,
    event_log.RECONNECT_FAILED: _IDLE,
    event_log.UNSUSPENDED: _RUNNING,
}

ClusterKey = tuple[int, int]


@dataclass(slots=True)
class FollowedNode:
    """Node of a followed DAG in its state after the events so far."""

    id: int
    name: str
    kind: str
    state: str
    features: Features
    max_retries: int = 0
    retry_number: int = 0


@dataclass(slots=True)
class ClusterView:
    """Cluster with its processes that have events."""

    row: FollowedCluster
    processes: dict[int, FollowedProcess] = field(default_factory=dict)

    def process(self, number: int) -> FollowedProcess:
        """Process of this number, created with its first event."""
        if number not in self.processes:
            self.processes[number] = FollowedProcess(cluster=self.row, process=number)
        return self.processes[number]


@dataclass(frozen=True, slots=True)
class NodeStep:
    """Event of a node's state machine. `is_unsubmitted`: the node was never submitted."""

    event: str
    node: FollowedNode
    reason: str = ""
    is_unsubmitted: bool = False


def cluster_key(event: LogEvent) -> ClusterKey:
    """Key of an event's cluster row. NOOP nodes share cluster 0 and differ by subprocess."""
    return event.cluster, event.subprocess if event.cluster == 0 else 0


@dataclass(slots=True)
class Projection:
    """State of nodes and clusters after the events of a log.

    `nodes` and `clusters` are those of the events; missing clusters are created. `is_aside`: the
    DAG is aborted, so nothing is retried.
    """

    nodes: Mapping[str, FollowedNode]
    clusters: dict[ClusterKey, ClusterView]
    allow: int
    is_aside: bool = False
    steps: list[NodeStep] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: Why no further event can be applied.
    fault: str = ""
    #: Node and decision that abort the DAG.
    abort: tuple[str, Decision] | None = None
    _by_id: dict[int, FollowedNode] = field(init=False)

    def __post_init__(self) -> None:
        self._by_id = {node.id: node for node in self.nodes.values()}

    def apply(self, event: LogEvent) -> bool:
        """Apply an event; False with a `fault` when it is impossible."""
        handle = _HANDLERS.get(event.number)
        if event.number in _CHECKED_KINDS:
            self._check_and_apply(event, _CHECKED_KINDS[event.number])
        elif event.number in _PHASES:
            self._phase(event)
        elif handle is not None:
            handle(self, event)
        return not self.fault

    def _cluster(self, event: LogEvent) -> ClusterView:
        key = cluster_key(event)
        if key not in self.clusters:
            self.clusters[key] = ClusterView(FollowedCluster(cluster=key[0], part=key[1]))
        return self.clusters[key]

    def _check(self, event: LogEvent, kind: EventKind) -> EventAction:
        """Count the event and check it."""
        process = self._cluster(event).process(event.process)
        counts = EventCounts(
            process.submits, process.executes, process.ends, process.aborts, process.posts
        )
        action, problem = check_event(kind, counts, self.allow)
        for name, number in counts.after(kind)._asdict().items():
            setattr(process, name, number)
        if action is EventAction.ERROR:
            self.fault = f"job {event.job}: {problem}"
        elif action is not EventAction.OKAY:
            self.warnings.append(f"job {event.job}: {problem}")
        return action

    def _check_and_apply(self, event: LogEvent, kind: EventKind) -> None:
        if event.cluster != 0 and event.subprocess != 0:
            # One of the machines of a parallel job.
            return
        action = self._check(event, kind)
        view = self._cluster(event)
        process = view.process(event.process)
        if action is EventAction.ERROR:
            return
        if kind is EventKind.SUBMIT:
            # Even a submit event after the job's end has the name of its node.
            self._submit(event, view, process, is_used=action is not EventAction.IGNORE)
        elif action is not EventAction.IGNORE and kind is EventKind.EXECUTE:
            _enter(view, process, _RUNNING)
        elif action is not EventAction.IGNORE:
            self._end(event, view, process)

    def _submit(
        self, event: LogEvent, view: ClusterView, process: FollowedProcess, *, is_used: bool
    ) -> None:
        if process.submits > 1:
            return
        row = view.row
        row.submitted += 1
        if is_used and process.phase == _ENDED:
            _enter(view, process, _IDLE)
        if row.submitted == 1:
            self._begin(event, row)
        self._finish_if_ended(row)

    def _begin(self, event: LogEvent, row: FollowedCluster) -> None:
        """First job of a cluster: its node is submitted."""
        node = self.nodes.get(event.node_name)
        if node is None:
            of = f"node {event.node_name}, which the DAG does not have" if event.node_name else ""
            self.warnings.append(f"job {event.job} is of {of or 'no DAG node'}")
            return
        row.node_id = node.id
        if node.state not in _NOT_BEGUN:
            self.fault = f"job {event.job}: node {node.name} was submitted while {node.state}"
            return
        self._step("submit", node)

    def _end(self, event: LogEvent, view: ClusterView, process: FollowedProcess) -> None:
        row = view.row
        _enter(view, process, _ENDED)
        row.ended += 1
        code, reason = _outcome(event)
        if code:
            row.failed += 1
            if not row.code:
                # Steps with equal reasons are applied together.
                of = f"job {event.job}: " if event.process > 0 else ""
                row.code, row.reason = code, f"{of}{reason}"
        self._finish_if_ended(row)

    def _finish_if_ended(self, row: FollowedCluster) -> None:
        """Add the step of the cluster's node when all jobs have ended."""
        if row.is_closed or row.is_growing or not 0 < row.submitted <= row.ended:
            return
        node = self._node_of(row)
        if node is None or self.fault:
            return
        row.is_closed = True
        code = row.code if row.failed > _tolerated(node, row.submitted) else 0
        self._decide(node, after_job(self._attempt(node), code), row.reason if code else "")

    def _node_of(self, row: FollowedCluster) -> FollowedNode | None:
        return self._by_id.get(row.node_id or 0)

    def _attempt(self, node: FollowedNode) -> Attempt:
        left = 0 if self.is_aside else node.max_retries - node.retry_number
        return Attempt(node.features, left)

    def _decide(self, node: FollowedNode, decision: Decision, reason: str) -> None:
        event = _EVENTS[decision.next]
        needs_reason = event in {"fail", "retry"}
        self._step(event, node, reason or ("the node failed" if needs_reason else ""))
        node.retry_number += event == "retry"
        if decision.aborts_with is not None and not self.is_aside:
            self.abort, self.is_aside = (node.name, decision), True

    def _step(
        self, event: str, node: FollowedNode, reason: str = "", *, is_unsubmitted: bool = False
    ) -> None:
        self.steps.append(NodeStep(event, node, reason, is_unsubmitted))
        node.state = _STATES[event].value

    def _phase(self, event: LogEvent) -> None:
        view = self._cluster(event)
        process = view.process(event.process)
        if process.phase != _ENDED:
            _enter(view, process, _PHASES[event.number])

    def _post(self, event: LogEvent) -> None:
        """End of a POST script, which decides about its node."""
        has_job = event.cluster >= 0
        row = self._cluster(event).row if has_job else None
        node = self.nodes.get(event.node_name) or (self._node_of(row) if row is not None else None)
        if node is None:
            self.warnings.append(f"a POST script ended of no node of the DAG ({event.node_name})")
            return
        if has_job and self._check(event, EventKind.POST) not in (
            EventAction.OKAY,
            EventAction.WARN,
        ):
            return
        if not has_job and node.state in _NOT_BEGUN:
            # Nothing could be submitted, or PRE had failed.
            self._step("start post", node, is_unsubmitted=True)
        if node.state != NodeState.POST_RUNNING:
            warning = f"the POST script of node {node.name} ended while the node was {node.state}"
            self.warnings.append(warning)
            return
        code = NO_CODE if event.code is None else event.code
        reason = f"POST script: {_words(code)}" if code else ""
        self._decide(node, after_post(self._attempt(node), code), reason)

    def _pre_skip(self, event: LogEvent) -> None:
        node = self.nodes.get(event.node_name)
        if node is None or node.state not in _NOT_BEGUN:
            skipped = f"node {event.node_name} was skipped by its PRE script"
            self.warnings.append(f"{skipped} while {node.state if node else 'not in the DAG'}")
            return
        self._step("skip", node, "PRE_SKIP", is_unsubmitted=True)

    def _start_growing(self, event: LogEvent) -> None:
        self._cluster(event).row.is_growing = True

    def _stop_growing(self, event: LogEvent) -> None:
        row = self._cluster(event).row
        row.is_growing = False
        self._finish_if_ended(row)


_HANDLERS: Mapping[int, Callable[[Projection, LogEvent], None]] = {
    event_log.POST_SCRIPT_TERMINATED: Projection._post,
    event_log.PRE_SKIP: Projection._pre_skip,
    event_log.CLUSTER_SUBMIT: Projection._start_growing,
    event_log.CLUSTER_REMOVE: Projection._stop_growing,
}


def _enter(view: ClusterView, process: FollowedProcess, phase: FollowedProcess.Phase) -> None:
    """Set the phase of a process, and the counts of running and held ones in its cluster."""
    row = view.row
    row.running += (phase == _RUNNING) - (process.phase == _RUNNING)
    row.held += (phase == _HELD) - (process.phase == _HELD)
    process.phase = phase


def _outcome(event: LogEvent) -> tuple[int, str]:
    """Exit code of a job's end, and the reason if it is not 0."""
    if event.number == event_log.ABORTED:
        return JOB_REMOVED, f"removed: {event.reason}" if event.reason else "removed"
    code = NO_CODE if event.code is None else event.code
    return code, _words(code)


def _words(code: int) -> str:
    if code == NO_CODE:
        return "the log does not tell how it ended"
    return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"


def _tolerated(node: FollowedNode, total: int) -> int:
    rule = node.features.tolerance
    if rule is None:
        return 0
    return total * rule.limit // 100 if rule.is_percent else rule.limit
