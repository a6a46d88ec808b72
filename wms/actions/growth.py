"""Action that adds the nodes of a fragment to a DAG, with its arguments; one of the kind DAG."""

from __future__ import annotations

from django.db.models import Q

from wms.actions.actions import Action, InApi
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.actions.obstacles import when
from wms.dags.growth.fragments import Fragment
from wms.dags.services.growth import DEFAULT_NAME, MAX_ENDS, GrowthRequest, grow_dag
from wms.dags.states import DAG_TERMINAL
from wms.dags.submission.checking import MAX_TEXT_BYTES
from wms.jobs.content.paths import MAX_PATH_BYTES

_FRAGMENT = (
    Argument(
        "text",
        "Fragment",
        ArgumentType.TEXT,
        "",
        in_api="Its text, in the language of DAG files.",
        most_characters=MAX_TEXT_BYTES,
        keeps_blanks=True,
    ),
    Argument(
        "file",
        "Name",
        ArgumentType.TEXT,
        DEFAULT_NAME,
        in_api="Name of its file, for faults; a copy is kept in the workspace.",
        least=1,
        most_characters=MAX_PATH_BYTES,
    ),
    Argument(
        "after",
        "Nodes before it",
        ArgumentType.NAMES,
        [],
        in_api="Nodes that its first nodes wait for; none: they begin at once.",
        most=MAX_ENDS,
    ),
    Argument(
        "before",
        "Nodes after it",
        ArgumentType.NAMES,
        [],
        in_api="Waiting nodes that are to wait for its last nodes, too.",
        most=MAX_ENDS,
    ),
)


def _grow(dag_id: int, order: Order) -> Fragment:
    """Add the nodes of a fragment to a DAG."""
    return grow_dag(
        dag_id, GrowthRequest(**order.arguments), actor=order.actor, reason=order.reason
    )


GROW = Action(
    "grow",
    "Add nodes",
    [
        when(Q(state__in=DAG_TERMINAL), "it has ended"),
        when(Q(is_followed=True), "it follows the log of another engine, and grows there"),
        when(~Q(ending_event=""), "it is ending: its FINAL node runs"),
    ],
    _grow,
    api=InApi(
        "Add the nodes of a fragment to a DAG that has not ended",
        "Check a fragment of a DAG file as at a submission, and insert it; needs a reason. With "
        "any fault nothing is changed, and the answer has all of them, with their lines.",
        body="A fragment of a DAG file, and where its nodes are to stand.",
        body_name="GrowDag",
    ),
    arguments=_FRAGMENT,
)
