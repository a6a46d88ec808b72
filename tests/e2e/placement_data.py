"""A storage, a logical file and a credential for the walk through the pages."""

from __future__ import annotations

from datetime import timedelta

from django.urls import reverse
from django.utils import timezone

from tests.e2e.production import Production
from tests.factories import SYSTEM
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.credential_models import PlacementCredential
from wms.placement.models import PlacementAllocation
from wms.placement.storages.models import Storage
from wms.placement.storages.services import StorageSpec, create_storage


def placement_pages(made: Production) -> dict[str, str]:
    """Addresses of the pages of storages, files and credentials, by the names of pictures."""
    spec = StorageSpec(
        "pool-north",
        ["davs://pool.example.org/data/", "s3://pool-north/"],
        [made.site.name],
        space_bytes=200 * 2**40,
        max_transfers=20,
        note="Tapes behind it.",
    )
    create_storage(spec, actor=SYSTEM)
    pool = Storage.objects.get(name=spec.name)
    allocation = PlacementAllocation.objects.create(
        owner=made.people.alice, name="mc27", host=pool.name, storage=pool, size_bytes=5 * 2**40,
        expires_at=timezone.now() + timedelta(days=3),
    )  # fmt: skip
    file = LogicalFile.objects.create(
        name="/mc27/run7/events.root", owner=made.people.alice, size_bytes=3 * 2**30,
        sha256="0123456789abcdef" * 4,
    )  # fmt: skip
    Replica.objects.create(file=file, storage=pool)
    for number, owner in enumerate((made.people.olga, made.people.alice)):
        PlacementCredential.objects.create(
            owner=owner, scheme="davs", host=f"pool{number}.example.org", port=443,
            kind="password", user="robot", sealed="-",
        )  # fmt: skip
    return {
        "placement-credentials": reverse("web:placement-credentials"),
        "links": reverse("web:placement-links"),
        "allocations": reverse("web:allocations"),
        "allocation": reverse("web:allocation", args=[allocation.pk]),
        "storages": reverse("web:storages"),
        "storage": reverse("web:storage", args=[pool.name]),
        "logical-files": reverse("web:logical-files"),
        "logical-files-none": reverse("web:logical-files") + "?name=/nowhere/",
        "logical-file": reverse("web:logical-file", args=[file.pk]),
    }
