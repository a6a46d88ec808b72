"""Files of `file:` addresses: in a workspace, and below host folders that the settings list.

In these folders no symbolic link is followed. What is written there appears under its name only
when it is complete, and was read again.
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

from wms.jobs.content.blobs import open_blob, store_blob
from wms.jobs.content.paths import path_in
from wms.jobs.models import WorkspaceFile
from wms.placement.addresses import FileLocation, file_location
from wms.placement.modules.protocol import FAILED, ModuleFailed, TransferResult, TransferTask
from wms.placement.modules.streaming import CHUNK_BYTES, Reading, Source

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened(task: TransferTask) -> Iterator[Source]:
    """The file at the source address. Raises ModuleFailed, OSError and InvalidInput."""
    place = file_location(task.source_url, directory=task.directory)
    name, sha256 = posixpath.basename(place.path), ""
    if place.is_absolute:
        with _folder(task, place.path) as (folder, last):
            stream = _open_file(folder, last, place.path)
    else:
        sha256 = _content(task, place.path)
        stream = open_blob(sha256)
    with stream:
        size = os.fstat(stream.fileno()).st_size
        yield Source(_pieces(stream), name, size, sha256)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while piece := stream.read(CHUNK_BYTES):
        yield piece


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


def write(reading: Reading) -> TransferResult:
    """Put the file at the destination address. Raises ModuleFailed, OSError and InvalidInput."""
    task = reading.task
    target = _named(
        file_location(task.destination_url, directory=task.directory), reading.source.name
    )
    if not target.is_absolute:
        blob = store_blob(reading, limit_bytes=task.conf.file_bytes)
        return TransferResult(reading.size_bytes, {target.path: blob.pk})
    with _folder(task, target.path) as (folder, name):
        _write_file(reading, folder, name)
    return TransferResult(reading.size_bytes)


def _named(target: FileLocation, name: str) -> FileLocation:
    """A directory as destination: the file keeps its name there. Raises InvalidInput."""
    if not target.is_directory:
        return target
    if target.is_absolute:
        return FileLocation(posixpath.join(target.path, name), True)
    # The name may come from elsewhere, where names can be what none of a workspace is.
    return FileLocation(path_in(target.path, name), False)


def _write_file(reading: Reading, folder: int, name: str) -> None:
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


def remove(task: TransferTask) -> TransferResult:
    """Remove the file at the source address; one that is gone already is no fault.

    Raises ModuleFailed, OSError and InvalidInput.
    """
    place = file_location(task.source_url, directory=task.directory)
    if not place.is_absolute:
        return TransferResult(None, removed=(place.path,))
    with _folder(task, place.path) as (folder, name), suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode):
            raise ModuleFailed(FAILED, f"{place.path} is no regular file")
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)
    return TransferResult(None)
