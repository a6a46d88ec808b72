"""Timeline of a DAG's run in DAGMan's event names, merged from the state changes in order of time.

It numbers attempts and jobs as DAGMan does. The exports `jobstate.log` and job event log are both
made from it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from wms.dags.engine.settling.decisions import JOB_REMOVED, NO_CODE
from wms.dags.exports.state_changes import (
    ChangeOrder,
    DagChange,
    JobChange,
    NodeChange,
    ScriptEnd,
    ScriptStart,
    change_streams,
    earlier_attempts,
)
from wms.dags.models import Dag
from wms.dags.states import NodeKind, NodeState

#: The ids of what has no job of HTCondor: the cluster of NOOP nodes is 0, as DAGMan has it; nodes
#: that run an inner DAG or a placement have their own number as cluster.
NOOP_PROCESS = 2**31 - 1
INNER_PROCESS = NOOP_PROCESS - 1
_WITH_PAYLOAD = frozenset({"running", "stalled"})


class JobId(NamedTuple):
    """Cluster, process and subprocess, as HTCondor numbers jobs."""

    cluster: int
    process: int
    subprocess: int = 0


class TimelineEvent(NamedTuple):
    """One event of the timeline; `name` is the event's name in `jobstate.log`.

    `attempt` counts the attempts of all nodes, from 1. `code` is an exit code, or minus a signal.
    """

    time: datetime
    name: str
    node: str = ""
    attempt: int = 0
    job: JobId | None = None
    code: int = 0
    text: str = ""
    cpu_s: float = 0.0


@dataclass(slots=True)
class _Attempt:
    """One attempt of a node that is still active."""

    number: int
    node: str
    last_job: JobId | None = None
    #: Exit code of the first job that failed.
    code: int = 0
    open_jobs: int = 0
    has_ended: bool = False


@dataclass(slots=True)
class Timeline:
    """Translates the state changes of a DAG's run into DAGMan's events."""

    dag: Dag
    _count: int = 0
    _noops: int = 0
    _by_node: dict[int, _Attempt] = field(default_factory=dict)
    _by_cluster: dict[int, _Attempt] = field(default_factory=dict)
    #: Job events before the submission event of their node, which is in the same transaction.
    _early_job_changes: dict[int, list[JobChange]] = field(default_factory=dict)
    _hosts: dict[int, str] = field(default_factory=dict)

    def events(self) -> Iterator[TimelineEvent]:
        """All events in order. Memory is used for active attempts only, not for all nodes."""
        self._count = earlier_attempts(self.dag)
        for change in heapq.merge(*change_streams(self.dag), key=ChangeOrder.key):
            if isinstance(change, NodeChange):
                yield from self._node_events(change)
            elif isinstance(change, JobChange):
                yield from self._job_events(change)
            elif isinstance(change, ScriptStart):
                yield self._script_event(change, f"{change.kind.upper()}_SCRIPT_STARTED")
            elif isinstance(change, ScriptEnd):
                yield from self._script_end_events(change)
            else:
                yield self._dag_event(change)

    def _dag_event(self, change: DagChange) -> TimelineEvent:
        if change.is_end:
            defaults = {"complete": 0, "fail": 1, "remove": 2}
            code = self.dag.exit_code
            code = defaults[change.event] if code is None else code
            return TimelineEvent(change.time, "DAGMAN_FINISHED", code=code)
        return TimelineEvent(change.time, "DAGMAN_STARTED", job=JobId(self.dag.pk, 0))

    def _attempt(self, node_id: int, name: str) -> _Attempt:
        attempt = self._by_node.get(node_id)
        if attempt is None:
            self._count += 1
            attempt = self._by_node[node_id] = _Attempt(self._count, name)
        return attempt

    def _node_events(self, change: NodeChange) -> Iterator[TimelineEvent]:
        if change.event in {"start pre", "submit"} or change.is_from_ready:
            attempt = self._attempt(change.node_id, change.name)
        elif (open_attempt := self._by_node.get(change.node_id)) is not None:
            attempt = open_attempt
        else:
            return
        if change.event == "submit":
            yield from self._submit_events(change, attempt)
        elif change.event == "skip":
            attempt.last_job = self._next_noop_id()
            yield self._event(change.time, "PRESKIP", attempt, attempt.last_job)
        elif change.is_from_ready:
            yield from self._jobless_events(change, attempt)
        elif change.from_state == NodeState.SUBMITTED and change.event != "recall":
            yield from self._job_end_events(change, attempt)
        if change.ends_attempt:
            del self._by_node[change.node_id]
            attempt.has_ended = True

    def _next_noop_id(self) -> JobId:
        self._noops += 1
        return JobId(0, NOOP_PROCESS, self._noops)

    def _event(
        self, time: datetime, name: str, attempt: _Attempt, job: JobId | None, code: int = 0
    ) -> TimelineEvent:
        return TimelineEvent(time, name, attempt.node, attempt.number, job, code)

    def _submit_events(self, change: NodeChange, attempt: _Attempt) -> Iterator[TimelineEvent]:
        attempt.code = 0
        if change.kind in (NodeKind.SUBDAG, NodeKind.DATA):
            job = attempt.last_job = JobId(change.node_id, INNER_PROCESS, attempt.number)
            yield self._event(change.time, "SUBMIT", attempt, job)
            yield self._event(change.time, "EXECUTE", attempt, job)
            return
        cluster = change.job or 0
        self._by_cluster[cluster] = attempt
        for job_change in self._early_job_changes.pop(cluster, ()):
            yield from self._job_events(job_change)

    def _jobless_events(self, change: NodeChange, attempt: _Attempt) -> Iterator[TimelineEvent]:
        """Events of a ready node that made no job: a NOOP, or a submission that failed for good."""
        if not change.is_noop:
            yield self._event(change.time, "SUBMIT_FAILURE", attempt, None)
            return
        job = attempt.last_job = self._next_noop_id()
        for name in ("SUBMIT", "JOB_TERMINATED"):
            yield self._event(change.time, name, attempt, job)
        yield self._event(change.time, "JOB_SUCCESS", attempt, None)

    def _job_end_events(self, change: NodeChange, attempt: _Attempt) -> Iterator[TimelineEvent]:
        """Events after the last job of the node."""
        code = attempt.code
        if change.event == "succeed":
            code = 0
        elif change.event != "start post" and code == 0:
            code = NO_CODE if change.kind == NodeKind.JOB else 1
        if change.kind in (NodeKind.SUBDAG, NodeKind.DATA):
            yield self._event(change.time, "JOB_TERMINATED", attempt, attempt.last_job, code)
        name = "JOB_FAILURE" if code else "JOB_SUCCESS"
        yield self._event(change.time, name, attempt, None, code)

    def _job_events(self, change: JobChange) -> Iterator[TimelineEvent]:
        attempt = self._by_cluster.get(change.cluster)
        if attempt is None:
            self._early_job_changes.setdefault(change.cluster, []).append(change)
            return
        job = JobId(change.cluster, change.process)
        for name, code in self._job_event_names(change):
            text = self._hosts.pop(change.job_id, "") if name == "EXECUTE" else change.reason
            event = self._event(change.time, name, attempt, job, code)
            yield event._replace(text=text, cpu_s=float(change.facts.get("cpu_s") or 0.0))
            self._record_job_event(name, code, job, attempt)
        if attempt.has_ended and attempt.open_jobs == 0:
            self._by_cluster.pop(change.cluster, None)

    def _record_job_event(self, name: str, code: int, job: JobId, attempt: _Attempt) -> None:
        if name == "SUBMIT":
            attempt.open_jobs += 1
            attempt.last_job = job
        elif name in {"JOB_TERMINATED", "JOB_ABORTED"}:
            attempt.open_jobs -= 1
            attempt.code = attempt.code or code

    def _job_event_names(self, change: JobChange) -> Iterator[tuple[str, int]]:
        """Names of DAGMan's events for a job event, with the exit code."""
        if change.event == "match":
            self._hosts[change.job_id] = str(change.facts.get("host", ""))
        if change.event in _EVENT_NAMES:
            yield _EVENT_NAMES[change.event], 0
        if change.event in _EVICTING_EVENTS and change.from_state in _WITH_PAYLOAD:
            yield "JOB_EVICTED", 0
        if change.event == "hold":
            yield "JOB_HELD", 0
        elif change.event == "kill":
            yield "JOB_ABORTED", JOB_REMOVED
        elif change.event == "fail":
            code = _failure_code(change)
            yield ("JOB_TERMINATED", code) if code else ("JOB_ABORTED", NO_CODE)

    def _script_event(self, change: ScriptStart | ScriptEnd, name: str) -> TimelineEvent:
        attempt = self._attempt(change.node_id, change.name)
        job = attempt.last_job if change.kind == "post" else None
        return self._event(change.time, name, attempt, job)

    def _script_end_events(self, change: ScriptEnd) -> Iterator[TimelineEvent]:
        if change.is_deferred:
            return
        if change.kind == "post":
            event = self._script_event(change, "POST_SCRIPT_TERMINATED")
            yield event._replace(code=change.exit_code)
        outcome = "FAILURE" if change.exit_code else "SUCCESS"
        yield self._script_event(change, f"{change.kind.upper()}_SCRIPT_{outcome}")


#: Events of jobs that mean one thing.
_EVENT_NAMES = {
    "enqueue": "SUBMIT",
    "start": "EXECUTE",
    "complete": "JOB_TERMINATED",
    "release": "JOB_RELEASED",
}
#: Events that take a payload that runs from its worker node before its end.
_EVICTING_EVENTS = frozenset({"reschedule", "hold", "kill"})


def _failure_code(change: JobChange) -> int:
    """Exit code of the payload; 0 if it has none: it was lost, or its outputs were missing."""
    if change.facts.get("signal"):
        return -int(change.facts["signal"])
    return int(change.facts.get("exit_code") or 0)
