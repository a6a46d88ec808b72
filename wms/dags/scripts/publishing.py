"""Publication of a script's changes in its workspace, together with the end of its run.

Every run has its own copy of the workspace, so two that run at once may change the same file. The
later end wins, with two exceptions: where both only appended to a file, as to a log, both additions
are kept; and a file that one has changed is not removed by the other.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models.functions import Collate

from wms.jobs.content.blobs import open_blob, store_blob, store_bytes
from wms.jobs.models import Blob, Workspace, WorkspaceFile

#: A file to which outputs are appended keeps so much of its end: its content is stored anew with
#: each run, while the output of every run stays with the run.
APPENDED_BYTES = 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_CUT_MARK = b"[what was here is cut off]\n"


@dataclass(frozen=True, slots=True)
class Change:
    """New content of a path, and the content that the run started with, if any."""

    sha256: str
    base: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a run: new contents by path, removed paths with theirs, and appended text."""

    files: Mapping[str, Change] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    appended: Mapping[str, bytes] = field(default_factory=dict)

    def paths(self) -> list[str]:
        """All paths that are changed."""
        return sorted({*self.files, *self.removed, *self.appended})


NO_CHANGES = Changes()


def publish(workspace_id: int, changes: Changes, *, now: datetime) -> None:
    """Write the changes into the workspace, within the caller's transaction."""
    paths = changes.paths()
    if not paths:
        return
    # One script after the other; outputs of jobs do not wait, which need the row's key only.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)
    files = WorkspaceFile.objects.filter(workspace_id=workspace_id, path__in=paths)
    # In the order in which those lock who write outputs of jobs.
    locked = files.order_by(Collate("path", "C")).select_for_update(of=("self",))
    current = dict(locked.values_list("path", "blob_id"))
    contents = {path: _merged(each, current.get(path)) for path, each in changes.files.items()}
    for path, addition in changes.appended.items():
        contents[path] = _appended(contents.get(path) or current.get(path), addition)
    gone = [path for path, base in changes.removed.items() if current.get(path) == base]
    files.filter(path__in=set(gone) - set(contents)).delete()
    _write(workspace_id, contents, now)


def _write(workspace_id: int, contents: Mapping[str, str], now: datetime) -> None:
    WorkspaceFile.objects.bulk_create(
        [
            WorkspaceFile(workspace_id=workspace_id, path=path, blob_id=sha256, modified_at=now)
            for path, sha256 in sorted(contents.items())
        ],
        update_conflicts=True,
        unique_fields=["workspace", "path"],
        update_fields=["blob", "attempt", "modified_at"],
        batch_size=1000,
    )


def _merged(change: Change, current: str | None) -> str:
    """Content to keep, where another run may have changed the file meanwhile."""
    if current is None or not change.base or current in (change.base, change.sha256):
        return change.sha256
    sizes = dict(
        Blob.objects.filter(pk__in=(change.base, current, change.sha256)).values_list(
            "sha256", "size_bytes"
        )
    )
    if change.base not in sizes:
        # It was replaced, and removed after a day, while the script ran.
        return change.sha256
    base_bytes = sizes[change.base]
    both = (current, change.sha256)
    if not all(_begins_with(each, change.base, base_bytes, sizes[each]) for each in both):
        return change.sha256
    pieces = _joined(current, change.sha256, base_bytes)
    return store_blob(pieces, limit_bytes=sizes[current] + sizes[change.sha256]).pk


def _begins_with(sha256: str, base: str, base_bytes: int, size_bytes: int) -> bool:
    if size_bytes < base_bytes:
        return False
    digest = hashlib.sha256()
    for chunk in _chunks(sha256, 0, base_bytes):
        digest.update(chunk)
    return digest.hexdigest() == base


def _joined(first: str, second: str, offset: int) -> Iterator[bytes]:
    yield from _chunks(first)
    yield from _chunks(second, offset)


def _chunks(sha256: str, offset: int = 0, limit_bytes: int | None = None) -> Iterator[bytes]:
    left = limit_bytes
    with open_blob(sha256) as file:
        file.seek(offset)
        while left is None or left > 0:
            chunk = file.read(_CHUNK_BYTES if left is None else min(left, _CHUNK_BYTES))
            if not chunk:
                return
            left = None if left is None else left - len(chunk)
            yield chunk


def _appended(current: str | None, addition: bytes) -> str:
    before = b""
    if current is not None:
        with open_blob(current) as file:
            end = file.seek(0, io.SEEK_END)
            file.seek(max(0, end - APPENDED_BYTES))
            before = file.read(APPENDED_BYTES)
    return store_bytes(_bounded(before + addition)).pk


def _bounded(content: bytes) -> bytes:
    """End of a content, from the beginning of a line."""
    if len(content) <= APPENDED_BYTES:
        return content
    kept = content[len(_CUT_MARK) - APPENDED_BYTES :]
    return _CUT_MARK + kept[kept.find(b"\n") + 1 :]
