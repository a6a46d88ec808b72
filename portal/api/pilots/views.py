"""Endpoints of pilots: list, detail, log, events, attempts, node checks, and actions.

The actions are to drain and to remove.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.base import (
    AcceptsAnything,
    ListView,
    caller,
    refusals,
    wants_all,
)
from portal.api.log_responses import PLACE_PARAMETERS, send_part
from portal.api.pilots import shapes
from portal.lists.filters import PilotFilter
from portal.shared.ranged_downloads import send_in_pieces
from portal.shared.readable_logs import stored_log_of_pilot
from wms.jobs.models import Attempt
from wms.jobs.selectors import attempts_of_pilot
from wms.pilots import selectors
from wms.pilots.models import Pilot, PilotCheck, PilotEvent
from wms.pilots.program.checks import checks_of_pilot
from wms.pilots.protocol.logs import log_text


class PilotList(ListView):
    """Pilots, newest first."""

    queryset = Pilot.objects.none()
    serializer_class = shapes.PilotSerializer
    filterset_class = PilotFilter

    def get_queryset(self) -> QuerySet[Pilot]:
        """Everything that the caller may see."""
        return selectors.listed_pilots(caller(self.request))


class PilotDetail(RetrieveAPIView[Pilot]):
    """One pilot."""

    queryset = Pilot.objects.none()
    serializer_class = shapes.PilotDetailSerializer
    lookup_field = "uuid"

    def get_queryset(self) -> QuerySet[Pilot]:
        """Everything that the caller may see."""
        return selectors.detailed_pilots(caller(self.request))


class PilotLogText(APIView):
    """Log of a pilot, as far as it has been sent."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        parameters=PLACE_PARAMETERS,
        responses={
            (200, "text/plain"): OpenApiTypes.STR,
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            **refusals(400, 404),
        },
    )
    def get(self, request: Request, uuid: UUID) -> HttpResponseBase:
        """Send the last 64 KiB, another part, or all; while the pilot runs and after its end."""
        pilot = selectors.find_pilot(caller(request), uuid)
        stored = selectors.find_stored_log(pilot)
        if wants_all(request):
            name = f"pilot-{stored.pk}.log.txt"
            return send_in_pieces(request, log_text(stored), name=name)
        return send_part(request, stored_log_of_pilot(pilot, stored))


class PilotAction(ActionView):
    """One change of one pilot."""

    shape = shapes.PilotDetailSerializer

    def check(self, request: Request, which: UUID) -> None:
        """Raise NotFound for a pilot that the caller may not see."""
        selectors.find_pilot(caller(request), which)

    def answer(self, request: Request, which: UUID, done: Pilot) -> Any:
        """The pilot."""
        return self.shape(selectors.find_pilot(caller(request), which)).data


class PilotEventList(ListView):
    """Events of a pilot, newest first."""

    queryset = PilotEvent.objects.none()
    serializer_class = shapes.PilotEventSerializer

    def get_queryset(self) -> QuerySet[PilotEvent]:
        """The pilot's events."""
        return selectors.find_pilot(caller(self.request), self.kwargs["uuid"]).events.all()


class PilotCheckList(ListView):
    """Results of the checks of a pilot's node, newest first."""

    queryset = PilotCheck.objects.none()
    serializer_class = shapes.NodeCheckSerializer

    def get_queryset(self) -> QuerySet[PilotCheck]:
        """The pilot's results."""
        return checks_of_pilot(selectors.find_pilot(caller(self.request), self.kwargs["uuid"]))


class PilotAttemptList(ListView):
    """The jobs that a pilot was given, newest first."""

    queryset = Attempt.objects.none()
    serializer_class = shapes.PilotAttemptSerializer

    def get_queryset(self) -> QuerySet[Attempt]:
        """The attempts in this pilot."""
        user = caller(self.request)
        return attempts_of_pilot(user, selectors.find_pilot(user, self.kwargs["uuid"]).pk)
