"""Bodies of requests with files: multipart forms, and archives that are made while they are sent.

Nothing is held in memory or written to disk before, and the length is known from the beginning.
"""

from __future__ import annotations

import secrets
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Protocol

from ..errors import UsageError

_PIECE_BYTES = 256 * 1024
_BLOCK = 512
#: Told how many bytes were sent, and of how many.
Progress = Optional[Callable[[int, int], None]]


class Content(Protocol):
    """Bytes of a length that is known."""

    @property
    def length(self) -> int:
        """Number of bytes."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of the content."""
        ...


@dataclass(frozen=True)
class Bytes:
    """Content that is in memory."""

    content: bytes

    @property
    def length(self) -> int:
        """Number of bytes."""
        return len(self.content)

    def __iter__(self) -> Iterator[bytes]:
        """The content as one piece."""
        yield self.content


class FileContent:
    """Content of a file, as long as it is now."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = size_of(path)

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of the file. Raises UsageError if it is shorter or longer than it was."""
        left = self.length
        try:
            with self.path.open("rb") as file:
                while piece := file.read(min(_PIECE_BYTES, left) if left else 1):
                    left -= len(piece)
                    if left < 0:
                        break
                    yield piece
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}.") from None
        if left:
            raise UsageError(f"{self.path} was changed while it was sent: send it again.")


class Archive:
    """Files by their names as a tar archive; it is the same whenever they are the same.

    Those in `only_named` are empty in it.
    """

    def __init__(self, files: Mapping[str, Path], *, only_named: frozenset[str] = frozenset()):
        self._members: list[tuple[bytes, Content]] = []
        for name in sorted(files):
            content: Content = Bytes(b"") if name in only_named else FileContent(files[name])
            head = tarfile.TarInfo(name)
            head.size, head.mode = content.length, 0o755
            self._members.append((head.tobuf(tarfile.PAX_FORMAT), content))
        self.length = 2 * _BLOCK + sum(
            len(head) + content.length + -content.length % _BLOCK for head, content in self._members
        )

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of the archive."""
        for head, content in self._members:
            yield head
            yield from content
            yield bytes(-content.length % _BLOCK)
        yield bytes(2 * _BLOCK)


@dataclass(frozen=True)
class Part:
    """Part of a form: a text, or with a `filename` a file."""

    field: str
    content: Content
    filename: str = ""

    @property
    def head(self) -> bytes:
        """Headers of the part."""
        named = f'form-data; name="{self.field}"'
        if not self.filename:
            return f"Content-Disposition: {named}\r\n\r\n".encode()
        # As browsers write them.
        name = self.filename.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        return (
            f'Content-Disposition: {named}; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()


def text_part(field: str, text: str) -> Part:
    """Part with a text."""
    return Part(field, Bytes(text.encode()))


class Form:
    """Multipart form; `progress` is told of what was sent."""

    def __init__(self, parts: Sequence[Part], progress: Progress = None) -> None:
        boundary = secrets.token_hex(16)
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self._parts, self._progress = parts, progress
        self._between = f"--{boundary}\r\n".encode()
        self._end = f"--{boundary}--\r\n".encode()
        self.length = len(self._end) + sum(
            len(self._between) + len(part.head) + part.content.length + 2 for part in parts
        )

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of the form."""
        sent = 0
        for piece in self._pieces():
            yield piece
            sent += len(piece)
            if self._progress is not None:
                self._progress(sent, self.length)

    def _pieces(self) -> Iterator[bytes]:
        for part in self._parts:
            yield self._between + part.head
            yield from part.content
            yield b"\r\n"
        yield self._end


class Plain:
    """Body that is bytes or a text."""

    def __init__(self, content: bytes, content_type: str) -> None:
        self._content, self.content_type = content, content_type
        self.length = len(content)

    def __iter__(self) -> Iterator[bytes]:
        """The content as one piece."""
        yield self._content


class FilePiece:
    """Body that is a part of a file which is `size` bytes long; `sent` is told how far it is."""

    content_type = "application/partial-upload"

    def __init__(
        self,
        path: Path,
        offset: int,
        length: int,
        size: int,
        sent: Callable[[int], None] | None = None,
    ) -> None:
        self._path, self._offset, self.length = path, offset, length
        self._size, self._sent = size, sent

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of the part. Raises UsageError if the file is shorter or longer than it was."""
        if size_of(self._path) != self._size:
            raise self._changed()
        at, end = self._offset, self._offset + self.length
        try:
            with self._path.open("rb") as file:
                file.seek(at)
                while at < end and (piece := file.read(min(_PIECE_BYTES, end - at))):
                    yield piece
                    at += len(piece)
                    if self._sent is not None:
                        self._sent(at)
        except OSError as error:
            raise UsageError(f"{self._path} cannot be read: {error.strerror}.") from None
        if at < end:
            raise self._changed()

    def _changed(self) -> UsageError:
        return UsageError(f"{self._path} was changed while it was sent: send it again.")


def size_of(path: Path) -> int:
    """Size of a file. Raises UsageError if it is none."""
    try:
        found = path.stat()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    if not path.is_file():
        raise UsageError(f"{path} is no file.")
    return found.st_size
