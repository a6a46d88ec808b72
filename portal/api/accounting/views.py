"""Endpoints of submitters, accounting groups and concurrency limits: lists."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.accounting.shapes import (
    GroupSerializer,
    LimitSerializer,
    SubmitterSerializer,
)
from portal.api.base import ListView, caller
from portal.api.pagination import ByName, NewestFirst
from wms.accounting import selectors
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.dags.negotiation.usage import uses_by_limit


class _ByPlace(NewestFirst):
    """Submitters, best first."""

    ordering = "place"


class _ByLimitName(ByName):
    """Limits, whose names may contain a star."""

    position = re.compile(r"[a-z0-9_.*]{1,64}")


class SubmitterList(ListView):
    """All submitters in the order in which they are served."""

    queryset = Submitter.objects.none()
    serializer_class = SubmitterSerializer
    pagination_class = _ByPlace

    def get_queryset(self) -> QuerySet[Submitter]:
        """Everything that the caller may see."""
        return selectors.visible_submitters(caller(self.request))


class GroupList(ListView):
    """All accounting groups by name."""

    queryset = AccountingGroup.objects.none()
    serializer_class = GroupSerializer
    pagination_class = ByName

    def get_queryset(self) -> QuerySet[AccountingGroup]:
        """Everything that the caller may see."""
        return selectors.visible_groups(caller(self.request))


class LimitList(ListView):
    """All concurrency limits by name, with what the running DAGs take of them."""

    queryset = ConcurrencyLimit.objects.none()
    serializer_class = LimitSerializer
    pagination_class = _ByLimitName

    def get_queryset(self) -> QuerySet[ConcurrencyLimit]:
        """Everything that the caller may see."""
        return selectors.visible_limits(caller(self.request))

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer with a page; what is used is looked up once."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        uses = uses_by_limit(caller(request))
        lines = LimitSerializer(page, many=True, context={"uses": uses})
        return self.get_paginated_response(lines.data)
