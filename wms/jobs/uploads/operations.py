"""Changes of uploads beneath their services: pieces, the end, use by a submission, expiry.

A piece is written while the row is locked, and counts when the row says so. So a piece that is sent
twice is there once, and a process that dies in between leaves only bytes that do not count. The end
is a step of its own, since a large file may have to be read for it: whoever comes next goes on
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import BinaryIO

from django.db import transaction

from wms.core.conf import conf
from wms.core.database.locks import advisory_lock
from wms.core.errors import Busy, Conflict, NotFound, PilotageError, TooLarge
from wms.core.heavy import Work, heavy_place
from wms.core.known_contents import KnownContent
from wms.core.models import User
from wms.core.storage.current import writable_store
from wms.core.storage.protocol import ObjectLost
from wms.jobs.content.blobs import store_grown
from wms.jobs.models import ResumableUpload
from wms.jobs.uploads.digests import digest_of, forget, note_piece, unread_bytes
from wms.jobs.uploads.places import (
    old_upload_files,
    remove_upload_file,
    upload_file,
    write_piece,
)
from wms.jobs.uploads.selectors import find_upload

#: Bytes that are written while the row is locked; more are several pieces.
MAX_PIECE_BYTES = 8 * 1024 * 1024
#: A second's reading; who has more to read takes a slot for it.
_READ_AT_ONCE_BYTES = 64 * 1024 * 1024
_SWEPT_AT_ONCE = 1000
#: Files without a row are of users who are gone, or of processes that were killed.
_GRACE = timedelta(days=1)


class OffsetMismatch(Conflict):
    """The piece does not begin where the bytes that are here end."""

    code = "upload-offset"

    def __init__(self, *, expected: int, provided: int) -> None:
        super().__init__(f"{expected} bytes are here: send those that follow, not from {provided}.")
        self.expected, self.provided = expected, provided


class WrongHash(PilotageError):
    """The content is not the announced one; the upload is removed."""

    code = "upload-hash"

    def __init__(self, *, expected: str, found: str) -> None:
        fault = f"What came has SHA-256 {found}, not {expected}" if found else "The bytes are lost"
        super().__init__(f"{fault}: the upload is removed. Send the file anew.")
        self.expected, self.found = expected, found


def expiry(now: datetime) -> datetime:
    """Time at which an upload that is touched now expires."""
    return now + timedelta(seconds=conf().upload_kept_s)


def add_piece(
    upload_id: int, content: bytes, *, owner: User, offset: int, now: datetime
) -> ResumableUpload:
    """Append a piece. Raises NotFound, OffsetMismatch, and TooLarge for more than was announced."""
    with transaction.atomic():
        upload = _locked(owner, upload_id, now)
        if offset != upload.received_bytes:
            raise OffsetMismatch(expected=upload.received_bytes, provided=offset)
        end = offset + len(content)
        if end > upload.size_bytes:
            raise TooLarge(f"Upload {upload_id} is of {upload.size_bytes} bytes, and no more.")
        if content:
            write_piece(upload_id, content, offset=offset)
        upload.received_bytes, upload.expires_at = end, expiry(now)
        upload.save(update_fields=["received_bytes", "expires_at"])
        transaction.on_commit(partial(note_piece, upload, offset, content))
    return upload


def complete_upload(upload_id: int, *, owner: User, now: datetime) -> ResumableUpload:
    """Store the content of an upload of which every byte is here; of others nothing is changed.

    Its row is not locked while it is hashed: bytes that count do not change. Raises NotFound, Busy
    where somebody hashes it, or much else, and WrongHash when the upload was removed because its
    content is another one.
    """
    upload = find_upload(owner, upload_id, now=now)
    if upload.blob_id is not None or upload.received_bytes < upload.size_bytes:
        return upload
    with _alone(upload, owner):
        return _complete(upload, owner, now)


@contextmanager
def _alone(upload: ResumableUpload, owner: User) -> Iterator[None]:
    """Keep others from hashing the same; what takes long has one of a few slots."""
    with ExitStack() as held:
        if not held.enter_context(advisory_lock(f"end of upload {upload.pk}")):
            raise Busy("The end of this upload is being checked: ask again in a moment.")
        if unread_bytes(upload) > _READ_AT_ONCE_BYTES:
            held.enter_context(heavy_place(owner, Work.READING))
        yield


def _complete(upload: ResumableUpload, owner: User, now: datetime) -> ResumableUpload:
    try:
        found = digest_of(upload)
    except ObjectLost:
        # Somebody else was faster, and the row tells how it ended; or the store has lost it.
        found = ""
    blob = None
    if found == upload.sha256:
        # Not while the row is locked: a store may take long to join what it has in parts.
        file = upload_file(upload.pk)
        blob = store_grown(file, sha256=found, size_bytes=upload.size_bytes)
    with transaction.atomic():
        upload = _locked(owner, upload.pk, now)
        if upload.blob_id is not None:
            return upload
        if blob is not None:
            upload.blob = blob
            upload.expires_at = expiry(now)
            upload.save(update_fields=["blob", "expires_at"])
            remove_file_on_commit(upload)
        else:
            # Its bytes are not lost where the store was left with them meanwhile.
            writable_store()
            remove_upload(upload)
    if blob is None:
        # One that is right is that of a file in which more follows.
        raise WrongHash(expected=upload.sha256, found="" if found == upload.sha256 else found)
    return upload


def remove_upload(upload: ResumableUpload) -> None:
    """Forget an upload whose row is locked, with the bytes that are here."""
    remove_file_on_commit(upload)
    ResumableUpload.objects.filter(pk=upload.pk).delete()


def remove_file_on_commit(upload: ResumableUpload) -> None:
    """Have the file of an upload removed that nothing needs any more."""
    transaction.on_commit(partial(remove_upload_file, upload.pk))
    transaction.on_commit(partial(forget, upload))


def use_uploads(files: Iterable[BinaryIO], *, owner: User, now: datetime) -> None:
    """Count the uploads among the files of a submission no more: they count where it keeps them.

    The caller asks for room for them afterwards, in the same transaction. They are kept for as long
    as the submission can be repeated under its key.
    """
    known = [each for each in files if isinstance(each, KnownContent)]
    ids = [each.upload_id for each in known if each.upload_id is not None]
    if not ids:
        return
    rows = ResumableUpload.objects.filter(pk__in=ids, owner=owner).order_by("pk")
    locked = [each.pk for each in rows.select_for_update().only("pk")]
    ResumableUpload.objects.filter(pk__in=locked).update(counted_bytes=0, expires_at=expiry(now))


def sweep_uploads(*, now: datetime) -> int:
    """Remove uploads whose time is over, and files without a row; the number of both."""
    with transaction.atomic():
        due = ResumableUpload.objects.filter(expires_at__lt=now).order_by("expires_at")
        rows = list(due.select_for_update(skip_locked=True)[:_SWEPT_AT_ONCE])
        for upload in rows:
            remove_file_on_commit(upload)
        ResumableUpload.objects.filter(pk__in=[each.pk for each in rows]).delete()
    before = now - timedelta(seconds=conf().upload_kept_s) - _GRACE
    old = set(old_upload_files(before))
    known = set(ResumableUpload.objects.filter(pk__in=old).values_list("pk", flat=True))
    for upload_id in old - known:
        remove_upload_file(upload_id)
    return len(rows) + len(old - known)


def _locked(owner: User, upload_id: int, now: datetime) -> ResumableUpload:
    rows = ResumableUpload.objects.filter(owner=owner, pk=upload_id, expires_at__gt=now)
    upload = rows.select_for_update().first()
    if upload is None:
        raise NotFound(f"You have no upload {upload_id}; its time may be over.")
    return upload
