"""Simulated gate keeper: decides gates that wait for a person, as the behaviour file says."""

from __future__ import annotations

from functools import partial

from wms.dags.models import Node
from wms.dags.services.gates import decide_gates
from wms.dags.simulation.context import SIMULATION_ACTOR, SimulationContext
from wms.dags.simulation.trace import Run
from wms.dags.states import NodeKind, NodeState


class GateKeeper:
    """Decides gates: a code of 0 opens one, another closes it.

    Without a result and a duration for a gate nobody comes, unless the behaviour is cooperative.
    """

    def __init__(self, context: SimulationContext) -> None:
        self._context = context
        self._waiting: dict[int, Run] = {}

    def note_waiting(self) -> None:
        """Trace the gates that have begun to wait, or are decided, and send for the person."""
        if not self._context.has_gates:
            return
        gates = Node.objects.filter(dag_id__in=self._context.dag_ids, kind=NodeKind.GATE)
        now = dict(
            gates.filter(state=NodeState.READY, work__waits_since__isnull=False)
            .order_by("pk")
            .values_list("pk", "name")
        )
        for node_id in [pk for pk in self._waiting if pk not in now]:
            state = gates.values_list("state", flat=True).get(pk=node_id)
            self._context.end(self._waiting.pop(node_id), str(state))
        for node_id, name in now.items():
            if node_id not in self._waiting:
                self._begin(node_id, name)

    def _begin(self, node_id: int, name: str) -> None:
        context, behaviour = self._context, self._context.behaviour
        node = Node.objects.only("dag_id").get(pk=node_id)
        number = context.trace.next_run_number(name, "")
        run = context.start(Run(name, "", number, node.dag_id))
        self._waiting[node_id] = run
        comes = name in behaviour.results or behaviour.has_duration(name, number)
        if comes or behaviour.is_cooperative:
            wait_us = behaviour.duration_us(name, "", number, behaviour.defaults.gate_s)
            context.event_queue.schedule(
                context.now_us + wait_us, partial(self._decide, node_id, name, run)
            )

    def _decide(self, node_id: int, name: str, run: Run) -> None:
        if self._waiting.get(node_id) is not run:
            return
        result = self._context.behaviour.result(name, run.number)
        decide_gates(
            run.dag_id,
            [name],
            opens=result.code == 0,
            actor=SIMULATION_ACTOR,
            reason="decided by the simulation",
        )
