"""Endpoints and serializers of quotas: list, set, change, delete, and use of a caller's own."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.limits.shapes import GroupField, OwnerField
from portal.api.shapes import StrictSerializer
from wms.accounting.models import AccountingGroup, Quota
from wms.accounting.selectors import visible_quotas
from wms.accounting.services import delete_quota, save_quota
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.quotas import quotas_of

_MOST = 2**63 - 1


def _limit(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=0, max_value=_MOST, allow_null=True, required=False, default=None,
        help_text=f"{help_text} null: no limit.",
    )  # fmt: skip


class QuotaSerializer(StrictSerializer, serializers.ModelSerializer[Quota]):
    """Quota: the most that one user, or all members of a group together, may have at a time.

    Without user and group it is for each user who has none of their own.
    """

    user = OwnerField(
        "username", queryset=User.objects.all(), allow_null=True, required=False, default=None
    )
    group = GroupField(
        "name", queryset=AccountingGroup.objects.all(), allow_null=True, required=False,
        default=None,
    )  # fmt: skip
    max_waiting_jobs = _limit("Jobs that wait, and nodes and jobs that are still to be made.")
    max_clusters = _limit("Clusters and DAGs that have not ended.")
    max_bytes = _limit("Size of all stored input and output files.")

    class Meta:
        model = Quota
        fields = ["id", "user", "group", "max_waiting_jobs", "max_clusters", "max_bytes"]
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []


class QuotaLineSerializer(serializers.Serializer[Any]):
    """Use of one kind of a quota."""

    quota = serializers.CharField(help_text="waiting_jobs, clusters or size_bytes.")
    whose = serializers.CharField(help_text="The user or group whose use is counted.")
    limit = serializers.IntegerField(allow_null=True, help_text="null: there is none.")
    used = serializers.IntegerField()


class OwnQuotas(APIView):
    """Quotas that the caller's submissions meet, with what is used."""

    @extend_schema(
        summary="The caller's quotas and what is used of them",
        responses={200: QuotaLineSerializer(many=True), **refusals()},
    )
    def get(self, request: Request) -> Response:
        """Answer with a line for each kind of each quota: the user's, then those of groups."""
        lines = [
            {"quota": kind, "whose": str(use.holder), "limit": limit, "used": used}
            for use in quotas_of(caller(request))
            for kind, limit, used in use.lines
        ]
        return Response(QuotaLineSerializer(lines, many=True).data)


class QuotaList(ListView):
    """All quotas, the last made first."""

    queryset = Quota.objects.none()
    serializer_class = QuotaSerializer

    def get_queryset(self) -> QuerySet[Quota]:
        """Everything that the caller may see."""
        return visible_quotas(caller(self.request))

    @once()
    @extend_schema(
        summary="Set a quota",
        parameters=[WHY],
        responses={201: QuotaSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """It holds from the next submission on; what is there stays."""
        body = QuotaSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        quota = Quota(**body.validated_data)
        save_quota(quota, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(QuotaSerializer(quota).data, status=status.HTTP_201_CREATED)


class QuotaDetail(RetrieveAPIView[Quota]):
    """One quota."""

    queryset = Quota.objects.none()
    serializer_class = QuotaSerializer
    lookup_url_kwarg = "quota_id"

    def get_queryset(self) -> QuerySet[Quota]:
        """Everything that the caller may see."""
        return visible_quotas(caller(self.request))

    @extend_schema(
        summary="Set a quota anew",
        parameters=[WHY],
        request=QuotaSerializer,
        responses={200: QuotaSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, quota_id: int) -> Response:
        """All of it: a limit that is not given exists no more."""
        quota = self.get_object()
        body = QuotaSerializer(quota, data=request.data)
        body.is_valid(raise_exception=True)
        for name, value in body.validated_data.items():
            setattr(quota, name, value)
        save_quota(quota, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(QuotaSerializer(quota).data)

    @extend_schema(
        summary="Delete a quota",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404)},
    )
    def delete(self, request: Request, quota_id: int) -> Response:
        """Its user has that of every user then, its group none."""
        delete_quota(self.get_object(), actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
