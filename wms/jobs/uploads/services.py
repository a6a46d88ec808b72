"""Services on uploads that resume, permitted: begin, append, cancel. Beginning and end are audited.

Uploads are their owner's alone. Those that wait for being used count for the owner's quota of
stored bytes, and their number is limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.conf import conf
from wms.core.database.locks import wait_for_locks
from wms.core.errors import Finding, InvalidInput, QuotaExceeded, TooLarge
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.jobs.content.blobs import is_stored
from wms.jobs.models import Blob, ResumableUpload
from wms.jobs.quotas import check_quota
from wms.jobs.uploads.operations import (
    OffsetMismatch,
    add_piece,
    complete_upload,
    expiry,
    remove_upload,
)
from wms.jobs.uploads.selectors import content_of_owner, find_upload, own_uploads

_SHA256 = re.compile("[0-9a-f]{64}")
#: Offsets in headers have 15 digits (RFC 9651).
_MOST_BYTES = 10**15 - 1


@dataclass(frozen=True, slots=True)
class BegunUpload:
    """An upload that was made, or a complete one of the same content that was there."""

    upload: ResumableUpload
    is_new: bool


def begin_upload(
    *, sha256: str, size_bytes: int, owner: User, actor: Actor, now: datetime
) -> BegunUpload:
    """Make an upload, complete at once where the owner has the content already.

    Raises NotPermitted, InvalidInput, and QuotaExceeded: for the size as a whole, so that nothing
    is sent in vain.
    """
    require_role(actor, Role.USER, "upload files")
    sha256 = sha256.lower()
    _check(sha256, size_bytes)
    with transaction.atomic():
        wait_for_locks([f"uploads of user {owner.pk}"])
        theirs = own_uploads(owner, now=now)
        content = content_of_owner(owner, sha256, size_bytes)
        if _is_lost(content):
            content = None
        waiting = theirs.filter(counted_bytes__gt=0).count()
        whole = theirs.filter(sha256=sha256, size_bytes=size_bytes, blob__isnull=False)
        known = whole.select_for_update().first()
        if known is not None and _is_lost(known.blob):
            remove_upload(known)
            known = None
        if known is not None:
            _prolong(known, waiting, is_counted=content is not None, now=now)
            return BegunUpload(known, is_new=False)
        if content is None:
            _check_room(owner, waiting, size_bytes)
        upload = ResumableUpload.objects.create(
            owner=owner,
            sha256=sha256,
            size_bytes=size_bytes,
            expires_at=expiry(now),
            **_beginning(content, size_bytes),
        )
        record_action(
            "begin upload",
            target=f"upload {upload.pk}",
            actor=actor,
            facts={"sha256": sha256, "bytes": size_bytes},
        )
    return BegunUpload(upload, is_new=True)


def append_pieces(
    upload_id: int,
    pieces: Iterable[bytes],
    *,
    length: int,
    offset: int,
    owner: User,
    actor: Actor,
    now: datetime,
) -> ResumableUpload:
    """Append what comes, `length` bytes if nothing breaks off, and store the content if it is all.

    Each piece counts when it is written, whatever becomes of the rest. Raises NotPermitted,
    NotFound, OffsetMismatch, TooLarge before anything is read, Busy at the end, and WrongHash.
    """
    require_role(actor, Role.USER, "upload files")
    upload = find_upload(owner, upload_id, now=now)
    if offset != upload.received_bytes:
        raise OffsetMismatch(expected=upload.received_bytes, provided=offset)
    if offset + length > upload.size_bytes:
        raise TooLarge(f"Upload {upload_id} is of {upload.size_bytes} bytes, and no more.")
    for piece in pieces:
        upload = add_piece(upload_id, piece, owner=owner, offset=offset, now=now)
        offset = upload.received_bytes
    return complete_upload(upload_id, owner=owner, now=now)


@transaction.atomic
def cancel_upload(
    upload_id: int, *, owner: User, actor: Actor, now: datetime, reason: str = ""
) -> None:
    """Forget an upload with what is here of it; what has used it keeps the content.

    Raises NotPermitted and NotFound.
    """
    require_role(actor, Role.USER, "upload files")
    find_upload(owner, upload_id, now=now)
    # Waits for a piece that is being written.
    upload = ResumableUpload.objects.select_for_update().filter(pk=upload_id).first()
    if upload is None:
        return
    record_action("cancel upload", target=f"upload {upload_id}", actor=actor, reason=reason)
    remove_upload(upload)


def _check(sha256: str, size_bytes: int) -> None:
    findings = []
    if not _SHA256.fullmatch(sha256):
        findings.append(Finding("must be a SHA-256, 64 hexadecimal digits", field="sha256"))
    if not 0 < size_bytes <= _MOST_BYTES:
        findings.append(Finding("must be a positive number of bytes", field="size_bytes"))
    if findings:
        raise InvalidInput(findings)


def _is_lost(content: Blob | None) -> bool:
    """Whether the disk has lost a content: sent anew, it is there again for all that name it."""
    return content is not None and not is_stored(content)


def _prolong(upload: ResumableUpload, waiting: int, *, is_counted: bool, now: datetime) -> None:
    """Keep a complete upload for longer; one that was used counts again where its use is over."""
    if not (is_counted or upload.counted_bytes):
        _check_room(upload.owner, waiting, upload.size_bytes)
        upload.counted_bytes = upload.size_bytes
    upload.expires_at = expiry(now)
    upload.save(update_fields=["counted_bytes", "expires_at"])


def _check_room(owner: User, waiting: int, size_bytes: int) -> None:
    limit = conf().max_open_uploads
    if waiting >= limit:
        raise QuotaExceeded(
            f"You have {waiting} uploads that nothing has used, and may have {limit}: use or "
            "cancel some.",
            quota="uploads", whose=f"user {owner}", limit=limit, used=waiting, asked=1,
        )  # fmt: skip
    check_quota(owner=owner, group=None, size_bytes=size_bytes)


def _beginning(content: Blob | None, size_bytes: int) -> dict[str, object]:
    if content is None:
        return {"counted_bytes": size_bytes}
    # It counts in the workspace in which it is.
    return {"counted_bytes": 0, "received_bytes": size_bytes, "blob": content}
