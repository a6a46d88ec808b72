"""Endpoints of schedules: make, list, read, their times, and the actions on them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.actions import ActionView
from portal.api.base import ListView, caller, refusals
from portal.api.dags.shapes import FaultyDagSerializer
from portal.api.dags.submissions import read_submission
from portal.api.idempotency import once
from portal.api.problems import CONTENT_TYPE
from portal.api.schedules import shapes
from portal.api.uploads import TakesFiles
from portal.lists.filters import ScheduleFilter
from wms.core.actors import Actor
from wms.core.errors import Conflict
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import require_role
from wms.core.transitions import Applied
from wms.schedules import selectors
from wms.schedules.models import Schedule, ScheduleRun
from wms.schedules.services import ScheduleTerms, create_schedule

_REFUSED = {(400, CONTENT_TYPE): FaultyDagSerializer, **refusals(403, 409, 413, 429)}
_TERMS = ("name", "cron", "time_zone", "allows_overlap", "grace_s", "kept_runs")


class ScheduleList(TakesFiles, ListView):
    """Schedules, newest first."""

    queryset = Schedule.objects.none()
    serializer_class = shapes.ScheduleSerializer
    filterset_class = ScheduleFilter

    def get_queryset(self) -> QuerySet[Schedule]:
        """Everything that the caller may see."""
        return selectors.listed_schedules(caller(self.request))

    @once()
    @extend_schema(
        summary="Make a schedule, by which a DAG is submitted again and again",
        request={"multipart/form-data": shapes.ScheduleSubmissionSerializer},
        responses={201: shapes.ScheduleDetailSerializer, **_REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Check and store a DAG with its times; nothing is submitted before the first of them."""
        user = caller(request)
        require_role(Actor.person(user), Role.USER, "make schedules")
        # The whole body first, so that a slow sender occupies no worker.
        given = {name: request.data[name] for name in _TERMS if name in request.data}
        terms = shapes.TermsSerializer(data=given)
        terms.is_valid(raise_exception=True)
        with heavy_place(user):
            schedule = create_schedule(
                read_submission(request, further=_TERMS),
                ScheduleTerms(**terms.validated_data),
                owner=user,
                actor=Actor.person(user),
            )
        body = shapes.ScheduleDetailSerializer(selectors.find_schedule(user, schedule.pk)).data
        return Response(body, status=status.HTTP_201_CREATED)


class ScheduleDetail(RetrieveAPIView[Schedule]):
    """One schedule with what it submits."""

    queryset = Schedule.objects.none()
    serializer_class = shapes.ScheduleDetailSerializer
    lookup_url_kwarg = "schedule_id"

    def get_queryset(self) -> QuerySet[Schedule]:
        """Everything that the caller may see."""
        return selectors.listed_schedules(caller(self.request))


class ScheduleRunList(ListView):
    """The times of a schedule that have come, latest first."""

    queryset = ScheduleRun.objects.none()
    serializer_class = shapes.ScheduleRunSerializer

    def get_queryset(self) -> QuerySet[ScheduleRun]:
        """Runs that are kept, of the times that came."""
        found = selectors.find_schedule(caller(self.request), self.kwargs["schedule_id"])
        return selectors.runs_of(found)


class ScheduleAction(ActionView):
    """One change of one schedule."""

    shape = shapes.ScheduleDetailSerializer
    operations = "schedules"

    def answer(self, request: Request, which: int, done: Applied) -> Any:
        """The schedule. Raises Conflict if its state forbids the change."""
        schedule = selectors.find_schedule(caller(request), which)
        if not done.changed and self.object_action.api:
            raise Conflict(
                f"Schedule {which} is {schedule.state}: it cannot be "
                f"{self.object_action.api.refused}."
            )
        return self.shape(schedule).data
