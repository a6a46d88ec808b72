"""Context of a simulation: virtual clock, event queue, trace, and the DAGs that take part.

Also which features these DAGs use, so that backends for others do no queries.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

from django.db.models import Count, Q

from wms.core.actors import Actor
from wms.dags.models import Dag, Node
from wms.dags.simulation.behaviour import Behaviour
from wms.dags.simulation.options import SimulationOptions
from wms.dags.simulation.trace import Run, Trace
from wms.dags.states import NodeKind

#: Callback for the start of a run.
StartListener = Callable[[Run], None]
_US = timedelta(microseconds=1)
SIMULATION_ACTOR = Actor.system("simulation")


class EventQueue:
    """Event queue of actions by simulated time; actions of the same time keep their order."""

    def __init__(self) -> None:
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = count()

    def schedule(self, at_us: int, action: Callable[[], None]) -> None:
        """Call an action at this time."""
        heapq.heappush(self._events, (at_us, next(self._sequence), action))

    @property
    def next_us(self) -> int | None:
        """Time of the next event, None without one."""
        return self._events[0][0] if self._events else None

    def pop_until(self, until_us: int) -> Iterator[Callable[[], None]]:
        """Remove and return the actions up to this time, in their order."""
        while self._events and self._events[0][0] <= until_us:
            yield heapq.heappop(self._events)[2]


@dataclass
class SimulationContext:
    """Shared state of one simulated run of a DAG; `dag_ids` are the DAG and its inner DAGs.

    The flags tell which features the DAGs use; backends for other features do no queries.
    """

    dag: Dag
    behaviour: Behaviour
    options: SimulationOptions
    began_at: datetime
    now_us: int = 0
    event_queue: EventQueue = field(default_factory=EventQueue)
    trace: Trace = field(default_factory=Trace)
    dag_ids: list[int] = field(default_factory=list)
    start_listeners: list[StartListener] = field(default_factory=list)
    has_scripts: bool = False
    has_data: bool = False
    has_inner: bool = False
    has_timers: bool = False
    has_gates: bool = False
    may_grow: bool = False
    limits_idle: bool = False

    def add_dag(self, dag_id: int) -> None:
        """Add the simulated DAG, or an inner DAG of it, and set the flags for its features."""
        self.dag_ids.append(dag_id)
        self._note_features(dag_id)

    def note_growth(self) -> None:
        """Set the flags for the features of nodes that DAGs have grown by."""
        if self.may_grow:
            for dag_id in self.dag_ids:
                self._note_features(dag_id)

    def _note_features(self, dag_id: int) -> None:
        counts = Node.objects.filter(dag_id=dag_id).aggregate(
            scripts=Count("pk", filter=Q(features__has_key="scripts")),
            data=Count("pk", filter=Q(kind=NodeKind.DATA)),
            inner=Count("pk", filter=Q(kind=NodeKind.SUBDAG)),
            timers=Count("pk", filter=Q(features__has_key="time_limits")),
            gates=Count("pk", filter=Q(kind=NodeKind.GATE)),
            growing=Count("pk", filter=Q(features__has_key="expand")),
        )
        self.has_scripts = self.has_scripts or counts["scripts"] > 0
        self.has_data = self.has_data or counts["data"] > 0
        self.has_inner = self.has_inner or counts["inner"] > 0
        self.has_gates = self.has_gates or counts["gates"] > 0
        self.may_grow = self.may_grow or counts["growing"] > 0
        is_timed = self.has_scripts or self.has_gates or counts["timers"] > 0
        self.has_timers = self.has_timers or is_timed
        options = Dag.objects.values_list("options", flat=True).get(pk=dag_id)
        self.limits_idle = self.limits_idle or bool(options.get("max_idle"))

    @property
    def now(self) -> datetime:
        """Current time of the virtual clock."""
        return self.began_at + self.now_us * _US

    def to_us(self, moment: datetime) -> int:
        """Microseconds since the start of the simulation at a moment of the virtual clock."""
        return (moment - self.began_at) // _US

    def start(self, run: Run) -> Run:
        """Trace the start of a run and call the listeners."""
        self.trace.start(run, self.now_us)
        for listener in self.start_listeners:
            listener(run)
        return run

    def end(self, run: Run, ending: str) -> None:
        """Trace the end of a run; `ending` is a code or a word."""
        self.trace.end(run, self.now_us, ending)
