"""Endpoints of the worker nodes of a site: failed checks, suspected nodes, clearing one."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import ListView, caller, refusals
from portal.api.shapes import ReasonSerializer
from portal.api.sites.shapes import FailedCheckSerializer, SuspectedNodeSerializer
from wms.core.actors import Actor
from wms.pilots.models import PilotCheck
from wms.pilots.monitoring.suspects import clear_node, find_suspect, suspects_at
from wms.pilots.program.checks import FAILURES_TOLD_FOR, failed_checks_at
from wms.pilots.suspect_models import SuspectedNode
from wms.sites.selectors import find_visible_site


class SiteFailedCheckList(ListView):
    """Checks that nodes of a site failed within a day, newest first."""

    queryset = PilotCheck.objects.none()
    serializer_class = FailedCheckSerializer

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
        request=ReasonSerializer,
        responses={200: SuspectedNodeSerializer, **refusals(400, 403, 404, 409)},
    )
    def post(self, request: Request, suspect_id: int) -> Response:
        """Clear it; needs a reason. It gets jobs as any other node, and a clean slate."""
        body = ReasonSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        find_suspect(caller(request), suspect_id)
        row = clear_node(
            suspect_id,
            actor=Actor.person(caller(request)),
            reason=body.validated_data["reason"],
            now=timezone.now(),
        )
        return Response(self.get_serializer(row).data)
