"""What the parts of a simulation share: the clock, the agenda, the DAGs, and the record."""

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
from wms.dags.simulation.options import Options
from wms.dags.simulation.record import Record, Run
from wms.dags.states import NodeKind

#: Called when a run has begun.
Listener = Callable[[Run], None]
_US = timedelta(microseconds=1)
STEERING = Actor.system("simulation")


class Agenda:
    """What is to happen at which time; what happens at the same time, in the order of the plans."""

    def __init__(self) -> None:
        self._plans: list[tuple[int, int, Callable[[], None]]] = []
        self._places = count()

    def plan(self, at_us: int, act: Callable[[], None]) -> None:
        """Have something happen at a time."""
        heapq.heappush(self._plans, (at_us, next(self._places), act))

    @property
    def next_us(self) -> int | None:
        """When something happens next."""
        return self._plans[0][0] if self._plans else None

    def take(self, until_us: int) -> Iterator[Callable[[], None]]:
        """What happens until then, in its order."""
        while self._plans and self._plans[0][0] <= until_us:
            yield heapq.heappop(self._plans)[2]


@dataclass
class World:
    """The surroundings of one simulated run of a DAG; `dag_ids` are it and the DAGs inside.

    What none of them has is not looked for: scripts, time limits, placement requests, inner DAGs,
    a limit of idle jobs.
    """

    dag: Dag
    behaviour: Behaviour
    options: Options
    began_at: datetime
    now_us: int = 0
    agenda: Agenda = field(default_factory=Agenda)
    record: Record = field(default_factory=Record)
    dag_ids: list[int] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    has_scripts: bool = False
    has_data: bool = False
    has_inner: bool = False
    has_timers: bool = False
    limits_idle: bool = False

    def take_in(self, dag_id: int) -> None:
        """Follow a DAG: the simulated one, or one inside of it."""
        self.dag_ids.append(dag_id)
        found = Node.objects.filter(dag_id=dag_id).aggregate(
            scripts=Count("pk", filter=Q(features__has_key="scripts")),
            data=Count("pk", filter=Q(kind=NodeKind.DATA)),
            inner=Count("pk", filter=Q(kind=NodeKind.SUBDAG)),
            timers=Count("pk", filter=Q(features__has_key="time_limits")),
        )
        self.has_scripts = self.has_scripts or found["scripts"] > 0
        self.has_data = self.has_data or found["data"] > 0
        self.has_inner = self.has_inner or found["inner"] > 0
        self.has_timers = self.has_timers or self.has_scripts or found["timers"] > 0
        options = Dag.objects.values_list("options", flat=True).get(pk=dag_id)
        self.limits_idle = self.limits_idle or bool(options.get("max_idle"))

    @property
    def now(self) -> datetime:
        """The time by the virtual clock."""
        return self.began_at + self.now_us * _US

    def us_of(self, moment: datetime) -> int:
        """A moment by the virtual clock, as it is counted here."""
        return (moment - self.began_at) // _US

    def start(self, run: Run) -> Run:
        """Record that a run begins now, and tell who wants to know."""
        self.record.start(run, self.now_us)
        for listener in self.listeners:
            listener(run)
        return run

    def end(self, run: Run, how: str) -> None:
        """Record that a run ends now."""
        self.record.end(run, self.now_us, how)
