"""Actions on nodes; each calls a service of `wms.dags` on nodes of one DAG.

The object of these actions is the DAG; the argument `nodes` has the names of its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from wms.actions.actions import Action, CallOne, InApi, OnPage
from wms.actions.arguments import Order
from wms.core.models import User
from wms.core.transitions import Applied
from wms.dags.models import Dag
from wms.dags.policy import may_steer
from wms.dags.services.nodes import change_nodes, mark_nodes, rerun_nodes
from wms.dags.states import COUNTED_KINDS, DAG_TERMINAL, NODE_TERMINAL, NodeState

_S = NodeState
_NOT_BEGUN = frozenset({_S.WAITING.value, _S.READY.value})


@dataclass(frozen=True, slots=True)
class NodeAction:
    """Action on nodes in some states; with `needs_open_dag` only while the DAG has not ended."""

    action: Action
    states: Collection[str]
    needs_open_dag: bool = False

    def obstacle(self, dag: Dag, *, state: str, kind: str) -> str:
        """Obstacle of the action on a node in this state, empty without one."""
        if self.needs_open_dag and dag.state in DAG_TERMINAL:
            return f"the DAG is {dag.state}"
        if kind not in COUNTED_KINDS:
            return f"it is a {kind} node"
        return "" if state in self.states else f"it is {state.replace('_', ' ')}"


def _by(service: Callable[..., Applied]) -> CallOne:
    def call(dag_id: int, order: Order) -> Applied:
        given = dict(order.arguments)
        return service(dag_id, given.pop("nodes"), actor=order.actor, reason=order.reason, **given)

    return call


NODE_ACTIONS = {
    each.action.name: each
    for each in (
        NodeAction(
            Action(
                "rerun",
                "Rerun",
                one=_by(rerun_nodes),
                page=OnPage(
                    "Runs nodes that have ended again, with all their retries. Other nodes keep "
                    "what they have; those under way go on.",
                    "will run again",
                ),
                api=InApi(
                    "Run nodes that have ended again, at any time",
                    "With all that depends on them, unless it is not wanted; needs a reason.",
                ),
            ),
            NODE_TERMINAL,
        ),
        NodeAction(
            Action(
                "retry",
                "Retry now",
                one=_by(partial(rerun_nodes, with_descendants=False)),
                page=OnPage(
                    "Runs failed nodes again, and what could not run because of them. What was "
                    "done below them stays done.",
                    "will run again",
                ),
            ),
            frozenset({_S.FAILED.value}),
        ),
        NodeAction(
            Action(
                "mark-done",
                "Mark as done",
                one=_by(partial(mark_nodes, as_done=True)),
                page=OnPage(
                    "Counts the nodes as done without running them: what waits for them goes on.",
                    "counts as done",
                ),
            ),
            _NOT_BEGUN | {_S.FAILED.value, _S.FUTILE.value},
            needs_open_dag=True,
        ),
        NodeAction(
            Action(
                "mark-failed",
                "Mark as failed",
                one=_by(partial(mark_nodes, as_done=False)),
                page=OnPage(
                    "Counts the nodes as failed without running them: what needs them will not "
                    "run.",
                    "counts as failed",
                ),
            ),
            _NOT_BEGUN,
            needs_open_dag=True,
        ),
        # Programs say whether it is done or failed.
        NodeAction(
            Action(
                "mark",
                "Mark",
                one=_by(mark_nodes),
                api=InApi(
                    "Say that nodes are done, or have failed",
                    "Without running them; their children follow. Needs a reason.",
                ),
            ),
            _NOT_BEGUN,
            needs_open_dag=True,
        ),
        NodeAction(
            Action(
                "change",
                "Change",
                one=_by(change_nodes),
                page=OnPage(
                    "Changes VARS, priority or retries of nodes that are not submitted yet.",
                    "is changed",
                ),
                api=InApi(
                    "Change VARS, priority or retries before submission",
                    "What is not given stays as it is; needs a reason.",
                ),
            ),
            _NOT_BEGUN,
        ),
    )
}


def find_on_page(name: str) -> NodeAction | None:
    """Action on pages by name."""
    action = NODE_ACTIONS.get(name)
    return action if action and action.action.page else None


def actions_on_nodes(user: User, dag: Dag) -> list[NodeAction]:
    """Actions that the user may take on pages on nodes of the DAG, for any states of them."""
    if not may_steer(user, dag) or dag.is_ending:
        return []
    ended = dag.state in DAG_TERMINAL
    return [
        each
        for each in NODE_ACTIONS.values()
        if each.action.page and not (ended and each.needs_open_dag)
    ]
