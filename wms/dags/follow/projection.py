"""What the events of a log say about the nodes of a DAG: a pure fold, event by event.

Rows of clusters and processes are changed in memory only; steps of nodes are collected, in order,
for whoever moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wms.dags.engine.decisions import (
    JOB_REMOVED,
    NO_CODE,
    Attempt,
    Decision,
    Next,
    after_job,
    after_post,
)
from wms.dags.engine.node_features import Features
from wms.dags.follow import reader
from wms.dags.follow.badevents import Answer, Counts, EventKind, judge
from wms.dags.follow.reader import LogEvent
from wms.dags.models import FollowedCluster, FollowedProcess
from wms.dags.states import NodeState

_IDLE, _RUNNING, _HELD, _ENDED = FollowedProcess.Phase
#: What decisions mean for a node, as events of its state machine.
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
#: A node of one of these states may be ready by the time that its event is carried out.
_NOT_BEGUN = frozenset({NodeState.WAITING, NodeState.READY})
_JUDGED = {
    reader.SUBMIT: EventKind.SUBMIT,
    reader.EXECUTE: EventKind.EXECUTE,
    reader.TERMINATED: EventKind.END,
    reader.ABORTED: EventKind.ABORT,
}
_PHASES = {
    reader.HELD: _HELD,
    reader.RELEASED: _IDLE,
    reader.EVICTED: _IDLE,
    reader.SHADOW_EXCEPTION: _IDLE,
    reader.SUSPENDED: _IDLE,
    reader.RECONNECT_FAILED: _IDLE,
    reader.UNSUSPENDED: _RUNNING,
}

ClusterKey = tuple[int, int]


@dataclass(slots=True)
class FollowedNode:
    """A node as the log has brought it so far."""

    id: int
    name: str
    kind: str
    state: str
    features: Features
    max_retries: int = 0
    retry_number: int = 0


@dataclass(slots=True)
class ClusterView:
    """A cluster with those of its processes that events are of."""

    row: FollowedCluster
    processes: dict[int, FollowedProcess] = field(default_factory=dict)

    def process(self, number: int) -> FollowedProcess:
        """The process, made if this is its first event."""
        if number not in self.processes:
            self.processes[number] = FollowedProcess(cluster=self.row, process=number)
        return self.processes[number]


@dataclass(frozen=True, slots=True)
class Step:
    """A node moves by an event. `is_unsubmitted`: straight from the ready queue."""

    event: str
    node: FollowedNode
    reason: str = ""
    is_unsubmitted: bool = False


def key_of(event: LogEvent) -> ClusterKey:
    """Which row has the event's cluster. NOOP nodes share cluster 0, told apart by subprocess."""
    return event.cluster, event.subprocess if event.cluster == 0 else 0


@dataclass(slots=True)
class Projection:
    """Takes events in, in the order of the log.

    `nodes` and `clusters` are those that the events are of; of clusters, what is not there yet is
    made. `is_aside`: the DAG is aborted, so nothing is retried.
    """

    nodes: Mapping[str, FollowedNode]
    clusters: dict[ClusterKey, ClusterView]
    allow: int
    is_aside: bool = False
    steps: list[Step] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: Why nothing more can be taken in.
    fault: str = ""
    #: The node and the decision that abort the DAG.
    abort: tuple[str, Decision] | None = None
    _by_id: dict[int, FollowedNode] = field(init=False)

    def __post_init__(self) -> None:
        self._by_id = {node.id: node for node in self.nodes.values()}

    def take(self, event: LogEvent) -> bool:
        """Take one event in; False when it makes no sense, which `fault` tells then."""
        handle = _HANDLERS.get(event.number)
        if event.number in _JUDGED:
            self._judged(event, _JUDGED[event.number])
        elif event.number in _PHASES:
            self._phase(event)
        elif handle is not None:
            handle(self, event)
        return not self.fault

    def _cluster(self, event: LogEvent) -> ClusterView:
        key = key_of(event)
        if key not in self.clusters:
            self.clusters[key] = ClusterView(FollowedCluster(cluster=key[0], part=key[1]))
        return self.clusters[key]

    def _judge(self, event: LogEvent, kind: EventKind) -> Answer:
        """Count the event, and say what is done with it."""
        process = self._cluster(event).process(event.process)
        counts = Counts(
            process.submits, process.executes, process.ends, process.aborts, process.posts
        )
        answer, what = judge(kind, counts, self.allow)
        for name, number in counts.after(kind)._asdict().items():
            setattr(process, name, number)
        if answer is Answer.ERROR:
            self.fault = f"job {event.job}: {what}"
        elif answer is not Answer.OKAY:
            self.warnings.append(f"job {event.job}: {what}")
        return answer

    def _judged(self, event: LogEvent, kind: EventKind) -> None:
        if event.cluster != 0 and event.subprocess != 0:
            # One of the machines of a parallel job.
            return
        answer = self._judge(event, kind)
        view = self._cluster(event)
        process = view.process(event.process)
        if answer is Answer.ERROR:
            return
        if kind is EventKind.SUBMIT:
            # Even one that comes after the job's end tells which node the job is of.
            self._submit(event, view, process, is_used=answer is not Answer.IGNORE)
        elif answer is not Answer.IGNORE and kind is EventKind.EXECUTE:
            _enter(view, process, _RUNNING)
        elif answer is not Answer.IGNORE:
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
        self._close_if_ended(row)

    def _begin(self, event: LogEvent, row: FollowedCluster) -> None:
        """The first job of a cluster: its node is submitted."""
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
                # Equal reasons of many nodes are told to them at once.
                of = f"job {event.job}: " if event.process > 0 else ""
                row.code, row.reason = code, f"{of}{reason}"
        self._close_if_ended(row)

    def _close_if_ended(self, row: FollowedCluster) -> None:
        """Move the cluster's node on when all jobs have ended."""
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
        self.steps.append(Step(event, node, reason, is_unsubmitted))
        node.state = _STATES[event].value

    def _phase(self, event: LogEvent) -> None:
        view = self._cluster(event)
        process = view.process(event.process)
        if process.phase != _ENDED:
            _enter(view, process, _PHASES[event.number])

    def _post(self, event: LogEvent) -> None:
        """A POST script has ended: it decides about its node."""
        has_job = event.cluster >= 0
        row = self._cluster(event).row if has_job else None
        node = self.nodes.get(event.node_name) or (self._node_of(row) if row is not None else None)
        if node is None:
            self.warnings.append(f"a POST script ended of no node of the DAG ({event.node_name})")
            return
        if has_job and self._judge(event, EventKind.POST) not in (Answer.OKAY, Answer.WARN):
            return
        if not has_job and node.state in _NOT_BEGUN:
            # Nothing could be submitted, or PRE had failed.
            self._step("start post", node, is_unsubmitted=True)
        if node.state != NodeState.POST_RUNNING:
            told = f"the POST script of node {node.name} ended while the node was {node.state}"
            self.warnings.append(told)
            return
        code = NO_CODE if event.code is None else event.code
        reason = f"POST script: {_words(code)}" if code else ""
        self._decide(node, after_post(self._attempt(node), code), reason)

    def _pre_skip(self, event: LogEvent) -> None:
        node = self.nodes.get(event.node_name)
        if node is None or node.state not in _NOT_BEGUN:
            told = f"node {event.node_name} was skipped by its PRE script"
            self.warnings.append(f"{told} while {node.state if node else 'not in the DAG'}")
            return
        self._step("skip", node, "PRE_SKIP", is_unsubmitted=True)

    def _grow(self, event: LogEvent) -> None:
        self._cluster(event).row.is_growing = True

    def _stop_growing(self, event: LogEvent) -> None:
        row = self._cluster(event).row
        row.is_growing = False
        self._close_if_ended(row)


_HANDLERS: Mapping[int, Callable[[Projection, LogEvent], None]] = {
    reader.POST_SCRIPT_TERMINATED: Projection._post,
    reader.PRE_SKIP: Projection._pre_skip,
    reader.CLUSTER_SUBMIT: Projection._grow,
    reader.CLUSTER_REMOVE: Projection._stop_growing,
}


def _enter(view: ClusterView, process: FollowedProcess, phase: FollowedProcess.Phase) -> None:
    """The process goes into a phase; its cluster counts those that run and those on hold."""
    row = view.row
    row.running += (phase == _RUNNING) - (process.phase == _RUNNING)
    row.held += (phase == _HELD) - (process.phase == _HELD)
    process.phase = phase


def _outcome(event: LogEvent) -> tuple[int, str]:
    """The code of a job's end, and why it is not 0."""
    if event.number == reader.ABORTED:
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
