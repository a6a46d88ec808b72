"""What happened to a DAG, told in DAGMan's words: the rows' events, merged in order of time.

`jobstate.log` and the job event log are two ways to write the same story.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from wms.dags.engine.decisions import JOB_REMOVED, NO_CODE
from wms.dags.exports.sources import (
    DagChange,
    JobChange,
    NodeChange,
    Order,
    ScriptEnd,
    ScriptStart,
    earlier_attempts,
    sources_of,
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


class Happening(NamedTuple):
    """One line of the story; `what` is the event's name in `jobstate.log`.

    `attempt` counts the attempts of all nodes, from 1. `code` is an exit code, or minus a signal.
    """

    time: datetime
    what: str
    node: str = ""
    attempt: int = 0
    job: JobId | None = None
    code: int = 0
    text: str = ""
    cpu_s: float = 0.0


@dataclass(slots=True)
class _Attempt:
    """One attempt of a node, while something may still happen in it."""

    number: int
    node: str
    last_job: JobId | None = None
    #: Of the first job that failed.
    code: int = 0
    open_jobs: int = 0
    has_moved_on: bool = False


@dataclass(slots=True)
class Chronicle:
    """Reads the events of a DAG's run one after the other, and tells what they mean."""

    dag: Dag
    _count: int = 0
    _noops: int = 0
    _by_node: dict[int, _Attempt] = field(default_factory=dict)
    _by_cluster: dict[int, _Attempt] = field(default_factory=dict)
    #: Submissions of jobs are told before that of their node, in the same transaction.
    _unclaimed: dict[int, list[JobChange]] = field(default_factory=dict)
    _hosts: dict[int, str] = field(default_factory=dict)

    def happenings(self) -> Iterator[Happening]:
        """All that happened. Memory is used for what is under way at a time, not for all nodes."""
        self._count = earlier_attempts(self.dag)
        for change in heapq.merge(*sources_of(self.dag), key=Order.of):
            if isinstance(change, NodeChange):
                yield from self._node(change)
            elif isinstance(change, JobChange):
                yield from self._job(change)
            elif isinstance(change, ScriptStart):
                yield self._of_script(change, f"{change.kind.upper()}_SCRIPT_STARTED")
            elif isinstance(change, ScriptEnd):
                yield from self._script_end(change)
            else:
                yield self._dag(change)

    def _dag(self, change: DagChange) -> Happening:
        if change.is_end:
            defaults = {"complete": 0, "fail": 1, "remove": 2}
            code = self.dag.exit_code
            code = defaults[change.event] if code is None else code
            return Happening(change.time, "DAGMAN_FINISHED", code=code)
        return Happening(change.time, "DAGMAN_STARTED", job=JobId(self.dag.pk, 0))

    def _attempt(self, node_id: int, name: str) -> _Attempt:
        found = self._by_node.get(node_id)
        if found is None:
            self._count += 1
            found = self._by_node[node_id] = _Attempt(self._count, name)
        return found

    def _node(self, change: NodeChange) -> Iterator[Happening]:
        if change.event in {"start pre", "submit"} or change.is_from_ready:
            attempt = self._attempt(change.node_id, change.name)
        elif (known := self._by_node.get(change.node_id)) is not None:
            attempt = known
        else:
            return
        if change.event == "submit":
            yield from self._submit(change, attempt)
        elif change.event == "skip":
            attempt.last_job = self._noop()
            yield self._tell(change.time, "PRESKIP", attempt, attempt.last_job)
        elif change.is_from_ready:
            yield from self._without_job(change, attempt)
        elif change.from_state == NodeState.SUBMITTED and change.event != "recall":
            yield from self._after_job(change, attempt)
        if change.ends_attempt:
            del self._by_node[change.node_id]
            attempt.has_moved_on = True

    def _noop(self) -> JobId:
        self._noops += 1
        return JobId(0, NOOP_PROCESS, self._noops)

    def _tell(
        self, time: datetime, what: str, attempt: _Attempt, job: JobId | None, code: int = 0
    ) -> Happening:
        return Happening(time, what, attempt.node, attempt.number, job, code)

    def _submit(self, change: NodeChange, attempt: _Attempt) -> Iterator[Happening]:
        attempt.code = 0
        if change.kind in (NodeKind.SUBDAG, NodeKind.DATA):
            job = attempt.last_job = JobId(change.node_id, INNER_PROCESS, attempt.number)
            yield self._tell(change.time, "SUBMIT", attempt, job)
            yield self._tell(change.time, "EXECUTE", attempt, job)
            return
        cluster = change.job or 0
        self._by_cluster[cluster] = attempt
        for job_change in self._unclaimed.pop(cluster, ()):
            yield from self._job(job_change)

    def _without_job(self, change: NodeChange, attempt: _Attempt) -> Iterator[Happening]:
        """A ready node went on without a submission: a NOOP, or its submission failed for good."""
        if not change.is_noop:
            yield self._tell(change.time, "SUBMIT_FAILURE", attempt, None)
            return
        job = attempt.last_job = self._noop()
        for what in ("SUBMIT", "JOB_TERMINATED"):
            yield self._tell(change.time, what, attempt, job)
        yield self._tell(change.time, "JOB_SUCCESS", attempt, None)

    def _after_job(self, change: NodeChange, attempt: _Attempt) -> Iterator[Happening]:
        """All jobs of the node have ended."""
        code = attempt.code
        if change.event == "succeed":
            code = 0
        elif change.event != "start post" and code == 0:
            code = NO_CODE if change.kind == NodeKind.JOB else 1
        if change.kind in (NodeKind.SUBDAG, NodeKind.DATA):
            yield self._tell(change.time, "JOB_TERMINATED", attempt, attempt.last_job, code)
        what = "JOB_FAILURE" if code else "JOB_SUCCESS"
        yield self._tell(change.time, what, attempt, None, code)

    def _job(self, change: JobChange) -> Iterator[Happening]:
        attempt = self._by_cluster.get(change.cluster)
        if attempt is None:
            self._unclaimed.setdefault(change.cluster, []).append(change)
            return
        job = JobId(change.cluster, change.process)
        for what, code in self._of_job(change):
            text = self._hosts.pop(change.job_id, "") if what == "EXECUTE" else change.reason
            told = self._tell(change.time, what, attempt, job, code)
            yield told._replace(text=text, cpu_s=float(change.facts.get("cpu_s") or 0.0))
            self._note(what, code, job, attempt)
        if attempt.has_moved_on and attempt.open_jobs == 0:
            self._by_cluster.pop(change.cluster, None)

    def _note(self, what: str, code: int, job: JobId, attempt: _Attempt) -> None:
        if what == "SUBMIT":
            attempt.open_jobs += 1
            attempt.last_job = job
        elif what in {"JOB_TERMINATED", "JOB_ABORTED"}:
            attempt.open_jobs -= 1
            attempt.code = attempt.code or code

    def _of_job(self, change: JobChange) -> Iterator[tuple[str, int]]:
        """The names of what an event of a job means, with the code of its end."""
        if change.event == "match":
            self._hosts[change.job_id] = str(change.facts.get("host", ""))
        if change.event in _NAMES:
            yield _NAMES[change.event], 0
        if change.event in _STOPS and change.from_state in _WITH_PAYLOAD:
            yield "JOB_EVICTED", 0
        if change.event == "hold":
            yield "JOB_HELD", 0
        elif change.event == "kill":
            yield "JOB_ABORTED", JOB_REMOVED
        elif change.event == "fail":
            code = _failure_code(change)
            yield ("JOB_TERMINATED", code) if code else ("JOB_ABORTED", NO_CODE)

    def _of_script(self, change: ScriptStart | ScriptEnd, what: str) -> Happening:
        attempt = self._attempt(change.node_id, change.name)
        job = attempt.last_job if change.kind == "post" else None
        return self._tell(change.time, what, attempt, job)

    def _script_end(self, change: ScriptEnd) -> Iterator[Happening]:
        if change.is_deferred:
            return
        if change.kind == "post":
            told = self._of_script(change, "POST_SCRIPT_TERMINATED")
            yield told._replace(code=change.exit_code)
        outcome = "FAILURE" if change.exit_code else "SUCCESS"
        yield self._of_script(change, f"{change.kind.upper()}_SCRIPT_{outcome}")


#: Events of jobs that mean one thing.
_NAMES = {
    "enqueue": "SUBMIT",
    "start": "EXECUTE",
    "complete": "JOB_TERMINATED",
    "release": "JOB_RELEASED",
}
#: Events that take a payload that runs from its worker node before its end.
_STOPS = frozenset({"reschedule", "hold", "kill"})


def _failure_code(change: JobChange) -> int:
    """The payload's own code, 0 if it has none: it was lost, or its outputs were missing."""
    if change.facts.get("signal"):
        return -int(change.facts["signal"])
    return int(change.facts.get("exit_code") or 0)
