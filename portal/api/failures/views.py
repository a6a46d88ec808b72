"""Endpoints of failure groups: list, detail, and mute, resolve, reopen, categorise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import ListView, caller, refusals
from portal.api.failures.shapes import (
    CategoriseSerializer,
    FailureGroupDetailSerializer,
    FailureGroupSerializer,
)
from portal.api.shapes import ReasonSerializer
from portal.lists.failure_filters import FailureGroupFilter
from wms.core.actors import Actor
from wms.core.errors import Conflict
from wms.core.models import User
from wms.core.transitions import Applied
from wms.failures import services
from wms.failures.models import FailureGroup
from wms.failures.selectors import Window, find_group, total_at_sites, trends_of, visible_groups

_WITHIN = OpenApiParameter(
    "within", enum=[window.value for window in Window], description="The time that is counted."
)


@extend_schema(responses={200: FailureGroupSerializer, **refusals(400)})
class FailureGroupList(ListView):
    """Groups of failures with one cause, the latest made first.

    Those that happened in the last day, unless `within` says otherwise.
    """

    queryset = FailureGroup.objects.none()
    serializer_class = FailureGroupSerializer
    filterset_class = FailureGroupFilter

    def get_queryset(self) -> QuerySet[FailureGroup]:
        """Return the groups that the caller may see."""
        return visible_groups(caller(self.request))


class FailureGroupDetail(APIView):
    """One group."""

    @extend_schema(
        parameters=[_WITHIN], responses={200: FailureGroupDetailSerializer, **refusals(400, 404)}
    )
    def get(self, request: Request, group_id: int) -> Response:
        """Its message, its counts by site, and what was decided about it."""
        text = request.query_params.get("within", Window.ALL.value)
        if text not in [window.value for window in Window]:
            known = ", ".join(window.value for window in Window)
            raise ValidationError({"within": f"must be one of {known}"})
        return _detailed(find_group(caller(request), group_id), Window(text))


def _detailed(group: FailureGroup, window: Window = Window.ALL) -> Response:
    now = timezone.now()
    context = {
        "sites": total_at_sites(group, window, now=now),
        "trend": trends_of([group.pk], now=now)[group.pk],
    }
    return Response(FailureGroupDetailSerializer(group, context=context).data)


class _Decision(APIView):
    """One decision about one group, with a reason."""

    verb: str
    body_class: type[ReasonSerializer] = ReasonSerializer

    def decide(self, request: Request, group_id: int, change: Callable[..., Applied]) -> Response:
        """Carry it out and answer with the group. Raises Conflict if its state forbids it."""
        body = self.body_class(data=request.data)
        body.is_valid(raise_exception=True)
        user: User = caller(request)
        group = find_group(user, group_id)
        given: dict[str, Any] = body.validated_data
        applied = change([group.pk], actor=Actor.person(user), **given)
        group = find_group(user, group_id)
        if not applied.changed:
            raise Conflict(f"Failure group {group.pk} is {group.state}: one cannot {self.verb} it.")
        return _detailed(group)


def _decision(
    summary: str, body: type[ReasonSerializer] = ReasonSerializer
) -> Callable[[Any], Any]:
    return extend_schema(
        summary=summary,
        request=body,
        responses={200: FailureGroupDetailSerializer, **refusals(400, 403, 404, 409)},
    )


class MuteFailureGroup(_Decision):
    """Mute a group."""

    verb = "mute"

    @_decision("Do not bring a failure group up any more; it goes on counting")
    def post(self, request: Request, group_id: int) -> Response:
        """Mute it; needs a reason."""
        return self.decide(request, group_id, services.mute_groups)


class ResolveFailureGroup(_Decision):
    """Resolve a group."""

    verb = "resolve"

    @_decision("Say that the cause is removed; if it happens again the group has regressed")
    def post(self, request: Request, group_id: int) -> Response:
        """Resolve it; needs a reason."""
        return self.decide(request, group_id, services.resolve_groups)


class ReopenFailureGroup(_Decision):
    """Reopen a group."""

    verb = "reopen"

    @_decision("Let a failure group be looked at again")
    def post(self, request: Request, group_id: int) -> Response:
        """Reopen it; needs a reason."""
        return self.decide(request, group_id, services.reopen_groups)


class CategoriseFailureGroup(_Decision):
    """Categorise a group."""

    verb = "categorise"
    body_class = CategoriseSerializer

    @_decision("Say where the cause of a failure group lies", CategoriseSerializer)
    def post(self, request: Request, group_id: int) -> Response:
        """Give it the category; needs a reason."""
        return self.decide(request, group_id, services.categorise_groups)
