"""Pilots and what they ran."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.generics import RetrieveAPIView

from portal.api import serializers
from portal.api.views.base import ListView, caller
from portal.filters import PilotFilter
from wms.jobs.models import Attempt
from wms.jobs.selectors import attempts_of_pilot
from wms.pilots import selectors
from wms.pilots.models import Pilot, PilotEvent


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


class PilotEventList(ListView):
    """What happened to a pilot, newest first."""

    queryset = PilotEvent.objects.none()
    serializer_class = serializers.PilotEventSerializer

    def get_queryset(self) -> QuerySet[PilotEvent]:
        """The pilot's events."""
        return selectors.find_pilot(caller(self.request), self.kwargs["uuid"]).events.all()


class PilotAttemptList(ListView):
    """The jobs that a pilot was given, newest first."""

    queryset = Attempt.objects.none()
    serializer_class = serializers.PilotAttemptSerializer

    def get_queryset(self) -> QuerySet[Attempt]:
        """The attempts in this pilot."""
        return attempts_of_pilot(selectors.find_pilot(caller(self.request), self.kwargs["uuid"]).pk)
