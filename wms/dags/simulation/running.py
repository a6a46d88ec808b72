"""The run of a DAG: the engine, the scripted services, and the clock that jumps between them."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from wms.core.models import InboxEntry
from wms.dags import engine, lifecycle, timers
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
        supplied: frozenset[str] = frozenset(),
    ) -> None:
        self.world = World(dag, behaviour, options, began_at, dag_ids=[dag.pk])
        self._batch = BatchSystem(self.world)
        self._scripts = ScriptService(self.world, self._batch, supplied)
        self._placing = PlacementService(self.world)
        self._controls = Controls(self.world)
        self._inner = InnerDags(self.world)
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
        self.world.dag.refresh_from_db(fields=["state", "state_reason", "status", "exit_code"])
        return self.world.dag.state in DAG_TERMINAL

    def _go_to(self, at_us: int) -> None:
        self.world.now_us = at_us
        for act in self.world.agenda.take(at_us):
            act()
        timers.run_cycle(self.world.now)

    def _next_us(self) -> int | None:
        """When something happens next, after now."""
        due_at = timers.next_due(self.world.dag_ids, after=self.world.now)
        times = (
            self.world.agenda.next_us,
            None if due_at is None else self.world.us_of(due_at),
            self._placing.next_us(),
        )
        return min((each for each in times if each is not None), default=None)

    def _settle(self) -> None:
        """Let everything happen that happens at this time."""
        while True:
            self._run_engine()
            self._inner.look()
            for service in (self._batch, self._scripts, self._placing):
                service.note_stopped()
            if not self._start():
                return

    def _start(self) -> bool:
        """Start what may; whether the engine has to be asked again."""
        started = self._batch.start_waiting()
        if started:
            self._tell_of_room()
        started += self._scripts.start_granted() + self._placing.start_due()
        return started > 0 or _has_news()

    def _tell_of_room(self) -> None:
        """Jobs that start leave room for others, where the idle ones are limited."""
        waiting = Dag.objects.filter(
            pk__in=self.world.dag_ids, options__max_idle__gt=0, ready_count__gt=0
        )
        lifecycle.tell_engine(*waiting.values_list("pk", flat=True))

    def _run_engine(self) -> None:
        while _has_news():
            if self._controls.has_crash_ahead:
                self._controls.has_crash_ahead = False
                self._crash()
            engine.run_cycle(self.world.now)

    def _crash(self) -> None:
        """A round of the engine that is lost: nothing of it is left, as after a kill."""
        try:
            with transaction.atomic():
                engine.run_cycle(self.world.now)
                raise _Crash
        except _Crash:
            return


def _has_news() -> bool:
    return InboxEntry.objects.filter(topic__in=lifecycle.TOPICS).exists()
