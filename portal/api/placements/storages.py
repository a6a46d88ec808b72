"""Endpoints and serializers of storages: list, make, read, change, delete."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.idempotency import once
from portal.api.pagination import ByName
from portal.api.shapes import StrictSerializer
from wms.core.actors import Actor
from wms.placement.amounts import MAX_BYTES
from wms.placement.storages.endpoints import MAX_ENDPOINTS
from wms.placement.storages.models import MAX_REQUIREMENTS, Storage
from wms.placement.storages.selectors import StorageUse, find_storage, listed_storages, uses_of
from wms.placement.storages.services import (
    StorageSpec,
    change_storage,
    create_storage,
    delete_storage,
    require_configuring,
)

_MOST = 2**31 - 1


class NewStorageSerializer(StrictSerializer, serializers.Serializer[Any]):
    """A storage as it is configured."""

    name = serializers.CharField(max_length=64)
    endpoints = serializers.ListField(
        child=serializers.CharField(max_length=2048),
        min_length=1,
        max_length=MAX_ENDPOINTS,
        help_text="Prefixes of addresses, such as davs://storage.example.org/data/.",
    )
    sites = serializers.ListField(
        child=serializers.CharField(max_length=64),
        required=False,
        default=list,
        max_length=1000,
        help_text="Names of the sites that it is near.",
    )
    space_bytes = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=MAX_BYTES,
        help_text="So much may be allocated; null: nothing.",
    )  # fmt: skip
    max_transfers = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=_MOST,
        help_text="Most transfers from and to it at once.",
    )  # fmt: skip
    max_link_transfers = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=_MOST,
        help_text="Most transfers at once between it and any one other storage.",
    )  # fmt: skip
    transfer_requirements = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=MAX_REQUIREMENTS,
        help_text="Which transfers may choose it where they leave the storage open, as a ClassAd "
        "expression in which TARGET is the request; empty: all.",
    )  # fmt: skip
    is_enabled = serializers.BooleanField(required=False, default=True)
    note = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=4000, trim_whitespace=False
    )


class StorageSerializer(serializers.ModelSerializer[Storage]):
    """A storage, and how much of it is in use."""

    endpoints = serializers.SerializerMethodField()
    sites = serializers.SerializerMethodField(help_text="Names of the sites that it is near.")
    allocated_bytes = serializers.IntegerField(source="allocated", read_only=True)
    running = serializers.SerializerMethodField(help_text="Transfers from and to it now.")
    waiting = serializers.SerializerMethodField(help_text="Transfers that wait.")

    class Meta:
        model = Storage
        fields = [
            "name", "endpoints", "sites", "space_bytes", "allocated_bytes", "max_transfers",
            "max_link_transfers", "transfer_requirements", "is_enabled", "note", "running",
            "waiting", "created_at",
        ]  # fmt: skip

    def get_endpoints(self, storage: Storage) -> list[str]:
        """The endpoints in their order."""
        return storage.endpoints.splitlines()

    def get_sites(self, storage: Storage) -> list[str]:
        """The sites by name."""
        return sorted(site.name for site in storage.sites.all())

    def get_running(self, storage: Storage) -> int:
        """Transfers under way; the view counted them."""
        return self._use(storage).running

    def get_waiting(self, storage: Storage) -> int:
        """Transfers that wait; the view counted them."""
        return self._use(storage).waiting

    def _use(self, storage: Storage) -> StorageUse:
        uses: dict[int, StorageUse] = self.context["uses"]
        return uses.get(storage.pk, StorageUse())


class StorageList(ListView):
    """All storages by name."""

    queryset = Storage.objects.none()
    serializer_class = StorageSerializer
    pagination_class = ByName

    def get_queryset(self) -> QuerySet[Storage]:
        """Storages with what is allocated of them."""
        return listed_storages(timezone.now())

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        """Give the serializer what moves from and to the storages of the page."""
        rows = args[0] if args else []
        kwargs["context"] = {
            **self.get_serializer_context(), "uses": uses_of([row.pk for row in rows])
        }  # fmt: skip
        return StorageSerializer(*args, **kwargs)

    @once()
    @extend_schema(
        summary="Set up a storage",
        parameters=[WHY],
        request=NewStorageSerializer,
        responses={201: StorageSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """Requests that wait are told anew in which storages their files lie."""
        actor = Actor.person(caller(request))
        require_configuring(actor)
        spec = _spec_of(request)
        create_storage(spec, actor=actor, reason=why_of(request))
        return Response(_shown(spec.name), status=status.HTTP_201_CREATED)


class StorageDetail(APIView):
    """One storage."""

    @extend_schema(responses={200: StorageSerializer, **refusals(404)})
    def get(self, request: Request, storage: str) -> Response:
        """The storage with its use."""
        return Response(_shown(storage))

    @extend_schema(
        summary="Set a storage anew",
        parameters=[WHY],
        request=NewStorageSerializer,
        responses={200: StorageSerializer, **refusals(400, 403, 404)},
    )
    def put(self, request: Request, storage: str) -> Response:
        """All of it: what is not given is as in a new one. Its name stays."""
        actor = Actor.person(caller(request))
        require_configuring(actor)
        change_storage(storage, _spec_of(request), actor=actor, reason=why_of(request))
        return Response(_shown(storage))

    @extend_schema(
        summary="Delete a storage",
        parameters=[WHY],
        responses={204: None, **refusals(403, 404, 409)},
    )
    def delete(self, request: Request, storage: str) -> Response:
        """One of which something is known to be there is switched off instead."""
        delete_storage(storage, actor=Actor.person(caller(request)), reason=why_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _spec_of(request: Request) -> StorageSpec:
    body = NewStorageSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    return StorageSpec(**body.validated_data)


def _shown(name: str) -> Any:
    found = find_storage(name, timezone.now())
    return StorageSerializer(found, context={"uses": uses_of([found.pk])}).data
