"""The run of a DAG: the engine, the scripted services, and the clock that jumps between them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from wms.dags import lifecycle
from wms.dags.engine import cycle as engine
from wms.dags.engine import timers
from wms.dags.models import Dag
from wms.dags.simulation.batch import BatchSystem
from wms.dags.simulation.behaviour import Behaviour
from wms.dags.simulation.controls import Controls
from wms.dags.simulation.inner import InnerDags
from wms.dags.simulation.options import Options
from wms.dags.simulation.placing import PlacementService
from wms.dags.simulation.scripting import ScriptService
from wms.dags.simulation.world import World
from wms.dags.states import DAG_TERMINAL

#: A simulation that has not ended after so many steps of the clock never will.
MAX_STEPS = 200_000


class _Crash(Exception):
    """The engine is killed in the middle of its work."""


class Simulation:
    """One run of a DAG that is bound to its site, from its first round to its end."""

    def __init__(
        self,
        dag: Dag,
        behaviour: Behaviour,
        options: Options,
        *,
        began_at: datetime,
        supplied: frozenset[str] | None,
    ) -> None:
        self.world = World(dag, behaviour, options, began_at)
        self.world.take_in(dag.pk)
        self._batch = BatchSystem(self.world)
        self._scripts = ScriptService(self.world, self._batch, supplied)
        self._placing = PlacementService(self.world)
        self._controls = Controls(self.world)
        self._inner = InnerDags(self.world)
        self._timer_us: int | None = None
        self.is_cut = False

    def run(self) -> World:
        """Let the DAG run until it has ended, or nothing can happen any more."""
        for _ in range(MAX_STEPS):
            self._settle()
            if self._has_ended():
                return self.world
            next_us = self._next_us()
            if next_us is None:
                return self.world
            self._go_to(next_us)
        self.is_cut = True
        return self.world

    def _has_ended(self) -> bool:
        state = Dag.objects.values_list("state", flat=True).get(pk=self.world.dag.pk)
        return state in DAG_TERMINAL

    def _next_us(self) -> int | None:
        """When something happens next, after now."""
        self._timer_us = self._next_timer_us()
        times = (self.world.agenda.next_us, self._timer_us, self._placing.next_us())
        return min((each for each in times if each is not None), default=None)

    def _next_timer_us(self) -> int | None:
        if not self.world.has_timers:
            return None
        due_at = timers.next_due(self.world.dag_ids, after=self.world.now)
        return None if due_at is None else self.world.us_of(due_at)

    def _go_to(self, at_us: int) -> None:
        self.world.now_us = at_us
        for act in self.world.agenda.take(at_us):
            act()
        if at_us == self._timer_us:
            timers.run_cycle(self.world.now)

    def _settle(self) -> None:
        """Let everything happen that happens at this time."""
        is_first = True
        while self._run_engine() or is_first:
            is_first = False
            self._inner.look()
            for service in (self._batch, self._scripts, self._placing):
                service.note_stopped()
            if self._batch.start_waiting() and self.world.limits_idle:
                self._tell_of_room()
            self._scripts.start_granted()
            self._placing.start_due()

    def _tell_of_room(self) -> None:
        """Jobs that start leave room for others, where the idle ones are limited."""
        waiting = Dag.objects.filter(
            pk__in=self.world.dag_ids, options__max_idle__gt=0, ready_count__gt=0
        )
        lifecycle.notify_engine(*waiting.values_list("pk", flat=True))

    def _run_engine(self) -> bool:
        """Let the engine act on what is new, until nothing is; whether there was something."""
        had_news = False
        while True:
            if self._controls.has_crash_ahead:
                self._controls.has_crash_ahead = not self._crash()
            if not _advanced(engine.run_cycle(self.world.now)):
                return had_news
            had_news = True

    def _crash(self) -> bool:
        """A round of the engine that is lost: nothing of it is left, as after a kill.

        False when there was nothing to do in it.
        """
        try:
            with transaction.atomic():
                if not _advanced(engine.run_cycle(self.world.now)):
                    return False
                raise _Crash
        except _Crash:
            return True


def _advanced(report: Mapping[str, Any]) -> bool:
    """Whether a cycle of the engine did something; a DAG that it cannot go on with is held."""
    return any(report.get(way.value) for way in (engine.Advance.DONE, engine.Advance.MORE))
