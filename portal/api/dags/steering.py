"""Views of the actions on a DAG, such as hold, release, remove, rematch, rescue, growth, change
of limits.

The endpoints are made of them by the registry of actions (`wms.actions`). That of limits reads them
too; rescue answers with the new DAG.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.actions import ActionView
from portal.api.base import caller, refusals
from portal.api.dags import shapes
from portal.api.dags.submissions import SubmittedDagSerializer
from portal.api.problems import CONTENT_TYPE
from wms.core.errors import Conflict
from wms.core.heavy import heavy_place
from wms.core.idempotency_models import MadeKind
from wms.core.transitions import Applied
from wms.dags.growth.fragments import Fragment
from wms.dags.models import Dag
from wms.dags.reading import run_selectors, selectors
from wms.dags.reading.obstacles import room_now


class DagAction(ActionView):
    """One change of one DAG."""

    shape = shapes.DagDetailSerializer

    def answer(self, request: Request, which: int, done: Applied) -> Any:
        """The DAG. Raises Conflict if its state forbids the change."""
        dag = selectors.find_dag(caller(request), which)
        if not done.changed and self.object_action.api:
            raise Conflict(
                f"DAG {which} is {dag.state}: it cannot be {self.object_action.api.refused}."
            )
        return self.shape(dag).data


class RescueAction(ActionView):
    """A further run of one DAG that has ended."""

    shape = SubmittedDagSerializer
    status = status.HTTP_201_CREATED
    operations = "dags"
    makes = (MadeKind.DAG, Dag)
    further_refusals: ClassVar = {(400, CONTENT_TYPE): shapes.FaultyDagSerializer}

    def answer(self, request: Request, which: int, done: Dag) -> Any:
        """The new DAG."""
        return self.shape(selectors.find_dag(caller(request), done.pk)).data

    def address(self, done: Dag) -> str:
        """The new DAG's."""
        return reverse("api:dag", args=[done.pk])


class ResubmitAction(RescueAction):
    """An edited copy of one DAG."""

    further_refusals: ClassVar = {**RescueAction.further_refusals, **refusals(429)}

    def post(self, request: Request, **which: Any) -> Response:
        """Submit it, in one of the places for heavy requests."""
        with heavy_place(caller(request)):
            return super().post(request, **which)


class GrowAction(ActionView):
    """Nodes that a DAG has not had before."""

    shape = shapes.DagDetailSerializer
    operations = "dags"

    def answer(self, request: Request, which: int, done: Fragment) -> Any:
        """The DAG."""
        return self.shape(selectors.find_dag(caller(request), which)).data


class LimitsAction(ActionView):
    """The limits that a DAG is under."""

    shape = shapes.LimitsSerializer
    operations = "dags"

    @extend_schema(responses={200: shapes.LimitsSerializer, **refusals(404)})
    def get(self, request: Request, dag_id: int) -> Response:
        """Its options, its categories, the limits it shares, and what keeps nodes back now."""
        return Response(self.answer(request, dag_id))

    def answer(self, request: Request, which: int, done: Dag | None = None) -> Any:
        """The limits as they are now."""
        return _limits(selectors.find_dag(caller(request), which))


#: Views of actions that answer with something else than the DAG, by the names of the actions.
VIEWS: Mapping[str, type[ActionView]] = {
    "rescue": RescueAction,
    "resubmit": ResubmitAction,
    "grow": GrowAction,
    "change-limits": LimitsAction,
}


def _limits(dag: Dag) -> Any:
    room = room_now(dag)
    full = room is not None and room.nodes == 0
    answer = {
        "options": run_selectors.options_seen(dag),
        "categories": run_selectors.categories_of(dag),
        "shared": [limit.pk for limit in run_selectors.shared_limits_of(dag)],
        "room": {
            "reason": room.reason if room is not None and full else "",
            "categories": {
                name: room.reasons[name] for name, left in room.categories.items() if not left
            }
            if room is not None
            else {},
        },
    }
    return shapes.LimitsSerializer(answer).data
