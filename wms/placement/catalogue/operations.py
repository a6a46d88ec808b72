"""Operations on the catalogue, with the end of an attempt: replicas registered and taken out.

Jobs and DAGs that want these files as inputs are told after the commit.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from wms.core.errors import Conflict
from wms.jobs.input_data.changes import note_files
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.catalogue.names import checked_name
from wms.placement.models import PlacementRequest


@dataclass(frozen=True, slots=True)
class Content:
    """Size and SHA-256 of a file as it was placed."""

    size_bytes: int
    sha256: str


def register(request: PlacementRequest, content: Content) -> None:
    """Register what a transfer has placed under its logical name.

    Raises Conflict where the name stands for another content, or the storage is gone. The caller
    has opened a transaction.
    """
    name, storage_id = checked_name(request.destination_url), request.destination_storage_id
    if storage_id is None:
        raise Conflict("the storage of the destination is no more")
    LogicalFile.objects.bulk_create(
        [
            LogicalFile(
                name=name,
                owner_id=request.owner_id,
                owner_group=request.workspace.owner_group,
                size_bytes=content.size_bytes,
                sha256=content.sha256,
                md5=request.expected_md5,
                adler32=request.expected_adler32,
            )
        ],
        ignore_conflicts=True,
    )
    file = LogicalFile.objects.select_for_update().get(name=name)
    if file.sha256 != content.sha256:
        raise Conflict(f"{request.destination_url} stands for another content meanwhile")
    Replica.objects.bulk_create(
        [Replica(file=file, storage_id=storage_id, request=request)],
        update_conflicts=True,
        unique_fields=["file", "storage"],
        update_fields=["request", "created_at"],
    )
    note_files([name])


def take_out(replica_ids: Collection[int]) -> int:
    """Forget replicas, and the names of which none is left; how many.

    The caller has opened a transaction.
    """
    if not replica_ids:
        return 0
    files = LogicalFile.objects.filter(replicas__in=replica_ids).values_list("pk", flat=True)
    locked = list(LogicalFile.objects.filter(pk__in=list(files)).order_by("pk").select_for_update())
    count, _ = Replica.objects.filter(pk__in=replica_ids).delete()
    LogicalFile.objects.filter(pk__in=[each.pk for each in locked], replicas=None).delete()
    note_files([each.name for each in locked])
    return count
