"""Files of `file:` addresses: in a workspace, and below host folders that the settings list.

In these folders no symbolic link is followed. What is written there appears under its name only
when it is complete, and was read again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import posixpath
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from wms.core.storage.current import scratch_folder
from wms.jobs.content.blobs import keep_file, open_blob, store_blob
from wms.jobs.content.paths import path_in
from wms.jobs.models import Blob, WorkspaceFile
from wms.placement.addresses import FileLocation, file_location
from wms.placement.modules.protocol import (
    FAILED,
    TIME_IS_OVER,
    Interrupted,
    ModuleFailed,
    TransferResult,
    TransferTask,
)
from wms.placement.modules.streaming import CHUNK_BYTES, Reading, Source

#: Smaller files begin anew.
_RESUMED_BYTES = 8 * 1024 * 1024
_WRITING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
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
        size = stream.seek(0, os.SEEK_END)
        yield Source(lambda _: (0, _pieces(stream)), name, size, sha256)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    stream.seek(0)
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
def _folder(task: TransferTask, path: str, *, makes: bool = False) -> Iterator[tuple[int, str]]:
    """The folder of an absolute path, opened, and the name in it. Raises ModuleFailed.

    It `makes` folders that are missing.
    """
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
            descriptor = _step(descriptor, folder, path, makes=makes)
        yield descriptor, name
    finally:
        os.close(descriptor)


def _is_below(path: str, root: Path) -> bool:
    place = PurePosixPath(path)
    return place != PurePosixPath(root) and place.is_relative_to(root)


def _step(descriptor: int, name: str, path: str, *, makes: bool) -> int:
    """Go one folder down; a link there ends the walk, wherever it leads."""
    try:
        if makes:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=descriptor)
                # Else a power cut could take the folder, with all that is told to be in it.
                os.fsync(descriptor)
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
        blob = _stored(reading)
        return TransferResult(reading.size_bytes, {target.path: blob.pk})
    with _folder(task, target.path, makes=True) as (folder, name):
        with _written(reading, f".{name[:200]}", folder) as temporary:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        if task.folders is None:
            os.fsync(folder)
        else:
            task.folders.add(folder)
    return TransferResult(reading.size_bytes)


def _stored(reading: Reading) -> Blob:
    """The content in the store; of a large file that may break off, what comes is kept beside."""
    limit_bytes, source = reading.task.conf.file_bytes, reading.source
    if (source.size_bytes or _RESUMED_BYTES) < _RESUMED_BYTES:
        return store_blob(reading, limit_bytes=limit_bytes)
    # What is left there is removed after a day.
    incoming = scratch_folder()
    folder = os.open(incoming, _FOLDER)
    try:
        with _written(reading, "placement", folder, mode=0o600) as temporary:
            return keep_file(
                incoming / temporary, sha256=reading.sha256, size_bytes=reading.size_bytes
            )
    finally:
        os.close(folder)


def _opened_to_write(reading: Reading, stem: str, folder: int, mode: int) -> tuple[str, int]:
    """A temporary name and its file: the same in all attempts on the same source.

    Another attempt that was given up, but lives, may still write to that file: then it is a new one
    that nobody goes on with.
    """
    source, task = reading.source, reading.task
    if source.version:
        same = f"{task.source_url}\0{source.version}\0{source.size_bytes}"
        mark = f"{task.request_id}-{hashlib.sha256(same.encode()).hexdigest()[:16]}"
        kept = f"{stem}.{mark}.part"
        descriptor = os.open(kept, _WRITING, mode, dir_fd=folder)
        if _is_ours_alone(descriptor, kept, folder):
            return kept, descriptor
        os.close(descriptor)
    fresh = f"{stem}.{secrets.token_hex(8)}.part"
    return fresh, os.open(fresh, _WRITING | os.O_EXCL, mode, dir_fd=folder)


def _is_ours_alone(descriptor: int, name: str, folder: int) -> bool:
    """Lock a file for as long as it is open; whether that went, and it still has its name.

    Without the name it may be a whole file that was put in its place meanwhile.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.lstat(name, dir_fd=folder))
    except OSError:
        return False


@contextmanager
def _written(reading: Reading, stem: str, folder: int, *, mode: int = 0o644) -> Iterator[str]:
    """The temporary name under which the whole file is; the caller gives it its own.

    One that broke off stays if another attempt may go on with it.
    """
    temporary, descriptor = _opened_to_write(reading, stem, folder, mode)
    try:
        reading.write_to(descriptor)
        yield temporary
    except BaseException as error:
        if not (_is_interruption(error) and reading.source.version) or reading.task.is_last:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)


def _is_interruption(error: BaseException) -> bool:
    is_late = isinstance(error, ModuleFailed) and error.exit_code == TIME_IS_OVER
    return is_late or isinstance(error, Interrupted)


def _named(target: FileLocation, name: str) -> FileLocation:
    """A directory as destination: the file keeps its name there. Raises InvalidInput."""
    if not target.is_directory:
        return target
    if target.is_absolute:
        return FileLocation(posixpath.join(target.path, name), True)
    # The name may come from elsewhere, where names can be what none of a workspace is.
    return FileLocation(path_in(target.path, name), False)


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
