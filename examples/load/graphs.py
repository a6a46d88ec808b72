"""Writer of the example's DAGs: DAGs, workspaces and files, matches, nodes, arcs, and events.

`make_dags` writes all but nodes and arcs, `Graphs` these and the events of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from examples.load.accounts_and_sites import ACTOR, Place
from examples.load.copying import NULL, Table, moment, new_ids, stamp
from examples.load.simulation import DONE, FAILED, FUTILE, READY, STATES, Flow, totals
from wms.core.models import User
from wms.dags.models import (
    Dag,
    DagEvent,
    Edge,
    MatchRecord,
    Node,
    NodeEvent,
    SubmitDescription,
)
from wms.jobs.content.blobs import store_bytes
from wms.jobs.description.submit_file import parse_submit_file
from wms.jobs.models import Workspace, WorkspaceFile

_SUBMIT_FILE = """\
executable = run.sh
arguments = --events $(events)
transfer_input_files = settings.json
output = $(JOB).out
error = $(JOB).err
request_memory = 2000
queue
"""
_NODE_COLUMNS = (
    "id", "dag_id", "name", "ordinal", "submit_description_id", "variables", "state", "state_since",
    "state_reason", "ready_rank", "unfinished_parents", "max_retries", "retry_number", "job_id",
)  # fmt: skip
_EVENT_COLUMNS = (
    "dag_id", "node_id", "event", "from_state", "to_state", "actor", "reason", "facts",
    "created_at",
)  # fmt: skip
_WHY = {
    "held": "wrong version of the settings: wait for the corrected ones",
    "removed": "submitted twice",
    "halted": "the owner looks at the first results",
    "failed": "nodes have failed",
}
_ANCESTOR = "an ancestor of the node has failed"


def make_dags(
    flows: Sequence[Flow], owners: Sequence[User], places: Sequence[Place], now_s: float
) -> list[Dag]:
    """The rows of the DAGs and what belongs to them, but their nodes."""
    workspaces = Workspace.objects.bulk_create(
        Workspace(owner=owners[flow.owner], created_at=moment(flow.made_s)) for flow in flows
    )
    dags = Dag.objects.bulk_create(
        _dag(flow, workspace, places[flow.site], now_s)
        for flow, workspace in zip(flows, workspaces, strict=True)
    )
    _make_files(flows, workspaces)
    DagEvent.objects.bulk_create(
        event for flow, dag in zip(flows, dags, strict=True) for event in _events(flow, dag)
    )
    MatchRecord.objects.bulk_create(
        _stay(flow, dag) for flow, dag in zip(flows, dags, strict=True) if dag.site_id is not None
    )
    return list(dags)


def _dag(flow: Flow, workspace: Workspace, place: Place, now_s: float) -> Dag:
    is_bound = bool(flow.lives)
    has_ended = flow.state in ("completed", "failed")
    since_s = _since(flow, now_s)
    return Dag(
        name=flow.name, owner_id=workspace.owner_id, workspace=workspace, dag_files=[flow.name],
        state=flow.state, state_since=moment(since_s), state_reason=_WHY.get(flow.state, ""),
        site=place.site if is_bound else None,
        matched_at=moment(flow.made_s + 5) if is_bound else None,
        match_attributes={"Name": f'"{place.site.name}"'} if is_bound else {},
        unmatched_reason="" if flow.state != "idle" else "200 sites take no more DAGs now",
        node_count=flow.nodes, created_at=moment(flow.made_s),
        ended_at=moment(since_s) if has_ended or flow.state == "removed" else None,
        status=2 if flow.count(FAILED) else 0,
        exit_code={"completed": 0, "failed": 1}.get(flow.state),
        **dict(totals(flow)),
    )  # fmt: skip


def _since(flow: Flow, now_s: float) -> float:
    if flow.state in ("completed", "failed"):
        return flow.ended_s + 1
    if flow.state == "running":
        return flow.made_s + 5
    return flow.made_s if flow.state == "idle" else (flow.made_s + now_s) / 2


def _make_files(flows: Sequence[Flow], workspaces: Sequence[Workspace]) -> None:
    shared = {
        "job.sub": store_bytes(_SUBMIT_FILE.encode()),
        "run.sh": store_bytes(b'#!/bin/sh\nexec simulate "$@"\n'),
        "settings.json": store_bytes(b'{"tag": "v7"}\n'),
    }
    WorkspaceFile.objects.bulk_create(
        WorkspaceFile(workspace=workspace, path=path, blob=blob, modified_at=moment(flow.made_s))
        for flow, workspace in zip(flows, workspaces, strict=True)
        for path, blob in shared.items()
    )


def _events(flow: Flow, dag: Dag) -> list[DagEvent]:
    steps = [("submit", "", "idle", flow.made_s, "")]
    state = "idle"
    if flow.lives:
        steps.append(("match", "idle", "running", flow.made_s + 5, ""))
        state = "running"
    last = {
        "completed": "complete", "failed": "fail", "held": "hold", "halted": "halt",
        "removed": "remove",
    }.get(flow.state)  # fmt: skip
    if last:
        steps.append((last, state, flow.state, dag.state_since.timestamp(), dag.state_reason))
    return [
        DagEvent(
            dag=dag, event=event, from_state=before, to_state=after, actor=ACTOR.name, reason=why,
            created_at=moment(at_s),
        )
        for event, before, after, at_s, why in steps
    ]  # fmt: skip


def _stay(flow: Flow, dag: Dag) -> MatchRecord:
    end = {"completed": "complete", "failed": "fail"}.get(flow.state, "")
    return MatchRecord(
        dag=dag, site=dag.site, matched_at=dag.matched_at, ended_at=dag.ended_at, end=end,
        reason=dag.state_reason if end else "",
    )  # fmt: skip


class Graphs:
    """Writes nodes, arcs and the events of nodes, one DAG after the other."""

    def __init__(self, now_s: float) -> None:
        self._now_s = now_s
        self._nodes, self._edges = Table(Node, *_NODE_COLUMNS), Table(Edge, "parent_id", "child_id")
        self._events = Table(NodeEvent, *_EVENT_COLUMNS)
        self._content = parse_submit_file(_SUBMIT_FILE, file="job.sub").as_dict()

    def write(self, flows: Sequence[Flow], dags: Sequence[Dag]) -> None:
        """All of them."""
        descriptions = SubmitDescription.objects.bulk_create(
            SubmitDescription(dag=dag, name="job.sub", content=self._content) for dag in dags
        )
        next_id = new_ids(Node, sum(flow.nodes for flow in flows))
        for flow, dag, description in zip(flows, dags, descriptions, strict=True):
            self._write_nodes(flow, dag, next_id, description.pk)
            self._write_events(flow, dag, next_id)
            next_id += flow.nodes
        for table in (self._nodes, self._edges, self._events):
            table.flush()

    def _write_nodes(self, flow: Flow, dag: Dag, first: int, description: int) -> None:
        since = _since_of_nodes(flow)
        for place in range(flow.nodes):
            state, parents = flow.states[place], flow.parents(place)
            reason = _ANCESTOR if state == FUTILE else _WHY_NODE if state == FAILED else ""
            self._nodes.add(
                str(first + place), str(dag.pk), flow.node_name(place), str(place + 1),
                str(description), '{"events": "1000"}', STATES[state], stamp(since[place]), reason,
                str(place) if state == READY else NULL,
                str(sum(flow.states[parent] != DONE for parent in parents)), "1",
                str(flow.retries[place]), str(flow.job_ids[place] or NULL),
            )  # fmt: skip
            for parent in parents:
                self._edges.add(str(first + parent), str(first + place))

    def _write_events(self, flow: Flow, dag: Dag, first: int) -> None:
        for at_s, place, _, (event, before, after, why) in sorted(_steps(flow)):
            self._events.add(
                str(dag.pk), str(first + place), event, before, after, ACTOR.name, why, "{}",
                stamp(at_s),
            )  # fmt: skip


_WHY_NODE = "its job has failed"
_NodeStep = tuple[float, int, int, tuple[str, str, str, str]]


def _since_of_nodes(flow: Flow) -> list[float]:
    since = [flow.made_s] * flow.nodes
    for life in flow.lives:
        since[life.place] = life.made_s
    for place, state in enumerate(flow.states):
        if state in (DONE, FAILED, FUTILE):
            since[place] = flow.ends[place]
    return since


def _steps(flow: Flow) -> list[_NodeStep]:
    """What happened to the nodes: when, to which, in which turn there, and what."""
    steps: list[_NodeStep] = []
    tried = bytearray(flow.nodes)
    for life in sorted(flow.lives):
        place = life.place
        if not tried[place]:
            steps.append((life.made_s - 1, place, 0, ("make ready", "waiting", "ready", "")))
        steps.append((life.made_s, place, 2, ("submit", "ready", "submitted", "")))
        if life.ended_s is not None:
            is_retried = not tried[place] and flow.retries[place]
            steps.append((life.ended_s, place, 1, _end(life.outcome, is_retried=bool(is_retried))))
        tried[place] = 1
    for place, state in enumerate(flow.states):
        if state == READY:
            steps.append((flow.made_s + 6, place, 0, ("make ready", "waiting", "ready", "")))
        elif state == FUTILE:
            steps.append((flow.ends[place], place, 1, ("give up", "waiting", "futile", _ANCESTOR)))
    return steps


def _end(outcome: str, *, is_retried: bool) -> tuple[str, str, str, str]:
    if outcome == "done":
        return ("succeed", "submitted", "done", "")
    if is_retried:
        return ("retry", "submitted", "ready", f"{_WHY_NODE}; retry 1 of 1")
    return ("fail", "submitted", "failed", _WHY_NODE)
