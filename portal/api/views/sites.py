"""Sites with their queues and ads."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.generics import RetrieveAPIView

from portal.api import serializers
from portal.api.pagination import ByName
from portal.api.views.base import ListView, caller
from portal.filters import SiteFilter
from wms.sites.models import Site
from wms.sites.selectors import listed_sites


class SiteList(ListView):
    """All sites by name."""

    queryset = Site.objects.none()
    serializer_class = serializers.SiteSerializer
    filterset_class = SiteFilter
    pagination_class = ByName

    def get_queryset(self) -> QuerySet[Site]:
        """Everything that the caller may see."""
        return listed_sites(caller(self.request))


class SiteDetail(RetrieveAPIView[Site]):
    """One site with its expressions and the ad it was last published under."""

    queryset = Site.objects.none()
    serializer_class = serializers.SiteDetailSerializer
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Site]:
        """Everything that the caller may see."""
        return listed_sites(caller(self.request))
