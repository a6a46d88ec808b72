"""Simulation of one DAG: its backends, and the events of its virtual clock.

Who runs it moves the clock and runs the engine (`simulator`), for it alone or with others.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from wms.dags import lifecycle
from wms.dags.engine import timers
from wms.dags.models import Dag
from wms.dags.simulation.backends.batch_system import BatchSystem
from wms.dags.simulation.backends.gate_keeper import GateKeeper
from wms.dags.simulation.backends.placement_service import PlacementService
from wms.dags.simulation.backends.script_service import ScriptService
from wms.dags.simulation.behaviour import Behaviour
from wms.dags.simulation.context import SimulationContext
from wms.dags.simulation.inner_dags import InnerDags
from wms.dags.simulation.options import SimulationOptions
from wms.dags.simulation.triggers import TriggeredActions

#: Is told how many nodes the DAG has, and how many of them have ended.
TellProgress = Callable[[int, int], None]


class Simulation:
    """Simulation of a matched DAG from its first round to its end."""

    def __init__(
        self,
        dag: Dag,
        behaviour: Behaviour,
        options: SimulationOptions,
        *,
        began_at: datetime,
        available_programs: frozenset[str] | None,
        tell: TellProgress | None = None,
    ) -> None:
        self.tell = tell
        self.context = SimulationContext(dag, behaviour, options, began_at)
        self.context.add_dag(dag.pk)
        self.triggers = TriggeredActions(self.context)
        self._batch = BatchSystem(self.context)
        self._scripts = ScriptService(self.context, self._batch, available_programs)
        self._placement = PlacementService(self.context)
        self._gates = GateKeeper(self.context)
        self._inner_dags = InnerDags(self.context)
        self._timer_us: int | None = None

    def next_event_us(self) -> int | None:
        """Time of the next event after now, None without one."""
        self._timer_us = self._next_timer_us()
        times = (self.context.event_queue.next_us, self._timer_us, self._placement.next_us())
        return min((each for each in times if each is not None), default=None)

    def _next_timer_us(self) -> int | None:
        if not self.context.has_timers:
            return None
        due_at = timers.next_due(self.context.dag_ids, after=self.context.now)
        return None if due_at is None else self.context.to_us(due_at)

    def carry_out_due(self) -> bool:
        """Carry out the events of this time; whether a timer of the engine is due as well."""
        now_us = self.context.now_us
        for action in self.context.event_queue.pop_until(now_us):
            action()
        return now_us == self._timer_us

    def update(self) -> None:
        """Let the backends do what there is to do after a cycle of the engine."""
        self._inner_dags.update()
        self._gates.note_waiting()
        for backend in (self._batch, self._scripts, self._placement):
            backend.note_stopped()
        if self._batch.start_waiting() and self.context.limits_idle:
            self._notify_idle_limited()
        self._scripts.start_granted()
        self._placement.start_due()

    def _notify_idle_limited(self) -> None:
        """Wake the engine for DAGs with a limit of idle jobs, since jobs have started."""
        waiting = Dag.objects.filter(
            pk__in=self.context.dag_ids, options__max_idle__gt=0, ready_count__gt=0
        )
        lifecycle.notify_engine(*waiting.values_list("pk", flat=True))
