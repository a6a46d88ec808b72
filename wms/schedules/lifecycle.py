"""State machine of schedules, and the inbox of times that their owners are told of."""

from __future__ import annotations

from typing import Final

from wms.core.statemachine import StateMachine
from wms.schedules.models import Schedule, ScheduleEvent
from wms.schedules.states import TRANSITIONS

SCHEDULES = StateMachine(
    model=Schedule, event_model=ScheduleEvent, subject="schedule", transitions=TRANSITIONS
)
#: The inbox of times at which nothing was submitted, by their ids.
NEWS_TOPIC: Final = "schedule-news"
#: Name of the task that submits what is due.
SUBMIT_TASK: Final = "wms.schedules.submit"
