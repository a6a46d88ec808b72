"""Endpoints of worker nodes of a site: failed node checks, suspected nodes, clearing a suspect."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request

from portal.api.actions import ActionView
from portal.api.base import ListView, caller
from portal.api.sites.shapes import FailedCheckSerializer, SuspectedNodeSerializer
from wms.pilots.models import PilotCheck
from wms.pilots.monitoring.suspects import as_seen, find_suspect, suspects_at
from wms.pilots.program.checks import FAILURES_TOLD_FOR, failed_checks_at
from wms.pilots.suspect_models import SuspectedNode
from wms.sites.selectors import find_visible_site


class SiteFailedCheckList(ListView):
    """Checks that nodes of a site failed within a day, newest first."""

    queryset = PilotCheck.objects.none()
    serializer_class = FailedCheckSerializer

    def get_queryset(self) -> QuerySet[PilotCheck]:
        """The site's failures."""
        user = caller(self.request)
        site = find_visible_site(user, self.kwargs["name"])
        return failed_checks_at(user, site, since=timezone.now() - FAILURES_TOLD_FOR)


class SiteSuspectedNodeList(ListView):
    """Worker nodes of a site that are suspected of failing jobs now, newest first."""

    queryset = SuspectedNode.objects.none()
    serializer_class = SuspectedNodeSerializer

    def get_queryset(self) -> QuerySet[SuspectedNode]:
        """The site's suspected nodes."""
        site = find_visible_site(caller(self.request), self.kwargs["name"])
        return suspects_at(site).order_by("-pk")

    def paginate_queryset(self, queryset: Any) -> list[SuspectedNode] | None:
        """A page of them, each with what the caller may see of it."""
        rows = super().paginate_queryset(queryset)
        return None if rows is None else as_seen(caller(self.request), rows)


class SuspectedNodeAction(ActionView):
    """One decision about one suspected worker node."""

    shape = SuspectedNodeSerializer

    def check(self, request: Request, which: int) -> None:
        """Raise NotFound for a suspicion that the caller may not see."""
        find_suspect(caller(request), which)

    def answer(self, request: Request, which: int, done: SuspectedNode) -> Any:
        """The suspicion, which is over."""
        [seen] = as_seen(caller(request), [done])
        return self.shape(seen).data
