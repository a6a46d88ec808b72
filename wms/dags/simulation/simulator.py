"""Simulator: submits a DAG and runs the engine and the simulated backends by a virtual clock.

All of it happens in the caller's transaction. A refused submission has an outcome, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, PilotageError
from wms.dags import lifecycle
from wms.dags.engine import cycle as engine
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
from wms.dags.simulation.outcome import Outcome, outcome_of_run, refused_outcome
from wms.dags.simulation.testbed import SimulationTestbed
from wms.dags.simulation.triggers import TriggeredActions
from wms.dags.states import DAG_TERMINAL
from wms.dags.submission.runs import RunRequest, check_options, create_run
from wms.dags.submission.workspaces import put_file

#: Limit of steps of the virtual clock in a simulation.
MAX_STEPS = 200_000
#: Is told how many nodes the DAG has, and how many of them have ended.
TellProgress = Callable[[int, int], None]


class _Crash(Exception):
    """Simulated kill of the engine in the middle of a round."""


def simulate_submission(
    request: RunRequest,
    behaviour: Behaviour,
    options: SimulationOptions,
    testbed: SimulationTestbed,
    *,
    available_programs: frozenset[str] | None = None,
    late_files: Mapping[str, bytes] | None = None,
    tell: TellProgress | None = None,
) -> Outcome:
    """Submit a DAG and simulate its run, in the caller's transaction.

    `available_programs` are names of scripts that exist in every directory; None: all exist.
    `late_files` come into the workspace after the submission.
    """
    now = timezone.now()
    try:
        with transaction.atomic():
            check_options(request.options)
            dag = create_run(request, actor=Actor.person(request.owner))
    except InvalidInput as error:
        return refused_outcome(error.findings, request.workspace)
    except PilotageError as error:
        return refused_outcome([Finding(str(error))], request.workspace)
    for path, content in (late_files or {}).items():
        put_file(request.workspace, path, content)
    testbed.bind(dag, now=now)
    simulation = Simulation(
        dag, behaviour, options, began_at=now, available_programs=available_programs, tell=tell
    )
    return outcome_of_run(simulation.run())


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
        self._tell = tell
        self.context = SimulationContext(dag, behaviour, options, began_at)
        self.context.add_dag(dag.pk)
        self._batch = BatchSystem(self.context)
        self._scripts = ScriptService(self.context, self._batch, available_programs)
        self._placement = PlacementService(self.context)
        self._gates = GateKeeper(self.context)
        self._triggers = TriggeredActions(self.context)
        self._inner_dags = InnerDags(self.context)
        self._timer_us: int | None = None
        self.reached_step_limit = False

    def run(self) -> SimulationContext:
        """Advance the clock until the DAG has ended, or there is no next event."""
        for _ in range(MAX_STEPS):
            self._run_until_stable()
            if self._has_ended():
                return self.context
            event_us = self._next_event_us()
            if event_us is None:
                return self.context
            self._advance_clock(event_us)
        self.reached_step_limit = True
        return self.context

    def _has_ended(self) -> bool:
        columns = ("state", "node_count", "done_count", "failed_count", "futile_count")
        state, nodes, *ended = Dag.objects.values_list(*columns).get(pk=self.context.dag.pk)
        if self._tell is not None:
            self._tell(nodes, sum(ended))
        return state in DAG_TERMINAL

    def _next_event_us(self) -> int | None:
        """Time of the next event after now."""
        self._timer_us = self._next_timer_us()
        times = (self.context.event_queue.next_us, self._timer_us, self._placement.next_us())
        return min((each for each in times if each is not None), default=None)

    def _next_timer_us(self) -> int | None:
        if not self.context.has_timers:
            return None
        due_at = timers.next_due(self.context.dag_ids, after=self.context.now)
        return None if due_at is None else self.context.to_us(due_at)

    def _advance_clock(self, at_us: int) -> None:
        self.context.now_us = at_us
        for action in self.context.event_queue.pop_until(at_us):
            action()
        if at_us == self._timer_us:
            timers.run_cycle(self.context.now)

    def _run_until_stable(self) -> None:
        """Run engine and backends until nothing more happens at this time."""
        is_first = True
        while self._run_engine() or is_first:
            is_first = False
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

    def _run_engine(self) -> bool:
        """Run engine cycles until one does nothing; whether any did something."""
        has_advanced = False
        while True:
            if self._triggers.crash_pending:
                self._triggers.crash_pending = not self._crash()
            if not _advanced(engine.run_cycle(self.context.now)):
                return has_advanced
            self.context.note_growth()
            has_advanced = True

    def _crash(self) -> bool:
        """Run an engine cycle and roll it back, as after a kill; False when it did nothing."""
        try:
            with transaction.atomic():
                if not _advanced(engine.run_cycle(self.context.now)):
                    return False
                raise _Crash
        except _Crash:
            return True


def _advanced(report: Mapping[str, Any]) -> bool:
    """Whether a cycle of the engine changed a DAG."""
    return any(report.get(result.value) for result in (engine.Advance.DONE, engine.Advance.MORE))
