"""Arguments and words of the action that changes labels, which DAGs and clusters share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wms.actions.actions import Action, InApi, InBulk, InShell, OnPage
from wms.actions.arguments import Argument, ArgumentType
from wms.actions.kinds import of_many, one_of_many
from wms.actions.obstacles import Obstacle
from wms.core.labels import MAX_LABELS
from wms.core.transitions import Applied

_HELP = "Words with commas, such as campaign=mc27."
_ARGUMENTS = (
    Argument(
        "add", "Labels to add", ArgumentType.NAMES, None, _HELP, most=MAX_LABELS,
        in_api="Labels that it gets, such as campaign=mc27.",
    ),
    Argument(
        "remove", "Labels to remove", ArgumentType.NAMES, None, _HELP, most=MAX_LABELS,
        in_api="Labels that are taken away.",
    ),
)  # fmt: skip


def labelling(
    noun: str,
    service: Callable[..., Applied],
    *,
    obstacles: Sequence[Obstacle] = (),
    remark: str = "",
) -> Action:
    """The action that changes the labels of objects of a kind, by this service."""
    return Action(
        "label",
        "Change labels",
        obstacles,
        one_of_many(service),
        page=OnPage(
            f"By labels it is found, and counted with others. {remark}".strip(), "has other labels"
        ),
        api=InApi(
            f"Change the labels of a {noun}",
            "Add and remove those that are named; needs a reason.",
            "labelled",
            body="Labels that are added and removed.",
            body_name=f"Label{noun.capitalize()}",
        ),
        shell=InShell(f"change the labels of a {noun}", "{0.changed} labelled"),
        bulk=InBulk(
            f"By labels they are found, and counted with others. {remark}".strip(),
            of_many(service),
        ),
        arguments=_ARGUMENTS,
    )
