"""Store in a folder: of one host, or one that all hosts of the portal share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from wms.core.storage.protocol import NOTHING, Growing, Link, Listed, ObjectLost, StoreFailed

_MODE = 0o700


@dataclass(frozen=True, slots=True)
class FolderStore:
    """Objects are files, named by their keys; a file appears under its name when it is whole."""

    base: Path

    @property
    def name(self) -> str:
        """Name of the store, for people."""
        return f"the folder {self.base}"

    @property
    def has_links(self) -> bool:
        """No: a folder has no address."""
        return False

    def path_of(self, key: str) -> Path:
        """File of an object."""
        return self.base / key

    def size_of(self, key: str) -> int | None:
        """Size of an object; None where there is none."""
        try:
            return self.path_of(key).stat().st_size
        except FileNotFoundError:
            return None

    def read(self, key: str, start: int, length: int) -> bytes:
        """Bytes of an object from `start` on; fewer at its end. Raises ObjectLost."""
        return read_file(self.path_of(key), start, length)

    def open(self, key: str) -> BinaryIO:
        """An object as a stream with a position. Raises ObjectLost."""
        try:
            return self.path_of(key).open("rb")
        except FileNotFoundError:
            raise lost(key) from None

    def put(self, key: str, path: Path) -> None:
        """Take a file of the same file system over as an object; it was synced by its writer."""
        target = self.path_of(key)
        target.parent.mkdir(parents=True, exist_ok=True, mode=_MODE)
        os.replace(path, target)
        sync_path(target.parent)

    def put_new(self, key: str, content: bytes) -> bool:
        """Write a small object if there is none; it appears with all of its content."""
        incoming = self.base / "incoming"
        incoming.mkdir(parents=True, exist_ok=True, mode=_MODE)
        with tempfile.NamedTemporaryFile(dir=incoming) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            try:
                os.link(file.name, self.path_of(key))
            except FileExistsError:
                return False
        sync_path(self.base)
        return True

    def delete(self, keys: Collection[str]) -> None:
        """Delete objects, with the counts of their lines."""
        for key in keys:
            self.path_of(key).unlink(missing_ok=True)
            self.counts_path(key).unlink(missing_ok=True)

    def listed(self, folder: str) -> Iterator[Listed]:
        """Files below a folder."""
        for path in (self.base / folder).rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file():
                    facts = path.stat()
                    modified_at = datetime.fromtimestamp(facts.st_mtime, UTC)
                    yield Listed(str(path.relative_to(self.base)), facts.st_size, modified_at)

    def folders(self) -> Collection[str]:
        """Folders below that of the store."""
        return {each.name for each in self.base.glob("*") if each.is_dir()}

    def append(self, file: Growing, content: bytes, *, at: int, is_durable: bool = False) -> None:
        """Write a piece at a byte.

        A file that is an object as well is left to that, and a new one begins: the first piece, or
        one behind what is lost then.
        """
        for number, offset, piece in _spread(content, at, file.file_bytes):
            path = self._part(file, number)
            path.parent.mkdir(parents=True, exist_ok=True, mode=_MODE)
            if is_durable and (offset == 0 or _is_object(path)):
                path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                _write_at(descriptor, piece, offset)
                if is_durable:
                    os.fdatasync(descriptor)
            finally:
                os.close(descriptor)

    def read_grown(self, file: Growing, start: int, length: int) -> bytes:
        """Bytes of a growing file; fewer at its end. Raises ObjectLost where they are gone."""
        pieces = []
        while length > 0:
            number, offset = divmod(start, file.file_bytes) if file.file_bytes else (0, start)
            wanted = min(length, file.file_bytes - offset) if file.file_bytes else length
            pieces.append(read_file(self._part(file, number), offset, wanted))
            if len(pieces[-1]) < wanted:
                break
            start, length = start + wanted, length - wanted
        return b"".join(pieces)

    def keep_grown(self, file: Growing, key: str, *, size_bytes: int) -> bool:
        """Give a growing file that is one file the name of an object, too."""
        path = self._part(file, 0)
        try:
            if path.stat().st_size > size_bytes:
                # What an older file of a restored database has behind the end.
                if _is_object(path):
                    return False
                os.truncate(path, size_bytes)
            self._name(path, key)
        except FileNotFoundError:
            return False
        return True

    def _name(self, path: Path, key: str) -> None:
        """Give a file another name, which it has after a power cut too."""
        sync_path(path)
        incoming = self.base / "incoming"
        incoming.mkdir(parents=True, exist_ok=True, mode=_MODE)
        with tempfile.TemporaryDirectory(dir=incoming) as folder:
            link = Path(folder) / "file"
            os.link(path, link)
            self.put(key, link)

    def remove_within(self, file: Growing, start: int, end: int) -> None:
        """Remove the files that lie whole between two bytes."""
        numbers = range(-(-start // file.file_bytes), end // file.file_bytes)
        for number, path in self._later_parts(file):
            if number in numbers:
                path.unlink(missing_ok=True)

    def remove_grown(self, files: Iterable[tuple[Growing, int]]) -> None:
        """Remove growing files, with the counts of their lines; their sizes save a search."""
        for file, size_bytes in files:
            if file.file_bytes and size_bytes > file.file_bytes:
                for _, path in self._later_parts(file):
                    path.unlink(missing_ok=True)
            self.delete([file.key])

    def counts_path(self, key: str) -> Path:
        """File beside the counted one."""
        path = self.path_of(key)
        return path.with_name(f"{path.name}.lines")

    def sweep(self, *, now: datetime) -> int:
        """Remove files that were broken off a day ago or earlier; their number."""
        limit = (now - timedelta(days=1)).timestamp()
        old = [each for each in (self.base / "incoming").glob("*") if _is_older(each, limit)]
        for each in old:
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)
        return len(old)

    @property
    def serves_people(self) -> bool:
        """No: a folder has no address."""
        return False

    def read_link(self, key: str, *, answer: Mapping[str, str] = NOTHING) -> Link:
        """None: see `has_links`."""
        raise StoreFailed("A folder has no links.")

    def write_link(self, key: str, *, sha256: str, size_bytes: int) -> Link:
        """None: see `has_links`."""
        raise StoreFailed("A folder has no links.")

    def seen(self, key: str, *, sha256: str, size_bytes: int) -> str:
        """Nothing was written by a link."""
        return ""

    def move(self, source: str, key: str, *, mark: str, size_bytes: int) -> bool:
        """Nothing was written by a link."""
        return False

    def _part(self, file: Growing, number: int) -> Path:
        path = self.path_of(file.key)
        return path.with_name(f"{path.name}.{number}") if number else path

    def _later_parts(self, file: Growing) -> Iterator[tuple[int, Path]]:
        path = self.path_of(file.key)
        for part in path.parent.glob(f"{path.name}.*"):
            if part.suffix[1:].isdecimal():
                yield int(part.suffix[1:]), part


def read_file(path: Path, start: int, length: int) -> bytes:
    """Bytes of a file from `start` on. Raises ObjectLost when it is gone."""
    if length <= 0:
        return b""
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)
    except FileNotFoundError:
        raise lost(path.name) from None


def lost(key: str) -> ObjectLost:
    """Error that tells that an object is not there."""
    return ObjectLost(f"The content {key.rsplit('/', 1)[-1]} is not in the store.")


def _spread(content: bytes, at: int, part_bytes: int) -> Iterator[tuple[int, int, bytes]]:
    """Parts over which a piece spreads: number, place in it, bytes."""
    done = 0
    while done < len(content):
        number, offset = divmod(at + done, part_bytes) if part_bytes else (0, at + done)
        end = done + part_bytes - offset if part_bytes else len(content)
        yield number, offset, content[done:end]
        done = end


def _write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of it."""
    written = 0
    while written < len(content):
        written += os.pwrite(descriptor, content[written:], offset + written)


def _is_object(path: Path) -> bool:
    """Whether the file has a name among the objects, too."""
    try:
        return path.stat().st_nlink > 1
    except FileNotFoundError:
        return False


def sync_path(path: Path) -> None:
    """Sync a file, or a folder, so that a new file's name survives a power cut, as its row does."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_older(path: Path, limit: float) -> bool:
    """Whether nothing was written to it since then; what has come to its end meanwhile is not."""
    try:
        return path.stat().st_mtime < limit
    except FileNotFoundError:
        return False
