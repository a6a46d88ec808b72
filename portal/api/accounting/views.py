"""Endpoints of submitters: list, one, and its factor."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.accounting.shapes import FactorSerializer, SubmitterSerializer
from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.pagination import NewestFirst
from wms.accounting.models import Submitter
from wms.accounting.selectors import find_submitter, visible_submitters
from wms.accounting.services import save_submitter
from wms.core.actors import Actor


class _ByPlace(NewestFirst):
    """Submitters, best first."""

    ordering = "place"


class SubmitterList(ListView):
    """All submitters in the order in which they are served."""

    queryset = Submitter.objects.none()
    serializer_class = SubmitterSerializer
    pagination_class = _ByPlace

    def get_queryset(self) -> QuerySet[Submitter]:
        """Everything that the caller may see."""
        return visible_submitters(caller(self.request))


class SubmitterDetail(RetrieveAPIView[Submitter]):
    """One submitter; its place is that among those that you may see."""

    queryset = Submitter.objects.none()
    serializer_class = SubmitterSerializer
    lookup_url_kwarg = "submitter_id"

    def get_object(self) -> Submitter:
        """The submitter with its place."""
        return find_submitter(caller(self.request), self.kwargs["submitter_id"])

    @extend_schema(
        summary="Set the factor of a submitter",
        parameters=[WHY],
        request=FactorSerializer,
        responses={200: SubmitterSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, submitter_id: int) -> Response:
        """A factor from the next negotiation on; the answer has the place that it gives."""
        submitter = self.get_object()
        body = FactorSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        submitter.factor = body.validated_data["factor"]
        save_submitter(submitter, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(SubmitterSerializer(self.get_object()).data)
