"""Kind schedule and its actions (pause, resume, remove), for page and API."""

from __future__ import annotations

from wms.actions.actions import Action, InApi, OnPage
from wms.actions.kinds import Kind, actions, one_of_many
from wms.actions.obstacles import of_state
from wms.schedules import services
from wms.schedules.models import Schedule
from wms.schedules.policy import may_steer
from wms.schedules.selectors import visible_schedules
from wms.schedules.states import TRANSITIONS

SCHEDULES = Kind(
    name="schedules",
    noun="schedule",
    nouns="schedules",
    model=Schedule,
    visible=visible_schedules,
    permits=may_steer,
    actions=actions(
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
