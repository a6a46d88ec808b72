"""Storages near sites and replicas there for tests, which come and go as by placements."""

from __future__ import annotations

from django.db import transaction

from tests.factories import SYSTEM
from wms.core.models import User
from wms.jobs.input_data.changes import note_files
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.catalogue.operations import take_out
from wms.placement.storages.models import Storage
from wms.placement.storages.services import StorageSpec, change_storage, create_storage


def storage(name: str, *sites: str) -> None:
    """A storage near these sites."""
    create_storage(_spec(name, sites), actor=SYSTEM)


def bring_near(name: str, *sites: str, is_enabled: bool = True) -> None:
    """Let a storage be near these sites from now on."""
    change_storage(name, _spec(name, sites, is_enabled=is_enabled), actor=SYSTEM)


def _spec(name: str, sites: tuple[str, ...], *, is_enabled: bool = True) -> StorageSpec:
    return StorageSpec(name, [f"https://{name}.example.org/"], sites, is_enabled=is_enabled)


@transaction.atomic
def replica(owner: User, path: str, at: str, *, size_bytes: int = 100, group: str = "") -> None:
    """Register a file at a storage."""
    file, _ = LogicalFile.objects.get_or_create(
        name=path,
        defaults={
            "owner": owner, "owner_group": group, "size_bytes": size_bytes, "sha256": "ab" * 32
        },
    )  # fmt: skip
    Replica.objects.create(file=file, storage=Storage.objects.get(name=at))
    note_files([path])


@transaction.atomic
def lose(path: str, at: str) -> None:
    """Take a replica out of the catalogue."""
    found = Replica.objects.filter(file__name=path, storage__name=at)
    take_out(list(found.values_list("pk", flat=True)))
