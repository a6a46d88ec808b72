"""Triggered actions of a simulation: halt, remove, hold and release the DAG, kill the engine.

Each comes one second after the start of a job. A killed engine loses its next round; a halted DAG
is released after a time if the options say so.
"""

from __future__ import annotations

from functools import partial

from wms.dags.services import dags as services
from wms.dags.simulation.behaviour import US_PER_S
from wms.dags.simulation.context import SIMULATION_ACTOR, SimulationContext
from wms.dags.simulation.options import Trigger
from wms.dags.simulation.trace import Run

_DELAY_US = US_PER_S
_HOLD_DURATION_US = US_PER_S


class TriggeredActions:
    """Carries out the triggers of a run, one second after the job start of each.

    A `kill` trigger sets `crash_pending`: the next round of the engine is lost.
    """

    def __init__(self, context: SimulationContext) -> None:
        self._context = context
        self._pending = list(context.options.triggers)
        self.crash_pending = False
        context.start_listeners.append(self._note_start)

    def _note_start(self, run: Run) -> None:
        for trigger in list(self._pending):
            if trigger.component == run.component and trigger.start_number == run.number:
                self._pending.remove(trigger)
                at_us = self._context.now_us + _DELAY_US
                self._context.event_queue.schedule(at_us, partial(self._fire, trigger))

    def _fire(self, trigger: Trigger) -> None:
        dag_ids = [self._context.dag.pk]
        if trigger.action == "halt":
            services.halt_dags(dag_ids, actor=SIMULATION_ACTOR, reason="halted by the simulation")
            if self._context.options.resume_after_s is not None:
                self._schedule_release(round(self._context.options.resume_after_s * US_PER_S))
        elif trigger.action == "remove":
            services.remove_dags(
                dag_ids, actor=SIMULATION_ACTOR, reason="removed by the simulation"
            )
        elif trigger.action == "hold_release":
            services.hold_dags(dag_ids, actor=SIMULATION_ACTOR, reason="held by the simulation")
            self._schedule_release(_HOLD_DURATION_US)
        else:
            self.crash_pending = True

    def _schedule_release(self, after_us: int) -> None:
        self._context.event_queue.schedule(self._context.now_us + after_us, self._release)

    def _release(self) -> None:
        services.release_dags([self._context.dag.pk], actor=SIMULATION_ACTOR)
