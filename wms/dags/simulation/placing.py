"""The scripted placement service: transfers begin in their order, and end as the behaviour says."""

from __future__ import annotations

from functools import partial

from wms.dags.models import Node
from wms.dags.simulation.behaviour import TRY, Result
from wms.dags.simulation.record import Run
from wms.dags.simulation.world import STEERING, World
from wms.dags.states import NodeState
from wms.placement import operations as placement
from wms.placement.models import PlacementRequest
from wms.placement.states import TERMINAL, WAITING

#: So many transfers run at once.
_MOST_AT_ONCE = 10


class PlacementService:
    """Begins the attempts that are due, first in first out; ends them when their time is up."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._requests: dict[int, Run] = {}
        self._attempts: dict[int, Run] = {}

    def start_due(self) -> int:
        """Begin the attempts that are due, as there is room. Returns how many."""
        if not self._world.has_data or not placement.due_requests(self._world.now):
            return 0
        started = 0
        while len(self._attempts) < _MOST_AT_ONCE:
            begun = placement.take_request(self._world.now)
            if begun is None:
                break
            self._start(begun)
            started += 1
        return started

    def next_us(self) -> int | None:
        """When the next attempt may begin that waits for its time."""
        if not self._requests:
            return None
        waiting = PlacementRequest.objects.filter(
            pk__in=list(self._requests), state__in=WAITING, due_at__gt=self._world.now
        )
        due_at = waiting.order_by("due_at").values_list("due_at", flat=True).first()
        return None if due_at is None else self._world.us_of(due_at)

    def note_stopped(self) -> None:
        """Record the ends of requests, by themselves or by others."""
        if not self._requests:
            return
        ended = PlacementRequest.objects.filter(pk__in=list(self._requests), state__in=TERMINAL)
        for pk, state in ended.values_list("pk", "state"):
            self._world.end(self._requests.pop(pk), state)
            if pk in self._attempts:
                self._world.end(self._attempts.pop(pk), "stopped")

    def _start(self, begun: placement.Started) -> None:
        world, name, dag_id = self._world, *self._node_of(begun.request_id)
        if begun.request_id not in self._requests:
            number = world.record.next_number(name, "")
            self._requests[begun.request_id] = world.start(Run(name, "", number, dag_id))
        number = world.record.next_number(name, TRY)
        schemes = (begun.source_scheme, begun.destination_scheme)
        run = world.start(Run(name, TRY, number, dag_id, arguments=schemes))
        self._attempts[begun.request_id] = run
        lasts_us = _first_known(world, name, number)
        result = world.behaviour.result(name, number)
        world.agenda.plan(world.now_us + lasts_us, partial(self._end, begun, run, result))

    def _node_of(self, request_id: int) -> tuple[str, int]:
        node = Node.objects.only("name", "dag_id").get(
            dag_id__in=self._world.dag_ids,
            state=NodeState.SUBMITTED,
            work__request=request_id,
        )
        return node.name, node.dag_id

    def _end(self, begun: placement.Started, run: Run, result: Result) -> None:
        if self._attempts.get(begun.request_id) is not run:
            return
        del self._attempts[begun.request_id]
        self._world.end(run, "removed" if result.is_removed else str(result.code))
        if result.is_removed:
            placement.remove_requests(
                [begun.request_id], actor=STEERING, reason="removed from the queue"
            )
        else:
            placement.end_attempt(
                begun.request_id,
                exit_code=result.code,
                lease=begun.lease,
                now=self._world.now,
            )


def _first_known(world: World, name: str, number: int) -> int:
    """How long an attempt lasts: as its own component says, else as that of the node."""
    behaviour = world.behaviour
    if behaviour.says_how_long(name, number, TRY):
        return behaviour.duration_us(name, TRY, number, behaviour.usual.try_s)
    return behaviour.duration_us(name, "", number, behaviour.usual.try_s)
