"""State machine of trials, the only code that changes their state."""

from __future__ import annotations

from typing import Final

from wms.core.statemachine import StateMachine
from wms.dags.models import Trial, TrialEvent
from wms.dags.trials.states import TRANSITIONS

TRIALS = StateMachine(model=Trial, event_model=TrialEvent, subject="trial", transitions=TRANSITIONS)
#: Name of the task that carries out trials.
RUN_TASK: Final = "wms.dags.trials.run"
