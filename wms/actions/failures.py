"""Kind failure group and its actions mute, resolve, reopen and categorise, for page and API."""

from __future__ import annotations

from wms.actions.actions import Action, InApi, OnPage
from wms.actions.arguments import Argument, ArgumentType
from wms.actions.kinds import Kind, actions, one_of_many
from wms.actions.obstacles import of_state
from wms.actions.remarks import remark_actions
from wms.failures.models import Category, FailureGroup
from wms.failures.policy import may_steer
from wms.failures.selectors import visible_groups
from wms.failures.services import categorise_groups, mute_groups, reopen_groups, resolve_groups
from wms.failures.states import TRANSITIONS
from wms.remarks.states import SubjectKind

FAILURES = Kind(
    name="failures",
    noun="failure group",
    nouns="failure groups",
    model=FailureGroup,
    visible=visible_groups,
    permits=lambda user, group: may_steer(user),
    offered=may_steer,
    actions=actions(
        Action(
            "resolve",
            "Resolve",
            [of_state(TRANSITIONS["resolve"].sources)],
            one_of_many(resolve_groups),
            page=OnPage(
                "The cause is removed. If it happens again, the group is shown as regressed.",
                "is resolved",
            ),
            api=InApi(
                "Say that the cause is removed; if it happens again the group has regressed",
                "Resolve it; needs a reason.",
            ),
        ),
        Action(
            "mute",
            "Mute",
            [of_state(TRANSITIONS["mute"].sources)],
            one_of_many(mute_groups),
            page=OnPage("It is known and not to be brought up. It goes on counting.", "is muted"),
            api=InApi(
                "Do not bring a failure group up any more; it goes on counting",
                "Mute it; needs a reason.",
            ),
        ),
        Action(
            "reopen",
            "Reopen",
            [of_state(TRANSITIONS["reopen"].sources)],
            one_of_many(reopen_groups),
            page=OnPage("It wants to be looked at again.", "is active again"),
            api=InApi("Let a failure group be looked at again", "Reopen it; needs a reason."),
        ),
        Action(
            "categorise",
            "Categorise",
            (),
            one_of_many(categorise_groups),
            page=OnPage("Where the cause lies, and so whom to contact.", "is of the category"),
            api=InApi(
                "Say where the cause of a failure group lies",
                "Give it the category; needs a reason.",
                body="Where the cause of a group lies, and why one thinks so.",
            ),
            arguments=(
                Argument(
                    "category",
                    "Category",
                    ArgumentType.CHOICE,
                    is_required=True,
                    choices=tuple(Category.choices),
                ),
            ),
        ),
        *remark_actions(SubjectKind.FAILURE, "failure group", "failure groups"),
    ),
)
