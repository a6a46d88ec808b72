"""Endpoints and serializers of logical files: list, detail, removal, forgetting of replicas."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import ListView, caller, refusals
from portal.api.idempotency import once
from portal.api.shapes import StrictSerializer
from portal.lists.filters import LogicalFileFilter
from wms.core.actors import Actor
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.catalogue.names import url_of
from wms.placement.catalogue.selectors import find_file, listed_files
from wms.placement.catalogue.services import forget_replica, remove_file, require_steering
from wms.placement.storages.endpoints import url_below


class LogicalFileSerializer(serializers.ModelSerializer[LogicalFile]):
    """A file under its logical name."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    url = serializers.SerializerMethodField(help_text="As requests name it.")
    replicas = serializers.IntegerField(source="copies", read_only=True)

    class Meta:
        model = LogicalFile
        fields = [
            "id", "name", "url", "owner", "owner_group", "size_bytes", "sha256", "md5", "adler32",
            "created_at", "replicas",
        ]  # fmt: skip

    def get_url(self, file: LogicalFile) -> str:
        """The logical name as an address."""
        return url_of(file.name)


class ReplicaSerializer(serializers.ModelSerializer[Replica]):
    """A file at a storage."""

    storage = serializers.CharField(source="storage.name", read_only=True)
    urls = serializers.SerializerMethodField(help_text="By each endpoint of the storage.")

    class Meta:
        model = Replica
        fields = ["storage", "urls", "request", "created_at"]

    def get_urls(self, replica: Replica) -> list[str]:
        """Its addresses; the view told the file's name."""
        name = self.context["name"]
        return [url_below(each, name) for each in replica.storage.endpoints.splitlines()]


class LogicalFileDetailSerializer(LogicalFileSerializer):
    """A file with its replicas."""

    located = serializers.SerializerMethodField(help_text="The replicas.")

    class Meta(LogicalFileSerializer.Meta):
        fields = [*LogicalFileSerializer.Meta.fields, "located"]

    @extend_schema_field(ReplicaSerializer(many=True))
    def get_located(self, file: LogicalFile) -> Any:
        """The replicas by storage."""
        shown = ReplicaSerializer(file.replicas.all(), many=True, context={"name": file.name})
        return shown.data


class RemovalSerializer(StrictSerializer, serializers.Serializer[Any]):
    """At which storage, and why."""

    storage = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=64,
        help_text="Of a removal empty for all storages.",
    )  # fmt: skip
    reason = serializers.CharField(max_length=2000)


class OrderedRemovalSerializer(serializers.Serializer[Any]):
    """The placement request that removes the file."""

    request = serializers.IntegerField()


class LogicalFileList(ListView):
    """Logical files, those registered last first."""

    queryset = LogicalFile.objects.none()
    serializer_class = LogicalFileSerializer
    filterset_class = LogicalFileFilter

    def get_queryset(self) -> QuerySet[LogicalFile]:
        """Everything that the caller may see."""
        return listed_files(caller(self.request))


class LogicalFileDetail(APIView):
    """One logical file."""

    @extend_schema(responses={200: LogicalFileDetailSerializer, **refusals(404)})
    def get(self, request: Request, file_id: int) -> Response:
        """The file with its replicas."""
        return Response(LogicalFileDetailSerializer(find_file(caller(request), file_id)).data)


class LogicalFileRemoval(APIView):
    """Removal of a logical file from its storages."""

    @once()
    @extend_schema(
        summary="Remove a file from one storage, or from all",
        request=RemovalSerializer,
        responses={201: OrderedRemovalSerializer, **refusals(400, 403, 404, 409)},
    )
    def post(self, request: Request, file_id: int) -> Response:
        """A placement request does it, in the owner's name and with the owner's credentials."""
        order = _order(request, file_id)
        made = remove_file(file_id, **order, actor=Actor.person(caller(request)))
        return Response({"request": made}, status=status.HTTP_201_CREATED)


class ReplicaForgetting(APIView):
    """Removal of a replica from the catalogue alone."""

    @extend_schema(
        summary="Forget the replica that a storage has lost",
        request=RemovalSerializer,
        responses={204: None, **refusals(400, 403, 404, 409)},
    )
    def post(self, request: Request, file_id: int) -> Response:
        """No file is touched. With its last replica the name is gone."""
        forget_replica(file_id, **_order(request, file_id), actor=Actor.person(caller(request)))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _order(request: Request, file_id: int) -> dict[str, str]:
    """Storage and reason, for who may give this order."""
    user = caller(request)
    require_steering(Actor.person(user), find_file(user, file_id))
    body = RemovalSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    return {"storage": body.validated_data["storage"], "reason": body.validated_data["reason"]}
