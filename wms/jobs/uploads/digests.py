"""SHA-256 of uploads, computed while their pieces come; what a process did not see, it reads once.

Each process remembers how far it has come with the latest uploads, while it reads too. That is only
what saves it from reading a file: pieces that other processes took are read where it left off, and
a memory that is lost costs one reading of the file.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple

from wms.jobs.models import ResumableUpload
from wms.jobs.uploads.places import read_piece

_CHUNK_BYTES = 1024 * 1024
#: A reading that is broken off goes on here.
_NOTED_BYTES = 256 * _CHUNK_BYTES
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
    _note(key, _Part(offset + len(content), digest))


def unread_bytes(upload: ResumableUpload) -> int:
    """Bytes of a whole upload that have to be read for its digest."""
    return upload.size_bytes - _known((upload.pk, upload.created_at)).end


def digest_of(upload: ResumableUpload) -> str:
    """SHA-256 of a whole upload. Raises ObjectLost when its file is gone."""
    key = (upload.pk, upload.created_at)
    end, digest = _known(key)
    digest, noted = digest.copy(), end
    while chunk := read_piece(upload.pk, end, min(_CHUNK_BYTES, upload.size_bytes - end)):
        digest.update(chunk)
        end += len(chunk)
        if end - noted >= _NOTED_BYTES:
            noted = end
            _note(key, _Part(end, digest.copy()))
    return str(digest.hexdigest())


def forget(upload: ResumableUpload) -> None:
    """Forget what is known of an upload that has come to its end."""
    with _lock:
        _parts.pop((upload.pk, upload.created_at), None)


def _note(key: tuple[int, datetime], part: _Part) -> None:
    with _lock:
        _parts[key] = part
        _parts.move_to_end(key)
        while len(_parts) > _REMEMBERED:
            _parts.popitem(last=False)


def _known(key: tuple[int, datetime]) -> _Part:
    with _lock:
        return _parts.get(key) or _Part(0, hashlib.sha256())
