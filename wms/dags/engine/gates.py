"""Gates: nodes that run nothing, and wait for a person's yes or for a time.

A gate that waits stays `ready`, with its reason, outside of the queue of what is to be submitted:
it uses up no limit, and a DAG that is halted or removed has nothing to stop. That it waits stands
in its work, when its time comes in a timer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.db.models import Max

from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.dags.engine.node_features import features_of
from wms.dags.engine.node_work import work_of, write_work
from wms.dags.engine.round import NodeOutcome, Round
from wms.dags.engine.settling.decisions import Attempt, after_job
from wms.dags.language.spec import GateSpec
from wms.dags.lifecycle import GATE_TOPIC
from wms.dags.models import Node, NodeEvent, NodeTimer
from wms.dags.states import NodeCause, NodeState

#: What stands for an exit code of a gate that was closed.
CLOSED = 1
#: So many gates are looked at in one round; the rest is for the next.
_MOST = 500


def gate_of(node: Node) -> GateSpec:
    """What the DAG file says of a gate."""
    return features_of(node.features).gate or GateSpec()


def is_waiting(node: Node) -> bool:
    """Whether a gate, read with its work, waits now."""
    return node.state == NodeState.READY and work_of(node).waits_since is not None


def time_of(gate: GateSpec, waits_since: datetime) -> datetime | None:
    """When a gate that waits opens or closes by itself; None for never."""
    if gate.opens_at is not None:
        return gate.opens_at
    return waits_since + timedelta(seconds=gate.deadline_s) if gate.deadline_s else None


def begin_gates(round_: Round, nodes: Sequence[Node]) -> list[NodeOutcome]:
    """Let ready gates wait, and tell those who may open them; outcomes of those that open at once.

    Gates that wait already are passed over.
    """
    outcomes: list[NodeOutcome] = []
    by_reason: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        gate = gate_of(node)
        if gate.opens_at is not None and gate.opens_at <= round_.now:
            outcomes.append(outcome_at_its_time(node))
        elif not is_waiting(node):
            by_reason[reason_to_wait(gate, round_.now)].append(node)
    begun: list[Node] = []
    for reason, group in by_reason.items():
        ids = [node.pk for node in group]
        moved = set(round_.move("wait", ids, reason=reason, cause=NodeCause.GATE, ready_rank=None))
        begun += [node for node in group if node.pk in moved]
    _note_begun(round_, begun)
    return outcomes


def _note_begun(round_: Round, nodes: Sequence[Node]) -> None:
    for node in nodes:
        work_of(node).waits_since = round_.now
    write_work([work_of(node) for node in nodes], "waits_since")
    forget_times([node.pk for node in nodes])
    timed = [(node, time_of(gate_of(node), round_.now)) for node in nodes]
    NodeTimer.objects.bulk_create(
        NodeTimer(
            dag=round_.dag, node=node, kind=NodeTimer.Kind.GATE, retry_number=0,
            limit_s=gate_of(node).deadline_s, due_at=due_at,
        )
        for node, due_at in timed
        if due_at is not None
    )  # fmt: skip
    asking = [node.pk for node in nodes if gate_of(node).opens_at is None]
    if asking:
        waits = NodeEvent.objects.filter(node__in=asking, event="wait").values("node")
        announce(
            InboxEntry(
                topic=GATE_TOPIC,
                key=round_.dag.pk,
                kind=InboxEntry.Kind.NODE_EVENT,
                subject_id=event_id,
            )
            for event_id in waits.annotate(last=Max("pk")).values_list("last", flat=True)
        )


def due_gates(round_: Round) -> list[NodeOutcome]:
    """Outcomes of the gates whose time has come; none of a DAG that is ending."""
    due = list(
        NodeTimer.objects.filter(dag=round_.dag, kind=NodeTimer.Kind.GATE, due_at__lte=round_.now)
        .select_related("node__work")
        .order_by("due_at", "pk")[:_MOST]
    )
    NodeTimer.objects.filter(pk__in=[timer.pk for timer in due]).delete()
    if round_.is_ending:
        return []
    return [outcome_at_its_time(timer.node) for timer in due if is_waiting(timer.node)]


def outcome_at_its_time(node: Node) -> NodeOutcome:
    """Outcome of a gate whose time or deadline has come."""
    gate = gate_of(node)
    if gate.opens_at is not None:
        reason = f"the gate is open since {_at(gate.opens_at)}"
        return outcome_of_gate(node, opens=True, reason=reason, cause=NodeCause.GATE)
    does = "opens" if gate.opens_then else "closes"
    reason = f"nobody decided within {_span(gate.deadline_s)} (DEADLINE): the gate {does}"
    return outcome_of_gate(node, opens=gate.opens_then, reason=reason, cause=NodeCause.GATE)


def outcome_of_gate(node: Node, *, opens: bool, reason: str, cause: NodeCause) -> NodeOutcome:
    """Outcome of a gate that opens, or closes: then it has failed."""
    attempt = Attempt(features_of(node.features), retries_left=0)
    decision = after_job(attempt, 0 if opens else CLOSED)
    return NodeOutcome(node, decision, reason, cause, has_jobs=False)


def forget_times(node_ids: Collection[int]) -> None:
    """Remove the timers of gates that are decided, or wait anew."""
    NodeTimer.objects.filter(node__in=list(node_ids), kind=NodeTimer.Kind.GATE).delete()


def reason_to_wait(gate: GateSpec, waits_since: datetime) -> str:
    """Why a gate that began to wait then is not open, for people."""
    due_at = time_of(gate, waits_since)
    if gate.opens_at is not None:
        return f"waits until {_at(gate.opens_at)}"
    who = " or ".join(each.replace(":", " ", 1) for each in gate.who) or "whoever steers the DAG"
    reason = f"waits for {who} to open it"
    if due_at is None:
        return reason
    return f"{reason}, until {_at(due_at)}: then it {'opens' if gate.opens_then else 'closes'}"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _span(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
