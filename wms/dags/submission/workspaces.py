"""Files of a DAG's workspace by path: opened on demand, read, and written."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import BinaryIO, Final

from django.db.models.functions import Now

from wms.core.errors import InvalidInput
from wms.jobs.content.blobs import open_blob, store_bytes
from wms.jobs.models import Blob, Workspace, WorkspaceFile

#: Rescues of the largest DAGs are smaller.
MAX_READ_BYTES: Final = 64 * 1024 * 1024
_SMALL_BYTES: Final = 1024 * 1024
_TEXT_BYTES: Final = 16 * 1024 * 1024
_LOOKED_AT_BYTES: Final = 8192


class WorkspaceFiles(Mapping[str, BinaryIO]):
    """Context manager: files by their path, opened on demand, closed at the end."""

    def __init__(self, workspace_id: int) -> None:
        files = WorkspaceFile.objects.filter(workspace_id=workspace_id)
        self._blobs = dict(files.values_list("path", "blob_id"))
        self._opened = ExitStack()

    def __enter__(self) -> WorkspaceFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def __getitem__(self, path: str) -> BinaryIO:
        return self._opened.enter_context(open_blob(self._blobs[path]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._blobs)

    def __len__(self) -> int:
        return len(self._blobs)

    def __contains__(self, path: object) -> bool:
        return path in self._blobs


class ReadFiles(Mapping[str, BinaryIO]):
    """Files by their path, as they are sent for a check: each is read when it is looked up.

    What is large and no text is empty, but for those that are named `whole`: nobody reads it to
    learn what a DAG is.
    """

    def __init__(self, workspace_id: int, *, whole: Collection[str]) -> None:
        files = WorkspaceFile.objects.filter(workspace_id=workspace_id).order_by("path")
        rows = files.values_list("path", "blob_id", "blob__size_bytes")
        self._blobs = {path: (sha256, size_bytes) for path, sha256, size_bytes in rows}
        self._whole = frozenset(whole)

    def __getitem__(self, path: str) -> BinaryIO:
        sha256, size_bytes = self._blobs[path]
        if size_bytes > _TEXT_BYTES and path not in self._whole:
            return io.BytesIO()
        with open_blob(sha256) as stream:
            head = stream.read(_LOOKED_AT_BYTES)
            if size_bytes > _SMALL_BYTES and b"\0" in head and path not in self._whole:
                return io.BytesIO()
            return io.BytesIO(head + stream.read())

    def __iter__(self) -> Iterator[str]:
        return iter(self._blobs)

    def __len__(self) -> int:
        return len(self._blobs)


def read_file(workspace_id: int, path: str, *, limit_bytes: int = MAX_READ_BYTES) -> bytes | None:
    """Content of one file; None when there is none of this path.

    Raises InvalidInput for a file above the limit, because it is held in memory.
    """
    files = WorkspaceFile.objects.filter(workspace_id=workspace_id, path=path)
    file = files.select_related("blob").first()
    if file is None:
        return None
    size_bytes = file.blob.size_bytes
    if size_bytes > limit_bytes:
        raise InvalidInput.of(
            f"the file has {size_bytes} bytes, and at most {limit_bytes} are read", file=path
        )
    with open_blob(file.blob_id) as stream:
        return stream.read()


def put_file(workspace: Workspace, path: str, content: bytes) -> Blob:
    """Write a file into the workspace; it replaces one of the same path."""
    blob = store_bytes(content)
    WorkspaceFile.objects.update_or_create(
        workspace=workspace,
        path=path,
        defaults={"blob": blob, "attempt": None, "modified_at": Now()},
    )
    return blob
