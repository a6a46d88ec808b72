"""SHA-256 of uploads, computed while their pieces come; what a process did not see, it reads once.

Each process remembers how far it has come with the latest uploads. That is only what saves it from
reading a file: pieces that other processes took are read where it left off, and a memory that is
lost costs one reading of the file.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple

from wms.jobs.models import ResumableUpload
from wms.jobs.uploads.places import upload_path

_CHUNK_BYTES = 1024 * 1024
_REMEMBERED = 256


class _Part(NamedTuple):
    """Digest of the beginning of an upload, up to this byte."""

    end: int
    digest: Any


#: The time is part of the key: a database that was restored gives its ids again.
_parts: OrderedDict[tuple[int, datetime], _Part] = OrderedDict()
_lock = Lock()


def note_piece(upload: ResumableUpload, offset: int, content: bytes) -> None:
    """Take in a piece that is committed; one that does not follow what is known is left out."""
    key = (upload.pk, upload.created_at)
    part = _known(key) if offset else _Part(0, hashlib.sha256())
    if part.end != offset:
        return
    digest = part.digest.copy()
    digest.update(content)
    with _lock:
        _parts[key] = _Part(offset + len(content), digest)
        _parts.move_to_end(key)
        while len(_parts) > _REMEMBERED:
            _parts.popitem(last=False)


def digest_of(upload: ResumableUpload) -> str:
    """SHA-256 of a whole upload. Raises FileNotFoundError when its file is gone."""
    part = _known((upload.pk, upload.created_at))
    digest, left = part.digest.copy(), upload.size_bytes - part.end
    with upload_path(upload.pk).open("rb", buffering=0) as file:
        file.seek(part.end)
        while left > 0 and (chunk := file.read(min(_CHUNK_BYTES, left))):
            digest.update(chunk)
            left -= len(chunk)
    return str(digest.hexdigest())


def forget(upload: ResumableUpload) -> None:
    """Forget what is known of an upload that has come to its end."""
    with _lock:
        _parts.pop((upload.pk, upload.created_at), None)


def _known(key: tuple[int, datetime]) -> _Part:
    with _lock:
        return _parts.get(key) or _Part(0, hashlib.sha256())
