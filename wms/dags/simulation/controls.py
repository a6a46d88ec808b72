"""What somebody does to the DAG while it runs: halt, remove, hold and release; or a crash."""

from __future__ import annotations

from functools import partial

from wms.dags.services import dags as services
from wms.dags.simulation.behaviour import US_PER_S
from wms.dags.simulation.options import Trigger
from wms.dags.simulation.record import Run
from wms.dags.simulation.world import STEERING, World

_AFTER_US = US_PER_S
_HELD_US = US_PER_S


class Controls:
    """Carries out the triggers of a run, a second after the start that each waits for.

    `kill` is the name of a trigger as well: the next round of the engine is to be lost.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._left = list(world.options.triggers)
        self.has_crash_ahead = False
        world.listeners.append(self._note_start)

    def _note_start(self, run: Run) -> None:
        for trigger in list(self._left):
            if trigger.component == run.component and trigger.start == run.number:
                self._left.remove(trigger)
                at_us = self._world.now_us + _AFTER_US
                self._world.agenda.plan(at_us, partial(self._fire, trigger))

    def _fire(self, trigger: Trigger) -> None:
        dag_ids = [self._world.dag.pk]
        if trigger.what == "halt":
            services.halt_dags(dag_ids, actor=STEERING, reason="halted by the simulation")
            if self._world.options.resume_after_s is not None:
                self._plan_release(round(self._world.options.resume_after_s * US_PER_S))
        elif trigger.what == "remove":
            services.remove_dags(dag_ids, actor=STEERING, reason="removed by the simulation")
        elif trigger.what == "hold_release":
            services.hold_dags(dag_ids, actor=STEERING, reason="held by the simulation")
            self._plan_release(_HELD_US)
        else:
            self.has_crash_ahead = True

    def _plan_release(self, after_us: int) -> None:
        self._world.agenda.plan(self._world.now_us + after_us, self._release)

    def _release(self) -> None:
        services.release_dags([self._world.dag.pk], actor=STEERING)
