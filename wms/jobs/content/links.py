"""Links by which pilots and people read, and pilots write, contents at the store itself.

What comes by a link is first an object of its attempt; it becomes a content when its SHA-256 is
known to be the announced one. Links are told to who asked, and to nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wms.core.storage.current import current_store, writable_store
from wms.core.storage.folder import lost
from wms.core.storage.protocol import Link
from wms.core.storage.s3_store import SENT
from wms.jobs.content.blobs import blob_key, kept_row
from wms.jobs.models import AttemptFile, Blob

#: Smaller ones are sent by the portal: that takes one request less.
_LEAST_BYTES: Final = 256 * 1024
#: The most that stores take and copy by one request.
_MOST_BYTES: Final = 5 * 1024**3


def link_to_read(blob: Blob) -> Link | None:
    """Link to a content; None where the portal sends it."""
    store = current_store()
    if not store.has_links or blob.size_bytes < _LEAST_BYTES:
        return None
    return store.read_link(blob_key(blob.sha256))


def link_to_download(blob: Blob, *, answer: Mapping[str, str]) -> Link | None:
    """Link by which a person reads a content, with the headers of the answer; None where none is.

    The caller has looked whether that person may read it. Raises ObjectLost.
    """
    store, key = current_store(), blob_key(blob.sha256)
    if not store.serves_people or blob.size_bytes < _LEAST_BYTES:
        return None
    if store.size_of(key) is None:
        # Told here, not by the store.
        raise lost(key)
    return store.read_link(key, answer=answer)


def link_to_send(attempt_id: int, *, sha256: str, size_bytes: int) -> Link | None:
    """Link by which an attempt sends a file; None where it sends it to the portal."""
    store = writable_store()
    if not store.has_links or size_bytes > _MOST_BYTES:
        return None
    return store.write_link(_sent_key(attempt_id, sha256), sha256=sha256, size_bytes=size_bytes)


def take_sent(attempt_id: int, *, sha256: str, size_bytes: int) -> Blob | None:
    """Content that an attempt has sent by a link; None where it is not there, or another one.

    One that was taken before is told again: the answer was lost on its way.
    """
    store, key = writable_store(), _sent_key(attempt_id, sha256)
    mark = store.seen(key, sha256=sha256, size_bytes=size_bytes)
    if not mark:
        taken = AttemptFile.objects.filter(attempt_id=attempt_id).values("blob")
        return Blob.objects.filter(pk=sha256, size_bytes=size_bytes, pk__in=taken).first()
    # Its size is known to be right: the row is that of whoever else has this content.
    row = kept_row(sha256, size_bytes)
    is_moved = store.move(key, blob_key(sha256), mark=mark, size_bytes=size_bytes)
    return row if is_moved else None


def _sent_key(attempt_id: int, sha256: str) -> str:
    return f"{SENT}/{attempt_id}/{sha256}"
