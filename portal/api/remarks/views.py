"""Endpoints of the shift log: list, one entry, a new one; and remarks about one subject.

The actions on a subject, such as note or acknowledge, come from the registry of actions.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.actions import ActionView
from portal.api.base import ListView, caller, refusals
from portal.api.idempotency import once
from portal.api.remarks.shapes import LogEntrySerializer, RemarkSerializer
from portal.lists.remark_filters import RemarkFilter
from wms.actions.remarks import REMARK_ACTIONS
from wms.core.actors import Actor
from wms.core.errors import Conflict
from wms.remarks.models import Remark
from wms.remarks.selectors import find_remark, visible_remarks
from wms.remarks.services import Written, write_log


class RemarkList(ListView):
    """Entries of the shift log, the latest first: those about what you may see."""

    queryset = Remark.objects.none()
    serializer_class = RemarkSerializer
    filterset_class = RemarkFilter

    def get_queryset(self) -> QuerySet[Remark]:
        """Return the entries that the caller may read."""
        return visible_remarks(caller(self.request))

    @once()
    @extend_schema(
        operation_id="remarks_create",
        summary="Write into the shift log",
        request=LogEntrySerializer,
        responses={201: RemarkSerializer, **refusals(400, 403, 409)},
    )
    def post(self, request: Request) -> Response:
        """An entry that is about no DAG, site or failure. Shifters and above; nothing changes."""
        body = LogEntrySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller(request)
        remark = write_log(actor=Actor.person(user), **body.validated_data)
        return _made(request, remark.pk)


class RemarkDetail(RetrieveAPIView[Remark]):
    """One entry of the shift log."""

    queryset = Remark.objects.none()
    serializer_class = RemarkSerializer
    lookup_url_kwarg = "remark_id"

    def get_queryset(self) -> QuerySet[Remark]:
        """Return the entries that the caller may read."""
        return visible_remarks(caller(self.request))


class RemarkAction(ActionView):
    """A remark about one subject."""

    shape = RemarkSerializer
    status = status.HTTP_201_CREATED

    def post(self, request: Request, **which: Any) -> Response:
        """Write it, and tell where it is."""
        answer = super().post(request, **which)
        answer["Location"] = reverse("api:remark", args=[answer.data["id"]])
        return answer

    def answer(self, request: Request, which: Any, done: Written) -> Any:
        """The remark. Raises Conflict where there was nothing to change."""
        if not done.remark_ids:
            raise Conflict(f"There is nothing to {self.object_action.label.lower()}: it is so.")
        return RemarkSerializer(find_remark(caller(request), done.remark_ids[0])).data


def _made(request: Request, remark_id: int) -> Response:
    body = RemarkSerializer(find_remark(caller(request), remark_id)).data
    headers = {"Location": reverse("api:remark", args=[remark_id])}
    return Response(body, status=status.HTTP_201_CREATED, headers=headers)


#: Views of the actions that write remarks, whatever their subject is.
ACTIONS = dict.fromkeys(REMARK_ACTIONS, RemarkAction)
