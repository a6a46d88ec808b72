"""What can be done with nodes: the words, the states in which it can be, and the service."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from portal.web.nodes.forms import ChangeForm, MarkDoneForm, MarkFailedForm, RerunForm, RetryForm
from portal.web.shared.forms import ReasonForm
from wms.core.models import User
from wms.core.transitions import Applied
from wms.dags.models import Dag
from wms.dags.policy import may_steer
from wms.dags.services.nodes import change_nodes, mark_nodes, rerun_nodes
from wms.dags.states import COUNTED_KINDS, DAG_TERMINAL, NODE_TERMINAL, NodeState

_S = NodeState


@dataclass(frozen=True, slots=True)
class NodeSteering:
    """Something that a person can do with nodes; `needs_open_dag` if not when the DAG has ended."""

    event: str
    label: str
    explanation: str
    done: str
    states: Collection[str]
    service: Callable[..., Applied]
    form_class: type[ReasonForm]
    needs_open_dag: bool = False

    def obstacle(self, dag: Dag, *, state: str, kind: str) -> str:
        """Why it cannot be done with a node in this state; empty when it can."""
        if self.needs_open_dag and dag.state in DAG_TERMINAL:
            return f"the DAG is {dag.state}"
        if kind not in COUNTED_KINDS:
            return f"it is a {kind} node"
        return "" if state in self.states else f"it is {state.replace('_', ' ')}"


NODE_STEERINGS = {
    each.event: each
    for each in (
        NodeSteering(
            event="rerun",
            label="Rerun",
            explanation="Runs nodes that have ended again, with all their retries. Other nodes "
            "keep what they have; those under way go on.",
            done="will run again",
            states=NODE_TERMINAL,
            service=rerun_nodes,
            form_class=RerunForm,
        ),
        NodeSteering(
            event="retry",
            label="Retry now",
            explanation="Runs failed nodes again, and what could not run because of them. "
            "What was done below them stays done.",
            done="will run again",
            states=frozenset({_S.FAILED.value}),
            service=rerun_nodes,
            form_class=RetryForm,
        ),
        NodeSteering(
            event="mark-done",
            label="Mark as done",
            explanation="Counts the nodes as done without running them: what waits for them "
            "goes on.",
            done="counts as done",
            states=frozenset({_S.WAITING.value, _S.READY.value, _S.FAILED.value, _S.FUTILE.value}),
            service=mark_nodes,
            form_class=MarkDoneForm,
            needs_open_dag=True,
        ),
        NodeSteering(
            event="mark-failed",
            label="Mark as failed",
            explanation="Counts the nodes as failed without running them: what needs them will "
            "not run.",
            done="counts as failed",
            states=frozenset({_S.WAITING.value, _S.READY.value}),
            service=mark_nodes,
            form_class=MarkFailedForm,
            needs_open_dag=True,
        ),
        NodeSteering(
            event="change",
            label="Change",
            explanation="Changes VARS, priority or retries of nodes that are not submitted yet.",
            done="is changed",
            states=frozenset({_S.WAITING.value, _S.READY.value}),
            service=change_nodes,
            form_class=ChangeForm,
        ),
    )
}


def node_steerings(user: User, dag: Dag) -> list[NodeSteering]:
    """What the user can do with nodes of the DAG, whatever their states."""
    if not may_steer(user, dag) or dag.is_ending:
        return []
    ended = dag.state in DAG_TERMINAL
    return [each for each in NODE_STEERINGS.values() if not (ended and each.needs_open_dag)]
