"""Store of file contents (blobs): each content once, under its SHA-256; written and read.

They are objects of the store that the settings name (`wms.core.storage`). A file that came by an
upload is taken over without a copy. What no row names is removed after a day
(`wms.jobs.content.unnamed_contents`).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from django.db import connection

from wms.core.errors import InvalidInput, NotFound, TooLarge
from wms.core.known_contents import KnownContent, known_sha256
from wms.core.storage.contents import ObjectContent
from wms.core.storage.current import current_store, scratch_folder, writable_store
from wms.core.storage.protocol import Growing
from wms.jobs.models import Blob
from wms.jobs.sql import HOLD_CONTENT

_CHUNK_BYTES = 1024 * 1024


def blob_key(sha256: str) -> str:
    """Key of the stored content; the name is its hash, never a user's text."""
    return f"{sha256[:2]}/{sha256}"


def blob_content(sha256: str) -> ObjectContent:
    """The content with random access."""
    return ObjectContent(blob_key(sha256))


def blob_counts(sha256: str) -> Path:
    """File of the line counts of the content."""
    return current_store().counts_path(blob_key(sha256))


def store_blob(
    chunks: Iterable[bytes], *, limit_bytes: int, expected_sha256: str | None = None
) -> Blob:
    """Store a content and return its row. Memory used is one chunk, whatever the size.

    It appears under its name only when it is complete. The caller names the content, by a
    foreign key, in the same transaction or soon: what nothing names is removed after a day
    (`wms.jobs.content.unnamed_contents`). Raises TooLarge beyond the limit and InvalidInput when
    the content has not the expected hash; then nothing is kept.
    """
    digest, size_bytes = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=scratch_folder(), delete=False) as file:
        try:
            for chunk in chunks:
                size_bytes += len(chunk)
                if size_bytes > limit_bytes:
                    raise TooLarge(f"The file is larger than {limit_bytes} bytes.")
                digest.update(chunk)
                file.write(chunk)
            if expected_sha256 is not None and digest.hexdigest() != expected_sha256.lower():
                raise InvalidInput.of(
                    f"the content has SHA-256 {digest.hexdigest()}, not {expected_sha256}",
                    field="sha256",
                )
            file.flush()
            # What names the row, which is durable when it is committed, must never lack a content.
            os.fsync(file.fileno())
            return keep_file(Path(file.name), sha256=digest.hexdigest(), size_bytes=size_bytes)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def store_grown(file: Growing, *, sha256: str, size_bytes: int) -> Blob | None:
    """Store the first bytes of a growing file that have this hash; it stays where it is, too.

    None where those are not its own, as of one that a restored database has named anew. The caller
    removes it when its transaction is committed, and writes to it no more.
    """
    row = kept_row(sha256, size_bytes)
    is_kept = writable_store().keep_grown(file, blob_key(row.sha256), size_bytes=size_bytes)
    return row if is_kept else None


def keep_file(path: Path, *, sha256: str, size_bytes: int) -> Blob:
    """Take a file into the store, whose content was written to the disk; returns its row.

    It is in the scratch folder, and has its name there no more.
    """
    row = kept_row(sha256, size_bytes)
    # A sweep deletes the file before the row is gone: none does after the row was seen to stay.
    writable_store().put(blob_key(row.sha256), path)
    return row


def kept_row(sha256: str, size_bytes: int) -> Blob:
    """The row of a content, made if missing, that no sweep takes before the content is named.

    A row without a mark is safe for as long as marks stand before a sweep. One with a mark loses
    it; inside a transaction, where others would wait for that until its end, it is locked so that
    it cannot be deleted. Rows in use are not written: thousands of jobs send the same empty file.
    """
    while True:
        row = Blob.objects.filter(pk=sha256).first()
        if row is None:
            new = Blob(sha256=sha256, size_bytes=size_bytes)
            Blob.objects.bulk_create([new], ignore_conflicts=True)
        elif row.unnamed_since is None or _is_held(sha256):
            return row


def _is_held(sha256: str) -> bool:
    """Hold a marked row; waits for a sweep that has it. False when that has deleted it."""
    if not connection.in_atomic_block:
        return bool(Blob.objects.filter(pk=sha256).update(unnamed_since=None))
    with connection.cursor() as cursor:
        cursor.execute(HOLD_CONTENT, {"sha256": sha256})
        return cursor.fetchone() is not None


def store_bytes(content: bytes) -> Blob:
    """Store a content that is in memory."""
    return store_blob([content], limit_bytes=len(content))


def store_sent(stream: BinaryIO, *, limit_bytes: int) -> Blob:
    """Store a file of a submission; one that is in the store already is not limited."""
    sha256 = known_sha256(stream)
    stream.seek(0)
    if sha256 is None:
        return store_stream(stream, limit_bytes=limit_bytes)
    return kept_row(sha256, stream.seek(0, os.SEEK_END))


def store_stream(stream: BinaryIO, *, limit_bytes: int, expected_sha256: str | None = None) -> Blob:
    """Store the rest of a stream."""
    chunks = iter(lambda: stream.read(_CHUNK_BYTES), b"")
    return store_blob(chunks, limit_bytes=limit_bytes, expected_sha256=expected_sha256)


def open_blob(sha256: str) -> BinaryIO:
    """The content, opened for reading. Raises NotFound when the store has lost it."""
    return current_store().open(blob_key(sha256))


def is_stored(blob: Blob) -> bool:
    """Whether a content is there, and as long as it was."""
    return current_store().size_of(blob_key(blob.sha256)) == blob.size_bytes


def known_content(blob: Blob) -> KnownContent:
    """The content as a file of a submission, which is not read to be stored again.

    Raises NotFound when the store has lost it.
    """
    if not is_stored(blob):
        raise NotFound(f"The content {blob.sha256} is not in the store.")
    return KnownContent(blob_content(blob.sha256), size_bytes=blob.size_bytes, sha256=blob.sha256)


def read_head(sha256: str, *, limit_bytes: int) -> str:
    """The first `limit_bytes` of a content as text; bytes that are not UTF-8 are replaced."""
    return blob_content(sha256).read(0, limit_bytes).decode("utf-8", errors="replace")


def read_tail(sha256: str, *, limit_bytes: int) -> str:
    """The last `limit_bytes` of a content as text; bytes that are not UTF-8 are replaced."""
    with open_blob(sha256) as file:
        size_bytes = file.seek(0, os.SEEK_END)
        file.seek(max(0, size_bytes - limit_bytes))
        return file.read(limit_bytes).decode("utf-8", errors="replace")
