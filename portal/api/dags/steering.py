"""Endpoints that steer a DAG: hold, halt, release, remove, rescue, and its limits."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.base import caller, refusals
from portal.api.dags import shapes
from portal.api.dags.submissions import SubmittedDagSerializer
from portal.api.problems import CONTENT_TYPE
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput
from wms.core.transitions import Applied
from wms.dags.models import Dag
from wms.dags.reading import run_selectors, selectors
from wms.dags.reading.obstacles import room_now
from wms.dags.rescue.rescue_files import read_resumption
from wms.dags.services import dags as services


class DagAction(ActionView):
    """One change of one DAG."""

    shape = shapes.DagDetailSerializer

    def answer(self, request: Request, which: int, done: Applied) -> Any:
        """The DAG. Raises Conflict if its state forbids the change."""
        dag = selectors.find_dag(caller(request), which)
        if not done.changed and self.action.api:
            raise Conflict(f"DAG {which} is {dag.state}: it cannot be {self.action.api.refused}.")
        return self.shape(dag).data


class RescueDag(APIView):
    """Run a DAG that has ended again."""

    @extend_schema(
        operation_id="dags_rescue",
        summary="Run a DAG that has ended again, from a rescue, a save point, or afresh",
        request=shapes.RescueRequestSerializer,
        responses={
            201: SubmittedDagSerializer,
            (400, CONTENT_TYPE): shapes.FaultyDagSerializer,
            **refusals(403, 404, 409),
        },
    )
    def post(self, request: Request, dag_id: int) -> Response:
        """Make a new DAG of the files as they are in the workspace now; needs a reason."""
        body = shapes.RescueRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given, user = body.validated_data, caller(request)
        dag = services.rescue_dag(
            dag_id,
            actor=Actor.person(user),
            reason=given["reason"],
            resumption=read_resumption(given["resume"], given["save_point"]),
            options=_object(given["options"], "options"),
        )
        answer = SubmittedDagSerializer(selectors.find_dag(user, dag.pk)).data
        return Response(answer, status=status.HTTP_201_CREATED)


class DagLimits(APIView):
    """The limits that a DAG is under."""

    @extend_schema(responses={200: shapes.LimitsSerializer, **refusals(404)})
    def get(self, request: Request, dag_id: int) -> Response:
        """Its options, its categories, the limits it shares, and what keeps nodes back now."""
        return _limits(selectors.find_dag(caller(request), dag_id))

    @extend_schema(
        operation_id="dags_change_limits",
        summary="Change limits of a DAG, also while it runs",
        request=shapes.ChangeLimitsSerializer,
        responses={200: shapes.LimitsSerializer, **refusals(400, 403, 404, 409)},
    )
    def post(self, request: Request, dag_id: int) -> Response:
        """Change those that are given; needs a reason. What is submitted stays so."""
        body = shapes.ChangeLimitsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user, given = caller(request), body.validated_data
        services.change_limits(
            dag_id,
            actor=Actor.person(user),
            reason=given["reason"],
            options=_object(given["options"], "options"),
            categories=_object(given["categories"], "categories"),
        )
        return _limits(selectors.find_dag(user, dag_id))


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput.of("must be a JSON object", field=name)
    return value


def _limits(dag: Dag) -> Response:
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
    return Response(shapes.LimitsSerializer(answer).data)
