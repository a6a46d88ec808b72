"""Store of file contents (blobs): each content once, under its SHA-256; written and read.

A file that came by an upload is taken over without a copy. What no row names is removed after a day
(`wms.jobs.content.unnamed_contents`). Also the removal of uploads that were broken off.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from django.db import connection

from wms.core.conf import conf
from wms.core.errors import InvalidInput, NotFound, TooLarge
from wms.core.known_contents import KnownContent, known_sha256
from wms.jobs.models import Blob
from wms.jobs.sql import HOLD_CONTENT

_CHUNK_BYTES = 1024 * 1024


def blob_path(sha256: str) -> Path:
    """Path of the stored content; the name is its hash, never a user's text."""
    return conf().blobs_dir / sha256[:2] / sha256


def store_blob(
    chunks: Iterable[bytes], *, limit_bytes: int, expected_sha256: str | None = None
) -> Blob:
    """Store a content and return its row. Memory used is one chunk, whatever the size.

    The file appears under its name only when it is complete. The caller names the content, by a
    foreign key, in the same transaction or soon: what nothing names is removed after a day
    (`wms.jobs.content.unnamed_contents`). Raises TooLarge beyond the limit and InvalidInput when
    the content has not the expected hash; then nothing is kept.
    """
    base = conf().blobs_dir
    (base / "incoming").mkdir(parents=True, exist_ok=True, mode=0o700)
    digest, size_bytes = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=base / "incoming", delete=False) as file:
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


def store_file(path: Path, *, sha256: str, size_bytes: int) -> Blob:
    """Store a file of the same file system that has this hash; it stays where it is, too.

    The caller removes it when its transaction is committed, and writes to it no more.
    """
    base = conf().blobs_dir
    (base / "incoming").mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    with tempfile.TemporaryDirectory(dir=base / "incoming") as folder:
        link = Path(folder) / sha256
        os.link(path, link)
        return keep_file(link, sha256=sha256, size_bytes=size_bytes)


def keep_file(path: Path, *, sha256: str, size_bytes: int) -> Blob:
    """Take a file into the store, whose content was written to the disk; returns its row.

    It is below the store's folder `incoming`, and has its name there no more.
    """
    row = _kept_row(sha256, size_bytes)
    target = blob_path(row.sha256)
    target.parent.mkdir(exist_ok=True, mode=0o700)
    # A sweep deletes the file before the row is gone: none does after the row was seen to stay.
    os.replace(path, target)
    _make_durable(target.parent)
    return row


def _kept_row(sha256: str, size_bytes: int) -> Blob:
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


def _make_durable(folder: Path) -> None:
    """Sync a folder, so that a new file's name survives a power cut, as its row does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep_incoming(*, now: datetime) -> int:
    """Remove uploads that were broken off a day ago or earlier; the number of files."""
    limit = (now - timedelta(days=1)).timestamp()
    old = [f for f in (conf().blobs_dir / "incoming").glob("*") if _is_older(f, limit)]
    for each in old:
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
    return len(old)


def _is_older(path: Path, limit: float) -> bool:
    """Whether nothing was written to it since then; what has come to its end meanwhile is not."""
    try:
        return path.stat().st_mtime < limit
    except FileNotFoundError:
        return False


def store_bytes(content: bytes) -> Blob:
    """Store a content that is in memory."""
    return store_blob([content], limit_bytes=len(content))


def store_sent(stream: BinaryIO, *, limit_bytes: int) -> Blob:
    """Store a file of a submission; one that is in the store already is not limited."""
    sha256 = known_sha256(stream)
    stream.seek(0)
    if sha256 is None:
        return store_stream(stream, limit_bytes=limit_bytes)
    return _kept_row(sha256, stream.seek(0, os.SEEK_END))


def store_stream(stream: BinaryIO, *, limit_bytes: int, expected_sha256: str | None = None) -> Blob:
    """Store the rest of a stream."""
    chunks = iter(lambda: stream.read(_CHUNK_BYTES), b"")
    return store_blob(chunks, limit_bytes=limit_bytes, expected_sha256=expected_sha256)


def open_blob(sha256: str) -> BinaryIO:
    """The content, opened for reading. Raises NotFound when the store has lost it."""
    try:
        return blob_path(sha256).open("rb")
    except FileNotFoundError:
        raise NotFound(f"The content {sha256} is not in the store.") from None


def is_stored(blob: Blob) -> bool:
    """Whether the file of a content is there, and as long as it was."""
    try:
        return blob_path(blob.sha256).stat().st_size == blob.size_bytes
    except FileNotFoundError:
        return False


def known_content(blob: Blob) -> KnownContent:
    """The content as a file of a submission, which is not read to be stored again.

    Raises NotFound when the store has lost it.
    """
    if not is_stored(blob):
        raise NotFound(f"The content {blob.sha256} is not in the store.")
    return KnownContent(blob_path(blob.sha256), size_bytes=blob.size_bytes, sha256=blob.sha256)


def read_head(sha256: str, *, limit_bytes: int) -> str:
    """The first `limit_bytes` of a content as text; bytes that are not UTF-8 are replaced."""
    with open_blob(sha256) as file:
        return file.read(limit_bytes).decode("utf-8", errors="replace")


def read_tail(sha256: str, *, limit_bytes: int) -> str:
    """The last `limit_bytes` of a content as text; bytes that are not UTF-8 are replaced."""
    with open_blob(sha256) as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - limit_bytes))
        return file.read(limit_bytes).decode("utf-8", errors="replace")
