"""Watch of a simulated DAG's inner DAGs: their runs are traced as runs of their SUBDAG nodes."""

from __future__ import annotations

from wms.dags.models import Dag
from wms.dags.simulation.context import SimulationContext
from wms.dags.simulation.trace import Run
from wms.dags.states import DAG_TERMINAL


class InnerDags:
    """Watches the starts and ends of inner DAGs."""

    def __init__(self, context: SimulationContext) -> None:
        self._context = context
        self._running: dict[int, Run] = {}

    def update(self) -> None:
        """Trace inner DAGs that have started or ended."""
        if not self._context.has_inner:
            return
        rows = Dag.objects.filter(root=self._context.dag).order_by("pk")
        known = set(self._context.dag_ids)
        for pk, state, exit_code, name, outer in rows.values_list(
            "pk", "state", "exit_code", "parent_node__name", "parent_node__dag_id"
        ):
            if pk not in known:
                self._context.add_dag(pk)
                number = self._context.trace.next_run_number(name, "")
                self._running[pk] = self._context.start(Run(name, "", number, outer))
            if pk in self._running and state in DAG_TERMINAL:
                self._context.end(self._running.pop(pk), str(exit_code))
