"""Endpoints of sites: list, detail, events, and the actions ban, drain, unban."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import cached_property
from rest_framework.generics import GenericAPIView, RetrieveAPIView
from rest_framework.request import Request

from portal.api.actions import ActionView
from portal.api.base import ListView, caller
from portal.api.pagination import ByName
from portal.api.sites import shapes
from portal.lists.filters import NamedSiteFilter
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

    serializer_class = shapes.SiteSerializer
    filterset_class = NamedSiteFilter
    pagination_class = ByName


class SiteDetail(_Sites, RetrieveAPIView[Site]):
    """One site with its expressions and the ad it was last published under."""

    serializer_class = shapes.SiteDetailSerializer
    lookup_field = "name"


class SiteEventList(ListView):
    """Events of a site, newest first."""

    queryset = SiteEvent.objects.none()
    serializer_class = shapes.SiteEventSerializer

    def get_queryset(self) -> QuerySet[SiteEvent]:
        """The site's events."""
        return events_of_site(find_visible_site(caller(self.request), self.kwargs["name"]))


class SiteAction(ActionView, _Sites):
    """One decision about one site."""

    serializer_class = shape = shapes.SiteDetailSerializer
    lookup_field = "name"

    def answer(self, request: Request, which: str, done: Site) -> Any:
        """The site."""
        return self.get_serializer(self.get_object()).data
