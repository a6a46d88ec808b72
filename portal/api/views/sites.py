"""Endpoints of sites: list, detail, events, ban, drain, unban."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.pagination import ByName
from portal.api.shapes import common as serializers
from portal.api.shapes import sites as site_serializers
from portal.api.views.base import ListView, caller, refusals
from portal.lists.filters import NamedSiteFilter
from wms.core.actors import Actor
from wms.sites import services
from wms.sites.models import Site, SiteEvent
from wms.sites.selectors import events_of_site, find_visible_site, listed_sites
from wms.sites.standing import Standing, standings


class _Sites(GenericAPIView[Site]):
    """Sites with their standings."""

    queryset = Site.objects.none()

    def get_queryset(self) -> QuerySet[Site]:
        """Everything that the caller may see."""
        return listed_sites(caller(self.request))

    @cached_property
    def standings(self) -> Mapping[int, Standing]:
        """The standing of every site, found out once for a request."""
        return standings(timezone.now())


class SiteList(_Sites, ListView):
    """All sites by name."""

    serializer_class = site_serializers.SiteSerializer
    filterset_class = NamedSiteFilter
    pagination_class = ByName


class SiteDetail(_Sites, RetrieveAPIView[Site]):
    """One site with its expressions and the ad it was last published under."""

    serializer_class = site_serializers.SiteDetailSerializer
    lookup_field = "name"


class SiteEventList(ListView):
    """What happened to a site, newest first."""

    queryset = SiteEvent.objects.none()
    serializer_class = serializers.SiteEventSerializer

    def get_queryset(self) -> QuerySet[SiteEvent]:
        """The site's events."""
        return events_of_site(find_visible_site(caller(self.request), self.kwargs["name"]))


class _Steering(_Sites):
    """One decision about one site, with a reason."""

    serializer_class = site_serializers.SiteDetailSerializer
    lookup_field = "name"

    def steer(self, request: Request, name: str, change: Callable[..., Site]) -> Response:
        """Carry the decision out and answer with the site."""
        body = serializers.ReasonSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        actor = Actor.person(caller(request))
        change(name, actor=actor, reason=body.validated_data["reason"])
        return Response(self.get_serializer(self.get_object()).data)


def _steering_schema(summary: str) -> Callable[[Any], Any]:
    return extend_schema(
        summary=summary,
        request=serializers.ReasonSerializer,
        responses={
            200: site_serializers.SiteDetailSerializer,
            **refusals(400, 403, 404, 409),
        },
    )


class BanSite(_Steering):
    """Ban a site."""

    @_steering_schema("Give a site nothing new: no DAG, no pilot")
    def post(self, request: Request, name: str) -> Response:
        """Ban it; needs a reason. What runs there goes on."""
        return self.steer(request, name, services.ban_site)


class DrainSite(_Steering):
    """Drain a site."""

    @_steering_schema("Give a site no new DAG")
    def post(self, request: Request, name: str) -> Response:
        """Drain it; needs a reason. DAGs that are bound to it go on and get pilots."""
        return self.steer(request, name, services.drain_site)


class UnbanSite(_Steering):
    """Open a site."""

    @_steering_schema("Open a banned or draining site again")
    def post(self, request: Request, name: str) -> Response:
        """Open it; needs a reason."""
        return self.steer(request, name, services.unban_site)
