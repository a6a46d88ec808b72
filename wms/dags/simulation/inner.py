"""The DAGs inside of a simulated one, as runs of their nodes."""

from __future__ import annotations

from wms.dags.models import Dag
from wms.dags.simulation.record import Run
from wms.dags.simulation.world import World
from wms.dags.states import DAG_TERMINAL


class InnerDags:
    """Finds inner DAGs as they begin, and records their ends."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._running: dict[int, Run] = {}

    def look(self) -> None:
        """Take note of the inner DAGs that have begun or ended."""
        if not self._world.has_inner:
            return
        rows = Dag.objects.filter(root=self._world.dag).order_by("pk")
        known = set(self._world.dag_ids)
        for pk, state, exit_code, name, outer in rows.values_list(
            "pk", "state", "exit_code", "parent_node__name", "parent_node__dag_id"
        ):
            if pk not in known:
                self._world.take_in(pk)
                number = self._world.record.next_number(name, "")
                self._running[pk] = self._world.start(Run(name, "", number, outer))
            if pk in self._running and state in DAG_TERMINAL:
                self._world.end(self._running.pop(pk), str(exit_code))
