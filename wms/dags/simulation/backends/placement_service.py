"""Simulated placement service: transfers of DATA nodes end as the behaviour file says."""

from __future__ import annotations

from functools import partial

from django.db.models import Q

from wms.dags.models import Node
from wms.dags.simulation.behaviour import TRANSFER, RunResult
from wms.dags.simulation.context import SIMULATION_ACTOR, SimulationContext
from wms.dags.simulation.trace import Run
from wms.dags.states import NodeState
from wms.placement import operations as placement
from wms.placement.beginnings import Started
from wms.placement.models import PlacementRequest
from wms.placement.states import TERMINAL, WAITING

#: Limit of concurrent transfers.
_MAX_TRANSFERS = 10


class PlacementService:
    """Starts attempts of placement requests that are due, first in first out, and ends them."""

    def __init__(self, context: SimulationContext) -> None:
        self._context = context
        self._requests: dict[int, Run] = {}
        self._attempts: dict[int, Run] = {}

    def start_due(self) -> int:
        """Start the attempts that are due, up to the limit of transfers. Returns their number."""
        if not self._context.has_data or not placement.due_requests(self._context.now):
            return 0
        started = 0
        while len(self._attempts) < _MAX_TRANSFERS:
            attempt = placement.take_request(self._context.now)
            if attempt is None:
                break
            self._start(attempt)
            started += 1
        return started

    def next_us(self) -> int | None:
        """Time at which the next waiting request is due, None without one."""
        if not self._requests:
            return None
        waiting = PlacementRequest.objects.filter(
            pk__in=list(self._requests), state__in=WAITING, due_at__gt=self._context.now
        )
        due_at = waiting.order_by("due_at").values_list("due_at", flat=True).first()
        return None if due_at is None else self._context.to_us(due_at)

    def note_stopped(self) -> None:
        """Trace the ends of placement requests."""
        if not self._requests:
            return
        ended = PlacementRequest.objects.filter(pk__in=list(self._requests), state__in=TERMINAL)
        for pk, state in ended.values_list("pk", "state"):
            self._context.end(self._requests.pop(pk), state)
            if pk in self._attempts:
                self._context.end(self._attempts.pop(pk), "stopped")

    def _start(self, attempt: Started) -> None:
        context, name, dag_id = self._context, *self._node_of(attempt.request_id)
        if attempt.request_id not in self._requests:
            number = context.trace.next_run_number(name, "")
            self._requests[attempt.request_id] = context.start(Run(name, "", number, dag_id))
        number = context.trace.next_run_number(name, TRANSFER)
        schemes = (attempt.source_scheme, attempt.destination_scheme)
        run = context.start(Run(name, TRANSFER, number, dag_id, arguments=schemes))
        self._attempts[attempt.request_id] = run
        duration_us = _transfer_duration_us(context, name, number)
        result = context.behaviour.result(name, number)
        context.event_queue.schedule(
            context.now_us + duration_us, partial(self._end, attempt, run, result)
        )

    def _node_of(self, request_id: int) -> tuple[str, int]:
        node = Node.objects.only("name", "dag_id").get(
            Q(work__request=request_id) | Q(work__request__followers=request_id),
            dag_id__in=self._context.dag_ids,
            state=NodeState.SUBMITTED,
        )
        return node.name, node.dag_id

    def _end(self, attempt: Started, run: Run, result: RunResult) -> None:
        if self._attempts.get(attempt.request_id) is not run:
            return
        del self._attempts[attempt.request_id]
        self._context.end(run, "removed" if result.is_removed else str(result.code))
        if result.is_removed:
            placement.remove_requests(
                [attempt.request_id], actor=SIMULATION_ACTOR, reason="removed from the queue"
            )
        else:
            placement.end_attempt(
                attempt.request_id,
                exit_code=result.code,
                lease=attempt.lease,
                now=self._context.now,
            )


def _transfer_duration_us(context: SimulationContext, name: str, number: int) -> int:
    """Duration of an attempt: that of its own component, else that of the node."""
    behaviour = context.behaviour
    if behaviour.has_duration(name, number, TRANSFER):
        return behaviour.duration_us(name, TRANSFER, number, behaviour.defaults.transfer_s)
    return behaviour.duration_us(name, "", number, behaviour.defaults.transfer_s)
