"""Kind schedule and its actions (change, pause, resume, remove), for page and API."""

from __future__ import annotations

from wms.actions.actions import Action, InApi, OnPage
from wms.actions.arguments import Argument, ArgumentType
from wms.actions.kinds import Kind, actions, one_alone, one_of_many
from wms.actions.obstacles import of_state
from wms.schedules import services
from wms.schedules.changes import change_schedule
from wms.schedules.cron import MAX_TEXT
from wms.schedules.models import Schedule
from wms.schedules.policy import may_steer
from wms.schedules.selectors import visible_schedules
from wms.schedules.states import TRANSITIONS

_TERMS = (
    Argument("name", "Name", ArgumentType.TEXT, most_characters=128),
    Argument(
        "cron", "Times", ArgumentType.TEXT, most_characters=MAX_TEXT,
        in_api="Minute, hour, day of the month, month, day of the week, as in 0 6 * * mon.",
    ),
    Argument(
        "time_zone", "Time zone", ArgumentType.TEXT, most_characters=64,
        in_api="Such as Europe/Zurich.",
    ),
    Argument(
        "allows_overlap", "Overlap", ArgumentType.YES_NO,
        in_api="Submit it also while the DAG before has not ended.",
    ),
    Argument(
        "grace_s", "Late at most", ArgumentType.WHOLE, least=60, most=services.MAX_GRACE_S,
        in_api="It is not submitted later than that; such a time is missed.",
    ),
    Argument(
        "kept_runs", "Times kept", ArgumentType.WHOLE, least=1, most=services.MAX_KEPT_RUNS,
        in_api="Records of times that are kept.",
    ),
)  # fmt: skip

SCHEDULES = Kind(
    name="schedules",
    noun="schedule",
    nouns="schedules",
    model=Schedule,
    visible=visible_schedules,
    permits=may_steer,
    actions=actions(
        Action(
            "change",
            "Change",
            [of_state(TRANSITIONS["remove"].sources)],
            one_alone(change_schedule),
            api=InApi(
                "Change the times of a schedule",
                "Change those of its terms that are given; needs a reason. DAGs that run go on.",
                "changed",
                body="Terms to be changed.",
                body_name="ChangeSchedule",
            ),
            arguments=_TERMS,
        ),
        Action(
            "pause",
            "Pause",
            [of_state(TRANSITIONS["pause"].sources)],
            one_of_many(services.pause_schedules),
            page=OnPage(
                "Nothing is submitted until it is resumed. DAGs that run go on.", "is paused"
            ),
            api=InApi("Submit nothing for now", "Pause it; needs a reason.", "paused"),
        ),
        Action(
            "resume",
            "Resume",
            [of_state(TRANSITIONS["resume"].sources)],
            one_of_many(services.resume_schedules),
            page=OnPage(
                "It goes on with its next time. Those meanwhile are left out.", "is resumed"
            ),
            api=InApi(
                "Let a paused schedule go on",
                "Resume it; needs a reason.",
                "resumed",
            ),
        ),
        Action(
            "remove",
            "Remove",
            [of_state(TRANSITIONS["remove"].sources)],
            one_of_many(services.remove_schedules),
            page=OnPage("Nothing is submitted any more. DAGs that run go on.", "is removed"),
            api=InApi("End a schedule for good", "Remove it; needs a reason.", "removed"),
            is_destructive=True,
        ),
    ),
)
