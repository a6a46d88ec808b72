"""Endpoints of accounting groups: list, make, change, delete."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView, get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.accounting.shapes import GroupSerializer
from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.pagination import ByName
from wms.accounting.models import AccountingGroup
from wms.accounting.selectors import visible_groups
from wms.accounting.services import delete_group, save_group
from wms.core.actors import Actor


class GroupList(ListView):
    """All accounting groups by name."""

    queryset = AccountingGroup.objects.none()
    serializer_class = GroupSerializer
    pagination_class = ByName

    def get_queryset(self) -> QuerySet[AccountingGroup]:
        """Everything that the caller may see."""
        return visible_groups(caller(self.request))

    @once()
    @extend_schema(
        summary="Make an accounting group",
        parameters=[WHY],
        responses={201: GroupSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """Its parent, if its name has a point, has to be there."""
        answer = _saved(request, AccountingGroup())
        return Response(answer, status=status.HTTP_201_CREATED)


class GroupDetail(RetrieveAPIView[AccountingGroup]):
    """One accounting group."""

    queryset = AccountingGroup.objects.none()
    serializer_class = GroupSerializer
    lookup_field = "name"
    lookup_url_kwarg = "group"

    def get_queryset(self) -> QuerySet[AccountingGroup]:
        """Everything that the caller may see."""
        return visible_groups(caller(self.request))

    @extend_schema(
        summary="Set an accounting group anew",
        parameters=[WHY],
        request=GroupSerializer,
        responses={200: GroupSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, group: str) -> Response:
        """All of it; the name stays the same, and the members unless they are given."""
        return Response(_saved(request, self.get_object()))

    @extend_schema(
        summary="Delete an accounting group",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404, 409)},
    )
    def delete(self, request: Request, group: str) -> Response:
        """One in whose name something was submitted is refused: take its members out instead."""
        delete_group(self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _saved(request: Request, group: AccountingGroup) -> dict[str, object]:
    """The group as it is stored now."""
    body = GroupSerializer(group, data=request.data)
    body.is_valid(raise_exception=True)
    values = dict(body.validated_data)
    members = values.pop("members", None)
    for name, value in values.items():
        setattr(group, name, value)
    user = caller(request)
    save_group(group, actor=Actor.person(user), reason=why_of(request), members=members)
    stored = get_object_or_404(visible_groups(user), pk=group.pk)
    return dict(GroupSerializer(stored).data)
