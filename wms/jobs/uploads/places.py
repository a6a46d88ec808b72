"""Files of uploads that are under way, in the store of contents: writing, reading, removal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from wms.core.storage.current import current_store, writable_store
from wms.core.storage.protocol import Growing

_FOLDER = "uploads"
_NAME = re.compile(rf"{_FOLDER}/[0-9a-f]{{2}}/([0-9]{{1,19}})(?:\.[a-z0-9-]+)?")
#: Of a bucket: parts of a content are copied within it, and have at least 5 MiB there.
_OBJECT_BYTES = 8 * 1024 * 1024
#: More than any upload has in parts that are named without a search.
_ANY_SIZE = 2**60


def upload_file(upload_id: int) -> Growing:
    """The bytes of an upload that are here."""
    return Growing(f"{_FOLDER}/{upload_id % 256:02x}/{upload_id}", 0, _OBJECT_BYTES)


def write_piece(upload_id: int, content: bytes, *, offset: int) -> None:
    """Write a piece, so that it is there after a power cut too. The caller has locked the row.

    A database that was restored gives ids again whose files are there. So the first piece begins
    a new file; and one that is a content as well is left to that: its upload lacks bytes then.
    """
    writable_store().append(upload_file(upload_id), content, at=offset, is_durable=True)


def read_piece(upload_id: int, start: int, length: int) -> bytes:
    """Bytes of an upload. Raises ObjectLost when they are gone."""
    return current_store().read_grown(upload_file(upload_id), start, length)


def remove_upload_file(upload_id: int) -> None:
    """Remove the file of an upload; it may be gone already."""
    writable_store().remove_grown([(upload_file(upload_id), _ANY_SIZE)])


def old_upload_files(before: datetime) -> Iterator[int]:
    """Uploads, by their ids, to whose files nothing was written since then."""
    youngest: dict[int, datetime] = {}
    for each in current_store().listed(_FOLDER):
        # A bucket may have objects of others.
        if found := _NAME.fullmatch(each.key):
            upload_id = int(found[1])
            last = youngest.get(upload_id, each.modified_at)
            youngest[upload_id] = max(last, each.modified_at)
    return (upload_id for upload_id, last in youngest.items() if last < before)
