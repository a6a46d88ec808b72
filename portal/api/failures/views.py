"""Endpoints of failure groups: list, detail, and the actions mute, resolve, reopen, categorise.

The list has groups with failures in the last day, unless another time is asked for.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.base import ListView, caller, refusals
from portal.api.failures.shapes import (
    FailureGroupDetailSerializer,
    FailureGroupSerializer,
)
from portal.lists.failure_filters import FailureGroupFilter
from wms.core.errors import Conflict
from wms.core.models import User
from wms.core.transitions import Applied
from wms.failures.models import FailureGroup
from wms.failures.seen import as_seen
from wms.failures.selectors import Window, find_group, trends_of, visible_groups
from wms.failures.site_counts import total_at_sites

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

    def paginate_queryset(self, queryset: Any) -> list[FailureGroup] | None:
        """A page of them, each with what the caller may see of it."""
        rows = super().paginate_queryset(queryset)
        return None if rows is None else as_seen(caller(self.request), rows)


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
        return Response(_detailed(caller(request), group_id, Window(text)))


def _detailed(user: User, group_id: int, window: Window = Window.ALL) -> Any:
    now, group = timezone.now(), find_group(user, group_id)
    context = {
        "sites": total_at_sites(user, group, window, now=now),
        "trend": trends_of(user, [group.pk], now=now)[group.pk],
    }
    return FailureGroupDetailSerializer(group, context=context).data


class FailureAction(ActionView):
    """One decision about one group."""

    shape = FailureGroupDetailSerializer

    def check(self, request: Request, which: int) -> None:
        """Raise NotFound for a group that the caller may not see."""
        find_group(caller(request), which)

    def answer(self, request: Request, which: int, done: Applied) -> Any:
        """The group. Raises Conflict if its state forbids the decision."""
        user = caller(request)
        if not done.changed:
            group, verb = find_group(user, which), self.object_action.name
            raise Conflict(f"Failure group {group.pk} is {group.state}: one cannot {verb} it.")
        return _detailed(user, which)
