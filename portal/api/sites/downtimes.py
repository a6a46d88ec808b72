"""Endpoints of downtimes: list, enter at one or several sites, change, cancel."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import ListView, caller, refusals
from portal.api.idempotency import once
from portal.api.sites import shapes
from portal.lists.downtime_filters import DowntimeFilter
from wms.core.actors import Actor
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.selectors import find_downtime, listed_downtimes
from wms.sites.downtimes.services import (
    DowntimeTerms,
    add_downtime,
    add_downtimes,
    cancel_downtimes,
    change_downtime,
)
from wms.sites.selectors import find_visible_site


class EveryDowntime(ListView):
    """The downtimes of all sites, the last entered first."""

    queryset = Downtime.objects.none()
    serializer_class = shapes.DowntimeSerializer
    filterset_class = DowntimeFilter

    def get_queryset(self) -> QuerySet[Downtime]:
        """Downtimes, past and cancelled ones included."""
        return listed_downtimes(caller(self.request))

    @once()
    @extend_schema(
        summary="Enter a downtime at several sites",
        request=shapes.DowntimeOfSitesSerializer,
        examples=[
            OpenApiExample(
                "A week-end",
                {
                    "sites": ["UW", "CERN"],
                    "start": "2027-01-09T06:00:00Z",
                    "end": "2027-01-10T18:00:00Z",
                    "reason": "new switches",
                },
                request_only=True,
            )
        ],
        responses={
            201: shapes.DowntimeSerializer(many=True),
            **refusals(400, 403, 404),
        },
    )
    def post(self, request: Request) -> Response:
        """At all of them, or at none. From `lead_time_s` before its start they take no new DAG."""
        body = shapes.DowntimeOfSitesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        terms = dict(body.validated_data)
        actor = Actor.person(caller(request))
        entered = add_downtimes(terms.pop("sites"), **terms, actor=actor, now=timezone.now())
        found = listed_downtimes(caller(request)).filter(pk__in=[each.pk for each in entered])
        answer = shapes.DowntimeSerializer(found.order_by("site__name"), many=True).data
        return Response(answer, status=status.HTTP_201_CREATED)


class DowntimeList(ListView):
    """The downtimes of a site, the last entered first."""

    queryset = Downtime.objects.none()
    serializer_class = shapes.DowntimeSerializer

    def get_queryset(self) -> QuerySet[Downtime]:
        """Downtimes, past and cancelled ones included."""
        user = caller(self.request)
        return listed_downtimes(user).filter(site=find_visible_site(user, self.kwargs["name"]))

    @once()
    @extend_schema(
        summary="Enter a downtime",
        request=shapes.DowntimeTermsSerializer,
        responses={
            201: shapes.DowntimeSerializer,
            **refusals(400, 403, 404),
        },
    )
    def post(self, request: Request, name: str) -> Response:
        """From `lead_time_s` before its start the site takes no new DAG, then no pilot either."""
        body = shapes.DowntimeTermsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        actor = Actor.person(caller(request))
        downtime = add_downtime(name, **body.validated_data, actor=actor, now=timezone.now())
        return Response(_serialized(request, downtime.pk), status=status.HTTP_201_CREATED)


class DowntimeDetail(RetrieveAPIView[Downtime]):
    """One downtime."""

    queryset = Downtime.objects.none()
    serializer_class = shapes.DowntimeSerializer
    lookup_url_kwarg = "downtime_id"

    def get_queryset(self) -> QuerySet[Downtime]:
        """Everything that the caller may see."""
        return listed_downtimes(caller(self.request))

    @extend_schema(
        summary="Change a downtime",
        request=shapes.DowntimeTermsSerializer,
        responses={
            200: shapes.DowntimeSerializer,
            **refusals(400, 403, 404, 409),
        },
    )
    def put(self, request: Request, downtime_id: int) -> Response:
        """Give it other times, another lead time or another reason. It stays with its site."""
        body = shapes.DowntimeTermsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        wanted = DowntimeTerms(**{"lead_time_s": 0, **body.validated_data})
        actor = Actor.person(caller(request))
        change_downtime(downtime_id, terms=wanted, actor=actor, now=timezone.now())
        return Response(_serialized(request, downtime_id))

    @extend_schema(
        summary="Cancel a downtime",
        parameters=[OpenApiParameter("reason", str, description="Why; kept with the downtime.")],
        responses={204: None, **refusals(403, 404, 409)},
    )
    def delete(self, request: Request, downtime_id: int) -> Response:
        """One that has begun ends now."""
        actor, reason = Actor.person(caller(request)), request.query_params.get("reason", "")
        cancel_downtimes([downtime_id], actor=actor, now=timezone.now(), reason=reason[:2000])
        return Response(status=status.HTTP_204_NO_CONTENT)


def _serialized(request: Request, downtime_id: int) -> dict[str, object]:
    downtime = find_downtime(caller(request), downtime_id)
    return dict(shapes.DowntimeSerializer(downtime).data)
