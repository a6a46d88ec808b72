"""Simulator: submits DAGs and runs the engine and the simulated backends by a virtual clock.

All of it happens in the caller's transaction. A refused submission has an outcome, too. Several
DAGs run side by side by one clock: each cycle of the engine is for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, PilotageError
from wms.dags.engine import cycle as engine
from wms.dags.engine import timers
from wms.dags.models import Dag
from wms.dags.simulation.behaviour import Behaviour
from wms.dags.simulation.options import SimulationOptions
from wms.dags.simulation.outcome import Outcome, outcome_of_run, refused_outcome
from wms.dags.simulation.simulation import Simulation, TellProgress
from wms.dags.simulation.testbed import SimulationTestbed
from wms.dags.states import DAG_TERMINAL
from wms.dags.submission.runs import RunRequest, check_options, create_run
from wms.dags.submission.workspaces import put_file

#: Limit of steps of the virtual clock in a simulation.
MAX_STEPS = 200_000


class _Crash(Exception):
    """Simulated kill of the engine in the middle of a round."""


def simulate_submission(
    request: RunRequest,
    behaviour: Behaviour,
    options: SimulationOptions,
    testbed: SimulationTestbed,
    *,
    available_programs: frozenset[str] | None = None,
    tell: TellProgress | None = None,
) -> Outcome:
    """Submit a DAG and simulate its run, in the caller's transaction: see `begin_submission`."""
    begun = begin_submission(
        request,
        behaviour,
        options,
        testbed,
        now=timezone.now(),
        available_programs=available_programs,
        tell=tell,
    )
    if isinstance(begun, Outcome):
        return begun
    (outcome,) = run_side_by_side([begun])
    return outcome


def begin_submission(
    request: RunRequest,
    behaviour: Behaviour,
    options: SimulationOptions,
    testbed: SimulationTestbed,
    *,
    now: datetime,
    available_programs: frozenset[str] | None = None,
    late_files: Mapping[str, bytes] | None = None,
    tell: TellProgress | None = None,
) -> Simulation | Outcome:
    """Submit a DAG; its simulation, which begins at this time, or the outcome of its refusal.

    `available_programs` are names of scripts that exist in every directory; None: all exist.
    `late_files` come into the workspace after the submission.
    """
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
    return Simulation(
        dag, behaviour, options, began_at=now, available_programs=available_programs, tell=tell
    )


def run_side_by_side(simulations: Sequence[Simulation]) -> list[Outcome]:
    """Run simulations that begin at the same time to their ends; their outcomes, in their order."""
    if not simulations:
        return []
    outcomes = _SharedClock(simulations).run()
    return [outcomes[each.context.dag.pk] for each in simulations]


class _SharedClock:
    """The clock of simulations that run side by side, and the engine that runs for all of them."""

    def __init__(self, simulations: Iterable[Simulation]) -> None:
        self._running = {each.context.dag.pk: each for each in simulations}
        self._next_us: dict[int, int] = {}
        self._round_numbers: dict[int, int] = {}
        self._outcomes: dict[int, Outcome] = {}

    def run(self) -> Mapping[int, Outcome]:
        """Advance the clock until each DAG has ended, or has no next event; outcomes by DAG."""
        due = set(self._running)
        for _ in range(MAX_STEPS):
            self._take_stock(self._run_until_stable(due))
            if not self._running:
                return self._outcomes
            due = self._advance_clock()
        for dag_id in list(self._running):
            self._end(dag_id)
        return self._outcomes

    def _take_stock(self, touched: Collection[int]) -> None:
        """End the simulations that are over, and find the next event of the others."""
        columns = ("pk", "state", "node_count", "done_count", "failed_count", "futile_count")
        rows = Dag.objects.filter(pk__in=touched).order_by("pk").values_list(*columns)
        for dag_id, state, nodes, *ended in rows:
            simulation = self._running[dag_id]
            if simulation.tell is not None:
                simulation.tell(nodes, sum(ended))
            next_us = None if state in DAG_TERMINAL else simulation.next_event_us()
            if next_us is None:
                self._end(dag_id)
            else:
                self._next_us[dag_id] = next_us

    def _end(self, dag_id: int) -> None:
        self._outcomes[dag_id] = outcome_of_run(self._running.pop(dag_id).context)
        self._next_us.pop(dag_id, None)

    def _advance_clock(self) -> set[int]:
        """Go on to the next event of any simulation; those that have one then."""
        at_us = min(self._next_us.values())
        due = {dag_id for dag_id, next_us in self._next_us.items() if next_us == at_us}
        for simulation in self._running.values():
            simulation.context.now_us = at_us
        is_timed = [self._running[dag_id].carry_out_due() for dag_id in sorted(due)]
        if any(is_timed):
            timers.run_cycle(self._now)
        return due

    @property
    def _now(self) -> datetime:
        return next(iter(self._running.values())).context.now

    def _run_until_stable(self, due: set[int]) -> set[int]:
        """Run engine and backends until nothing more happens at this time; the DAGs concerned."""
        touched, changed = set(due), set(due)
        is_first = True
        while (has_advanced := self._run_engine()) or is_first:
            is_first = False
            moved = self._moved() if has_advanced else set()
            for dag_id in moved:
                self._running[dag_id].context.note_growth()
            for dag_id in sorted(changed | moved):
                self._running[dag_id].update()
            touched |= moved
            changed = set()
        return touched

    def _moved(self) -> set[int]:
        """The DAGs that a round was had with since this was asked last, or with inner ones."""
        if len(self._running) == 1:
            return set(self._running)
        outermost = {
            dag_id: outer
            for outer, each in self._running.items()
            for dag_id in each.context.dag_ids
        }
        before, rows = self._round_numbers, Dag.objects.filter(pk__in=outermost)
        self._round_numbers = dict(rows.values_list("pk", "round_number"))
        return {
            outermost[dag_id]
            for dag_id, number in self._round_numbers.items()
            if before.get(dag_id) != number
        }

    def _run_engine(self) -> bool:
        """Run a cycle of the engine; whether it did something.

        A cycle goes on until nothing is left to do. A killed engine does it once more.
        """
        killed = [each for each in self._running.values() if each.triggers.crash_pending]
        if killed and self._crash():
            for each in killed:
                each.triggers.crash_pending = False
        return _advanced(engine.run_cycle(self._now))

    def _crash(self) -> bool:
        """Run an engine cycle and roll it back, as after a kill; False when it did nothing."""
        try:
            with transaction.atomic():
                if not _advanced(engine.run_cycle(self._now)):
                    return False
                raise _Crash
        except _Crash:
            return True


def _advanced(report: Mapping[str, Any]) -> bool:
    """Whether a cycle of the engine changed a DAG."""
    return any(report.get(result.value) for result in (engine.Advance.DONE, engine.Advance.MORE))
