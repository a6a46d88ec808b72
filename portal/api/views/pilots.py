"""Endpoints of pilots: list, detail, log, drain, remove, checks, suspected nodes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.log_texts import PLACE_PARAMETERS, send_part
from portal.api.shapes import common as serializers
from portal.api.shapes.sites import SuspectedNodeSerializer
from portal.api.views.base import (
    AcceptsAnything,
    ListView,
    caller,
    refusals,
    wants_all,
)
from portal.lists.filters import PilotFilter
from portal.shared.ranged_downloads import send_in_pieces
from portal.shared.readable_logs import stored_log_of_pilot
from wms.core.actors import Actor
from wms.jobs.models import Attempt
from wms.jobs.selectors import attempts_of_pilot
from wms.pilots import selectors
from wms.pilots.models import Pilot, PilotCheck, PilotEvent
from wms.pilots.monitoring.suspects import clear_node, find_suspect, suspects_at
from wms.pilots.program.checks import FAILURES_TOLD_FOR, checks_of_pilot, failed_checks_at
from wms.pilots.protocol.logs import log_text
from wms.pilots.suspect_models import SuspectedNode
from wms.sites.selectors import find_visible_site


class PilotList(ListView):
    """Pilots, newest first."""

    queryset = Pilot.objects.none()
    serializer_class = serializers.PilotSerializer
    filterset_class = PilotFilter

    def get_queryset(self) -> QuerySet[Pilot]:
        """Everything that the caller may see."""
        return selectors.listed_pilots(caller(self.request))


class PilotDetail(RetrieveAPIView[Pilot]):
    """One pilot."""

    queryset = Pilot.objects.none()
    serializer_class = serializers.PilotDetailSerializer
    lookup_field = "uuid"

    def get_queryset(self) -> QuerySet[Pilot]:
        """Everything that the caller may see."""
        return selectors.detailed_pilots(caller(self.request))


class PilotLogText(APIView):
    """What a pilot has sent of its log."""

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

    shape = serializers.PilotDetailSerializer

    def answer(self, request: Request, which: UUID, done: Pilot) -> Any:
        """The pilot."""
        return self.shape(selectors.find_pilot(caller(request), which)).data


class PilotEventList(ListView):
    """What happened to a pilot, newest first."""

    queryset = PilotEvent.objects.none()
    serializer_class = serializers.PilotEventSerializer

    def get_queryset(self) -> QuerySet[PilotEvent]:
        """The pilot's events."""
        return selectors.find_pilot(caller(self.request), self.kwargs["uuid"]).events.all()


class PilotCheckList(ListView):
    """What checks of a pilot's node found, newest first."""

    queryset = PilotCheck.objects.none()
    serializer_class = serializers.NodeCheckSerializer

    def get_queryset(self) -> QuerySet[PilotCheck]:
        """The pilot's results."""
        return checks_of_pilot(selectors.find_pilot(caller(self.request), self.kwargs["uuid"]))


class SiteFailedCheckList(ListView):
    """Checks that nodes of a site failed within a day, newest first."""

    queryset = PilotCheck.objects.none()
    serializer_class = serializers.FailedCheckSerializer

    def get_queryset(self) -> QuerySet[PilotCheck]:
        """The site's failures."""
        site = find_visible_site(caller(self.request), self.kwargs["name"])
        return failed_checks_at(site, since=timezone.now() - FAILURES_TOLD_FOR)


class SiteSuspectedNodeList(ListView):
    """Worker nodes of a site that are suspected of failing jobs now, newest first."""

    queryset = SuspectedNode.objects.none()
    serializer_class = SuspectedNodeSerializer

    def get_queryset(self) -> QuerySet[SuspectedNode]:
        """The site's suspected nodes."""
        site = find_visible_site(caller(self.request), self.kwargs["name"])
        return suspects_at(site).order_by("-pk")


class ClearSuspectedNode(GenericAPIView[SuspectedNode]):
    """End the suspicion of a worker node."""

    queryset = SuspectedNode.objects.none()
    serializer_class = SuspectedNodeSerializer

    @extend_schema(
        summary="Suspect a worker node no longer",
        request=serializers.ReasonSerializer,
        responses={200: SuspectedNodeSerializer, **refusals(400, 403, 404, 409)},
    )
    def post(self, request: Request, suspect_id: int) -> Response:
        """Clear it; needs a reason. It gets jobs as any other node, and a clean slate."""
        body = serializers.ReasonSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        find_suspect(caller(request), suspect_id)
        row = clear_node(
            suspect_id,
            actor=Actor.person(caller(request)),
            reason=body.validated_data["reason"],
            now=timezone.now(),
        )
        return Response(self.get_serializer(row).data)


class PilotAttemptList(ListView):
    """The jobs that a pilot was given, newest first."""

    queryset = Attempt.objects.none()
    serializer_class = serializers.PilotAttemptSerializer

    def get_queryset(self) -> QuerySet[Attempt]:
        """The attempts in this pilot."""
        return attempts_of_pilot(selectors.find_pilot(caller(self.request), self.kwargs["uuid"]).pk)
