"""Uploads of a user that can be gone on with or used, and their contents for a submission.

Others' uploads, and contents that only others have, are as if they were not there: to know a hash
gives access to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django.db.models import Exists, OuterRef, QuerySet

from wms.core.errors import Finding, InvalidInput, NotFound
from wms.core.known_contents import KnownContent
from wms.core.models import User
from wms.core.storage.copying import Extent, GrowingRows
from wms.jobs.content.blobs import blob_content, is_stored
from wms.jobs.models import Blob, ResumableUpload, WorkspaceFile
from wms.jobs.uploads.places import upload_file


def own_uploads(owner: User, *, now: datetime) -> QuerySet[ResumableUpload]:
    """Uploads of a user whose time is not over; they are of no frontend, so none by a limit."""
    if owner.limited_to is not None:
        return ResumableUpload.objects.none()
    return ResumableUpload.objects.filter(owner=owner, expires_at__gt=now)


def find_upload(owner: User, upload_id: int, *, now: datetime) -> ResumableUpload:
    """One of them. Raises NotFound."""
    upload = own_uploads(owner, now=now).filter(pk=upload_id).first()
    if upload is None:
        raise NotFound(f"You have no upload {upload_id}; its time may be over.")
    return upload


def content_of_owner(owner: User, sha256: str, size_bytes: int) -> Blob | None:
    """Content that is a file in a workspace of the owner, who so has it already."""
    files = WorkspaceFile.objects.filter(blob=OuterRef("pk"), workspace__owner=owner)
    return Blob.objects.filter(Exists(files), pk=sha256, size_bytes=size_bytes).first()


def contents_of_uploads(
    owner: User, ids: Mapping[str, int], *, now: datetime
) -> dict[str, KnownContent]:
    """Contents of the owner's uploads, by the names of the files that they are to be.

    Raises InvalidInput with every file whose upload is unknown, expired, incomplete or lost.
    """
    theirs = own_uploads(owner, now=now).select_related("blob")
    rows = theirs.in_bulk(set(ids.values())) if ids else {}
    findings, contents = [], {}
    for name, upload_id in ids.items():
        upload = rows.get(upload_id)
        if upload is None or upload.blob is None or not is_stored(upload.blob):
            findings.append(Finding(_fault(upload_id, upload), file=name, field="uploads"))
            continue
        contents[name] = KnownContent(
            blob_content(upload.blob.pk),
            size_bytes=upload.size_bytes,
            sha256=upload.blob.pk,
            upload_id=upload.pk,
        )
    if findings:
        raise InvalidInput(findings)
    return contents


def _under_way() -> QuerySet[ResumableUpload]:
    return ResumableUpload.objects.filter(blob=None)


def _extent(upload: ResumableUpload) -> Extent:
    return Extent(upload_file(upload.pk), ((0, upload.received_bytes),))


#: All uploads that are under way, with the bytes of them that count.
UPLOAD_EXTENTS: Final = GrowingRows(_under_way, _extent)


def _fault(upload_id: int, upload: ResumableUpload | None) -> str:
    if upload is None:
        return f"you have no upload {upload_id}; its time may be over"
    if upload.blob is not None:
        return f"the content of upload {upload_id} is lost: cancel it and send the file anew"
    return (
        f"upload {upload_id} is not complete: {upload.received_bytes} of {upload.size_bytes} "
        "bytes are here"
    )
