"""Downtimes of sites: listed, entered, cancelled."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api import site_serializers
from portal.api.views.base import ListView, caller, refusals
from wms.core.actors import Actor
from wms.sites.downtimes import add_downtime, cancel_downtimes
from wms.sites.models import Downtime
from wms.sites.selectors import downtimes_of_site, find_visible_site, visible_downtimes


class DowntimeList(ListView):
    """The downtimes of a site, the last entered first."""

    queryset = Downtime.objects.none()
    serializer_class = site_serializers.DowntimeSerializer

    def get_queryset(self) -> QuerySet[Downtime]:
        """Those that are over or cancelled included."""
        return downtimes_of_site(find_visible_site(caller(self.request), self.kwargs["name"]))

    @extend_schema(
        summary="Enter a downtime",
        responses={
            201: site_serializers.DowntimeSerializer,
            **refusals(400, 403, 404),
        },
    )
    def post(self, request: Request, name: str) -> Response:
        """From `lead_time_s` before its start the site takes no new DAG, then no pilot either."""
        body = site_serializers.DowntimeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        actor = Actor.person(caller(request))
        downtime = add_downtime(name, **body.validated_data, actor=actor, now=timezone.now())
        answer = site_serializers.DowntimeSerializer(downtime).data
        return Response(answer, status=status.HTTP_201_CREATED)


class DowntimeDetail(RetrieveAPIView[Downtime]):
    """One downtime."""

    queryset = Downtime.objects.none()
    serializer_class = site_serializers.DowntimeSerializer
    lookup_url_kwarg = "downtime_id"

    def get_queryset(self) -> QuerySet[Downtime]:
        """Everything that the caller may see."""
        return visible_downtimes(caller(self.request))

    @extend_schema(summary="Cancel a downtime", responses={204: None, **refusals(403, 404, 409)})
    def delete(self, request: Request, downtime_id: int) -> Response:
        """One that has begun ends now."""
        actor = Actor.person(caller(request))
        cancel_downtimes([downtime_id], actor=actor, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
