"""Actions on nodes of one DAG: rerun, retry, mark, change, open and close gates; pages and API.

Services do the work. The object of these actions is the DAG; the argument `nodes` has the names of
its nodes. Also why a node in its state cannot be acted on, and the actions that a page offers a
user on the nodes of a DAG, and on one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from wms.actions.actions import Action, CallOne, InApi, OnPage
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.core.models import User
from wms.core.transitions import Applied
from wms.dags.engine.gates import gate_of, is_waiting
from wms.dags.models import Dag, Node
from wms.dags.policy import may_decide, may_steer
from wms.dags.services.gates import decide_gates
from wms.dags.services.nodes import MAX_NODES, change_nodes, mark_nodes, rerun_nodes
from wms.dags.states import (
    COUNTED_KINDS,
    DAG_TERMINAL,
    NODE_TERMINAL,
    WITH_WORK,
    NodeKind,
    NodeState,
)

_S = NodeState
_GATES = frozenset({NodeKind.GATE.value})
_NOT_BEGUN = frozenset({_S.WAITING.value, _S.READY.value})


@dataclass(frozen=True, slots=True)
class NodeAction:
    """Action on nodes of some kinds in some states.

    With `needs_open_dag` only while the DAG has not ended.
    """

    action: Action
    states: Collection[str]
    needs_open_dag: bool = False
    kinds: Collection[str] = COUNTED_KINDS

    @property
    def decides_gates(self) -> bool:
        """Whether it is done by those whom a gate names, and not by those who steer the DAG."""
        return self.kinds is _GATES

    def obstacle(self, dag: Dag, *, state: str, kind: str) -> str:
        """Reason why a node in this state cannot be acted on; empty when it can."""
        if self.needs_open_dag and dag.state in DAG_TERMINAL:
            return f"the DAG is {dag.state}"
        if kind not in self.kinds:
            return f"it is a {kind} node"
        return "" if state in self.states else f"it is {state.replace('_', ' ')}"


def _by(service: Callable[..., Applied]) -> CallOne:
    def call(dag_id: int, order: Order) -> Applied:
        given = dict(order.arguments)
        return service(dag_id, given.pop("nodes"), actor=order.actor, reason=order.reason, **given)

    return call


_NODES = Argument(
    "nodes",
    "Nodes",
    ArgumentType.NAMES,
    least=1,
    most=MAX_NODES,
    most_characters=255,
    is_required=True,
    in_api="The names of the nodes.",
)
_WITH_DESCENDANTS = Argument(
    "with_descendants",
    "With everything that depends on them",
    ArgumentType.YES_NO,
    True,
    in_api="Everything that depends on them as well; else only what is futile or skipped.",
)
_AS_DONE = Argument(
    "as_done",
    "As done",
    ArgumentType.YES_NO,
    is_required=True,
    in_api="They are done; if false, they have failed.",
)
_CHANGES = (
    Argument(
        "variables",
        "VARS to set",
        ArgumentType.TEXTS_BY_NAME,
        {},
        in_api="VARS that are added, or win over those that they have.",
    ),
    Argument("priority", "Priority", ArgumentType.WHOLE, least=None, most=None),
    Argument("max_retries", "Retries", ArgumentType.WHOLE, least=None, most=None),
)

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
                    body="Nodes that have ended and run again.",
                ),
                arguments=(_NODES, _WITH_DESCENDANTS),
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
                arguments=(_NODES,),
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
                arguments=(_NODES,),
            ),
            _NOT_BEGUN | {_S.FAILED.value, _S.FUTILE.value, _S.SKIPPED.value},
            needs_open_dag=True,
            kinds=WITH_WORK,
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
                arguments=(_NODES,),
            ),
            _NOT_BEGUN,
            needs_open_dag=True,
            kinds=WITH_WORK,
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
                    body="Nodes that are done, or have failed, without being run.",
                ),
                arguments=(_NODES, _AS_DONE),
            ),
            _NOT_BEGUN,
            needs_open_dag=True,
            kinds=WITH_WORK,
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
                    body="What changes of nodes that are not submitted yet.",
                    body_name="ChangeNodes",
                ),
                arguments=(_NODES, *_CHANGES),
            ),
            _NOT_BEGUN,
            kinds=WITH_WORK,
        ),
        NodeAction(
            Action(
                "open-gate",
                "Open gate",
                one=_by(partial(decide_gates, opens=True)),
                page=OnPage("Opens the gate: what waits for it goes on.", "is open"),
                api=InApi(
                    "Open gates that wait",
                    "By those whom the gate names. Gates that are open already are skipped; needs "
                    "a reason.",
                    body="Gates that wait and are opened.",
                    body_name="OpenGates",
                ),
                arguments=(_NODES,),
            ),
            frozenset({_S.READY.value}),
            needs_open_dag=True,
            kinds=_GATES,
        ),
        NodeAction(
            Action(
                "close-gate",
                "Close gate",
                one=_by(partial(decide_gates, opens=False)),
                page=OnPage(
                    "Closes the gate: it has failed, and what needs it will not run.",
                    "is closed",
                    is_grave=True,
                ),
                api=InApi(
                    "Close gates that wait: they have failed",
                    "By those whom the gate names. Gates that are closed already are skipped; "
                    "needs a reason.",
                    body="Gates that wait and are closed.",
                    body_name="CloseGates",
                ),
                arguments=(_NODES,),
            ),
            frozenset({_S.READY.value}),
            needs_open_dag=True,
            kinds=_GATES,
        ),
    )
}


def find_on_page(name: str) -> NodeAction | None:
    """Action on nodes that pages offer under this name, or None."""
    found = NODE_ACTIONS.get(name)
    return found if found and found.action.page else None


def actions_on_nodes(user: User, dag: Dag) -> list[NodeAction]:
    """Actions on nodes of the DAG that pages offer the user, whatever the nodes' states."""
    if not may_steer(user, dag) or dag.is_ending:
        return []
    ended = dag.state in DAG_TERMINAL
    return [
        each
        for each in NODE_ACTIONS.values()
        if each.action.page and not each.decides_gates and not (ended and each.needs_open_dag)
    ]


def actions_on_node(user: User, node: Node) -> list[NodeAction]:
    """Actions that the page of a node, read with its DAG and work, offers the user."""
    dag = node.dag
    offered = actions_on_nodes(user, dag)
    if _waits_for(user, node):
        offered = [each for each in NODE_ACTIONS.values() if each.decides_gates] + offered
    return [each for each in offered if not each.obstacle(dag, state=node.state, kind=node.kind)]


def _waits_for(user: User, node: Node) -> bool:
    """Whether the node is a gate that waits for the user, or for somebody else as well."""
    if node.kind != NodeKind.GATE or not is_waiting(node) or node.dag.is_ending:
        return False
    gate = gate_of(node)
    return gate.opens_at is None and may_decide(user, node.dag, gate.who)
