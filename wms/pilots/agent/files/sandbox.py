"""Files in a job's directory: safe paths, executables, outputs, shortened logs, removal."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path, PurePosixPath
from typing import BinaryIO

#: Size above which only beginning and end of stdout or stderr are sent.
LOG_LIMIT_BYTES = 10 * 1024 * 1024

#: Most files of one announced folder that are sent.
MOST_FILES_OF_FOLDER = 10_000
_LONGEST_PATH = 1024
_CHUNK = 256 * 1024
_BINARY = b"\x7fELF"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BadPath(Exception):
    """A path that would leave the job's directory, or that cannot exist in it."""


def inside(directory: Path, path: str) -> Path:
    """Return `path` within `directory`; raise `BadPath` if it would leave it.

    Links are followed first: the payload may have laid some.
    """
    pure = PurePosixPath(path)
    if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts:
        raise BadPath(f"{path!r} is not a relative path within the job's directory")
    # Not Path.resolve(): it raises RuntimeError for a circle of links.
    root = Path(os.path.realpath(directory))
    try:
        target = Path(os.path.realpath(root / pure))
    except RecursionError:
        raise BadPath(f"{path!r} is a link to a link, and so on without end") from None
    if target == root or root not in target.parents:
        raise BadPath(f"{path!r} leads out of the job's directory")
    return target


def locate_executable(directory: Path, executable: str) -> str:
    """Return the file to execute: absolute paths as they are, others from the sandbox."""
    if PurePosixPath(executable).is_absolute():
        return executable
    target = inside(directory, executable)
    if target.is_file():
        target.chmod(target.stat().st_mode | 0o700)
    return str(target)


def on_node(directory: Path, executable: str) -> str:
    """Path of an executable on the node."""
    is_absolute = PurePosixPath(executable).is_absolute()
    return executable if is_absolute else str(inside(directory, executable))


def why_not_executable(path: str, *, sees_node: bool = True) -> str:
    """Reason why a file cannot be executed, of the usual ones; empty where none is found.

    Where it does not see the node its interpreter is another system's.
    """
    name = os.path.basename(path)
    try:
        with open(path, "rb") as file:
            first = file.readline(200)
    except OSError as error:
        # Who may execute a file need not be able to read it.
        is_there = isinstance(error, PermissionError)
        return "" if is_there else f"cannot start {path}: {error.strerror or error}"
    if first.startswith(_BINARY):
        return ""
    if not first.startswith(b"#!"):
        return f"cannot start {name}: no known program format; a script needs a first line #!"
    if first.endswith(b"\r\n"):
        why = "its lines end as in Windows, so that its first line names no interpreter"
        return f"cannot start {name}: {why}"
    words = first[2:].split()
    if sees_node and words and not os.path.exists(words[0]):
        line = first.decode("utf-8", "replace").strip()
        return (
            f"cannot start {name}: its first line names an interpreter that does not exist here: "
            f"{line}"
        )
    return ""


def find_output(directory: Path, path: str) -> Path | None:
    """Return the output file, or None if the payload has not left a regular file there."""
    try:
        target = inside(directory, path)
        return target if target.is_file() else None
    except (BadPath, OSError):
        return None


def is_folder(directory: Path, path: str) -> bool:
    """Tell whether the payload has left a folder there, which is no link."""
    try:
        target = inside(directory, path)
        return target.is_dir() and not os.path.islink(directory / path.rstrip("/"))
    except (BadPath, OSError):
        return False


def files_below(directory: Path, folder: str) -> list[str]:
    """Names of the plain files in a folder and the folders in it, in order; links to folders are
    not followed. Raises BadPath for a file whose name the server cannot take, and for too many.
    """
    top = os.path.realpath(directory)
    found: list[str] = []
    for place, folders, names in os.walk(os.path.join(top, folder.rstrip("/"))):
        folders.sort()
        for name in sorted(names):
            path = os.path.relpath(os.path.join(place, name), top)
            if find_output(directory, path) is None:
                continue
            if not _is_storable(path):
                raise BadPath(f"{path!r} in {folder} has a name that cannot be stored")
            found.append(path)
            if len(found) > MOST_FILES_OF_FOLDER:
                raise BadPath(f"{folder} has more than {MOST_FILES_OF_FOLDER} files")
    return found


def _is_storable(path: str) -> bool:
    """Tell whether the server takes a file of this name."""
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return False
    return length <= _LONGEST_PATH and path.isprintable() and "\\" not in path


def bounded_log(log: Path) -> Path:
    """Return a file of at most about `LOG_LIMIT_BYTES` with the beginning and the end of `log`."""
    size = log.stat().st_size
    if size <= LOG_LIMIT_BYTES:
        return log
    half = LOG_LIMIT_BYTES // 2
    short = log.with_name(log.name + ".short")
    with log.open("rb") as source, short.open("wb") as sink:
        _copy_bytes(source, sink, half)
        sink.write(f"\n[... pilot: {size - 2 * half} bytes left out here ...]\n".encode())
        source.seek(size - half)
        _copy_bytes(source, sink, half)
    return short


def remove(directory: Path) -> None:
    """Remove a directory with all that is in it, also what the payload closed or made read-only.

    Folders in folders are moved up before they are emptied: they may be nested deeper than a path
    can name, and than this program can follow.
    """
    with contextlib.suppress(OSError):
        os.chmod(directory, 0o700)
        top = os.open(directory, _FOLDER)
        try:
            while _emptied_by_one_level(top):
                continue
        finally:
            os.close(top)
        os.rmdir(directory)


def _emptied_by_one_level(top: int) -> bool:
    """Tell whether anything could be removed."""
    done = False
    with os.scandir(top) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    _dissolve(top, entry.name)
                else:
                    os.unlink(entry.name, dir_fd=top)
                done = True
    return done


def _dissolve(top: int, name: str) -> None:
    """Remove a folder; the folders in it are in `top` then. Raises OSError if one stays."""
    os.chmod(name, 0o700, dir_fd=top)
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    # Closed ones cannot be moved.
                    os.chmod(entry.name, 0o700, dir_fd=folder)
                    fresh = secrets.token_hex(8)
                    os.rename(entry.name, fresh, src_dir_fd=folder, dst_dir_fd=top)
                else:
                    os.unlink(entry.name, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _copy_bytes(source: BinaryIO, sink: BinaryIO, count: int) -> None:
    while count > 0:
        piece = source.read(min(count, _CHUNK))
        if not piece:
            return
        sink.write(piece)
        count -= len(piece)
