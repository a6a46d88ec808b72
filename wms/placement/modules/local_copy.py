"""Transfer module for `file:` addresses: copies within a workspace, and from and to host folders.

The settings list these folders of the portal's host; in them no symbolic link is followed. The
checksum is made while the file is read, and that of the copy compared with it; the copy appears
under its name only when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from wms.core.errors import InvalidInput, PilotageError
from wms.jobs.content.blobs import open_blob, store_blob
from wms.jobs.content.paths import path_in
from wms.jobs.models import WorkspaceFile
from wms.placement.modules.protocol import FAILED, ModuleFailed, TransferResult, TransferTask
from wms.placement.request_ad import FileLocation, file_location

_CHUNK_BYTES = 4 * 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def copy(task: TransferTask) -> TransferResult:
    """Copy the file. Raises ModuleFailed."""
    try:
        source = file_location(task.source_url, directory=task.directory)
        target = _named(file_location(task.destination_url, directory=task.directory), source)
        with _opened(task, source) as (stream, sha256):
            return _write(_Reading(task, stream, sha256), target)
    except (InvalidInput, PilotageError) as error:
        raise ModuleFailed(FAILED, str(error)) from None
    except OSError as error:
        raise ModuleFailed(FAILED, f"{error.filename or 'file'}: {error.strerror}") from None


def _named(target: FileLocation, source: FileLocation) -> FileLocation:
    """A directory as destination: the file keeps its name there. Raises InvalidInput."""
    if not target.is_directory:
        return target
    name = posixpath.basename(source.path)
    if target.is_absolute:
        return FileLocation(posixpath.join(target.path, name), True)
    # The name may come from a listed folder, where names can be what none of a workspace is.
    return FileLocation(path_in(target.path, name), False)


@contextmanager
def _opened(task: TransferTask, source: FileLocation) -> Iterator[tuple[BinaryIO, str]]:
    """The file, and its checksum where that is known."""
    if source.is_absolute:
        with _folder(task, source.path) as (folder, name):
            stream, sha256 = _open_file(folder, name, source.path), ""
    else:
        sha256 = _content(task, source.path)
        stream = open_blob(sha256)
    with stream:
        yield stream, sha256


def _content(task: TransferTask, path: str) -> str:
    file = WorkspaceFile.objects.filter(workspace_id=task.workspace_id, path=path).first()
    if file is None:
        raise ModuleFailed(FAILED, f"{path} is not in the workspace")
    return file.blob_id


def _open_file(folder: int, name: str, path: str) -> BinaryIO:
    # Not waiting: the name may be that of a pipe.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ModuleFailed(FAILED, f"{path} is no regular file")
    return os.fdopen(descriptor, "rb")


@contextmanager
def _folder(task: TransferTask, path: str) -> Iterator[tuple[int, str]]:
    """The folder of an absolute path, opened, and the name in it. Raises ModuleFailed."""
    root = next((folder for folder in task.conf.roots if _is_below(path, folder)), None)
    if root is None:
        listed = ", ".join(map(str, task.conf.roots)) or "none"
        raise ModuleFailed(
            FAILED,
            f"{path} is outside of the workspace and of the folders that are listed for "
            f"placements (PILOTAGE_PLACEMENT_ROOTS: {listed})",
        )
    *folders, name = PurePosixPath(path).relative_to(root).parts
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            descriptor = _step(descriptor, folder, path)
        yield descriptor, name
    finally:
        os.close(descriptor)


def _is_below(path: str, root: Path) -> bool:
    place = PurePosixPath(path)
    return place != PurePosixPath(root) and place.is_relative_to(root)


def _step(descriptor: int, name: str, path: str) -> int:
    """Go one folder down; a link there ends the walk, wherever it leads."""
    try:
        below = os.open(name, _FOLDER, dir_fd=descriptor)
    except OSError as error:
        raise ModuleFailed(FAILED, f"{path}: {name}: {error.strerror}") from None
    os.close(descriptor)
    return below


class _Reading:
    """The pieces of a stream; its size and checksum are known when all have been read."""

    def __init__(self, task: TransferTask, stream: BinaryIO, sha256: str) -> None:
        self.task = task
        self._stream, self._stored_sha256 = stream, sha256
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        limit = self.task.conf.file_bytes
        while chunk := self._stream.read(_CHUNK_BYTES):
            self.task.pulse()
            self.size_bytes += len(chunk)
            if self.size_bytes > limit:
                raise ModuleFailed(FAILED, f"the file is larger than {limit} bytes")
            self._digest.update(chunk)
            yield chunk
        self._check()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def _check(self) -> None:
        """Raise ModuleFailed for a file that is not the one that the request tells of."""
        expected = self.task.expected_bytes
        if expected is not None and self.size_bytes != expected:
            raise ModuleFailed(FAILED, f"the file has {self.size_bytes} bytes, not {expected}")
        for wanted in (self.task.expected_sha256, self._stored_sha256):
            if wanted and self.sha256 != wanted:
                raise ModuleFailed(FAILED, f"the file has SHA-256 {self.sha256}, not {wanted}")


def _write(reading: _Reading, target: FileLocation) -> TransferResult:
    if not target.is_absolute:
        blob = store_blob(reading, limit_bytes=reading.task.conf.file_bytes)
        return TransferResult(reading.size_bytes, {target.path: blob.pk})
    with _folder(reading.task, target.path) as (folder, name):
        _write_file(reading, folder, name)
    return TransferResult(reading.size_bytes)


def _write_file(reading: _Reading, folder: int, name: str) -> None:
    """Write the file under another name, look at it again, and give it its own."""
    temporary = f".{name[:200]}.{secrets.token_hex(8)}.part"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(temporary, flags, 0o644, dir_fd=folder), "w+b") as file:
        try:
            for chunk in reading:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            file.seek(0)
            if hashlib.file_digest(file, "sha256").hexdigest() != reading.sha256:
                raise ModuleFailed(FAILED, "the copy is not what was read")
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
    os.fsync(folder)
