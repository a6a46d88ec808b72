"""Action that makes an edited copy of a DAG, with its arguments; one of the kind DAG."""

from __future__ import annotations

from django.db.models import Q

from wms.actions.actions import Action, InApi
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.actions.obstacles import when
from wms.core.errors import NotPermitted
from wms.dags.models import Dag
from wms.dags.reading.selectors import find_dag
from wms.dags.rescue.rescue_files import read_resumption
from wms.dags.resubmission.services import Edit, resubmit_dag
from wms.dags.resubmission.texts import read_source
from wms.jobs.content.paths import MAX_PATH_BYTES

#: Of a run that goes on from an earlier one.
SAVE_POINT = Argument(
    "save_point",
    "Save point",
    ArgumentType.TEXT,
    "",
    in_api="Or the name of a save point.",
    most_characters=MAX_PATH_BYTES,
)
_COPY = (
    Argument(
        "texts",
        "Texts",
        ArgumentType.TEXTS_BY_NAME,
        {},
        in_api="New texts by the paths of files that can be changed; all others stay.",
    ),
    Argument(
        "resume",
        "Begin from",
        ArgumentType.TEXT,
        "newest",
        in_api="newest (where it ended, if it left a rescue), afresh, or the number of a rescue.",
        least=1,
        most_characters=20,
    ),
    SAVE_POINT,
    Argument(
        "keeps_done",
        "Keep done nodes",
        ArgumentType.YES_NO,
        False,
        in_api="Nodes stay done even if the edit changes them.",
    ),
    Argument(
        "with_outputs",
        "Take outputs along",
        ArgumentType.YES_NO,
        False,
        in_api="Files that jobs sent back come along where all nodes run again, too.",
    ),
    Argument("options", "Options", ArgumentType.OPTIONS_BY_NAME, {}, in_api="Options that change."),
)


def _resubmit(dag_id: int, order: Order) -> Dag:
    """Submit an edited copy of a DAG, with its labels, priority and binding."""
    given, user = order.arguments, order.actor.user
    if user is None:
        raise NotPermitted("Copies of DAGs belong to whoever makes them.")
    source = read_source(find_dag(user, dag_id))
    beside = source.beside
    edit = Edit(
        texts=given.get("texts", {}),
        resumption=read_resumption(given.get("resume", ""), given.get("save_point", "")),
        keeps_done=given.get("keeps_done", False),
        with_outputs=given.get("with_outputs", False),
        options=given.get("options", {}),
        binding=beside.binding,
        labels=beside.labels,
        priority=beside.priority,
        reason=order.reason,
    )
    done, _ = resubmit_dag(source, edit, owner=user, actor=order.actor)
    return done.dag


RESUBMIT = Action(
    "resubmit",
    "Edit and resubmit",
    [
        when(Q(parent_node__isnull=False), "it is inside of another DAG: edit that"),
        when(Q(is_followed=True), "it follows the log of another engine: its files are there"),
    ],
    _resubmit,
    api=InApi(
        "Submit a copy of a DAG with other texts, as a new DAG of the caller",
        "Check the files as at a submission, and store a new DAG with a workspace of its own; "
        "needs a reason. With any fault nothing is stored, and the answer has all of them, with "
        "their lines.",
        body="What is changed, and where the copy begins.",
        body_name="ResubmitDag",
    ),
    arguments=_COPY,
)
