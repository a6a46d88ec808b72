"""Safe unpacking of uploaded archives: zip, tar, and tar with gzip.

Sizes, numbers of files and time are bounded. Nothing is written under a name of the archive. All
contents go into one nameless file; names are checked by `wms.jobs.content.paths`, as those of
single files are.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, BinaryIO

from matching.negotiation.deadline import Deadline
from wms.core.errors import Finding, InvalidInput, TooLarge
from wms.jobs.content.paths import checked_path

#: More files than that are no submission.
MAX_FILES = 10_000
_CHUNK = 256 * 1024
#: What describes the members of an archive, and not their contents: it is read as a whole.
_DIRECTORY_BYTES = 4 * 1024 * 1024
_MEMBER_HEAD_BYTES = 64 * 1024
_MAX_FINDINGS = 200
#: Characters of a member's name that are told.
_SHOWN = 200
_MAX_MEMBERS = 2 * MAX_FILES
#: A gzip file may be made of many, as parallel programs do; each begins anew and takes its time.
_MAX_PACKED_PARTS = 10_000
_PACKED_CHUNK = 16 * 1024
#: zlib's number for a file of gzip, with its head and its check sum.
_GZIP_WINDOW = 31
_GZIP = b"\x1f\x8b"
_ZIP_END = b"PK\x05\x06"
_ZIP64_END = b"PK\x06\x07"


#: Name of a member, its content if it is a plain file, and what is wrong with it, if anything.
_Member = tuple[str, IO[bytes] | None, str]


class ArchiveTooLarge(TooLarge):
    """The archive is larger, or takes longer, than allowed when it is unpacked.

    `member` is the one at which it became so; empty where it has no name that was read.
    """

    def __init__(self, message: str, *, archive: str, member: str) -> None:
        super().__init__(message)
        self.archive, self.member = archive, member


class Unpacked(Mapping[str, BinaryIO]):
    """The files of an archive by their paths; each is opened when it is asked for."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this
        weakref.finalize(self, self.file.close)
        self._places: dict[str, tuple[int, int]] = {}
        self.size_bytes = 0

    def __getitem__(self, path: str) -> BinaryIO:
        return io.BufferedReader(_Window(self, *self._places[path]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, path: object) -> bool:
        return path in self._places

    def add(self, path: str, content: IO[bytes], *, left: int) -> int:
        """Keep a content of at most `left` bytes; returns its size. Raises TooLarge."""
        start, size = self.file.tell(), 0
        for chunk in _chunks(content, left):
            size += len(chunk)
            self.file.write(chunk)
        self.file.flush()
        self._places[path] = (start, size)
        self.size_bytes += size
        return size


def _chunks(content: IO[bytes], left: int) -> Iterator[bytes]:
    """A content of at most `left` bytes, piece by piece. Raises TooLarge."""
    while chunk := content.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise TooLarge("The archive is larger than allowed when it is unpacked.")
        yield chunk


_BOUNDED = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class _Window(io.RawIOBase):
    """A part of the file of all contents, read without moving its position."""

    def __init__(self, unpacked: Unpacked, start: int, size: int) -> None:
        super().__init__()
        self._unpacked, self._start, self._size, self._at = unpacked, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        wanted = max(0, min(len(view), self._size - self._at))
        found = os.pread(self._unpacked.file.fileno(), wanted, self._start + self._at)
        view[: len(found)] = found
        self._at += len(found)
        return len(found)


class _Gunzipped(io.RawIOBase):
    """Content of the gzip files in a stream, one behind another."""

    def __init__(self, stream: IO[bytes], deadline: Deadline) -> None:
        super().__init__()
        self._stream, self._deadline = stream, deadline
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)
        self._packed, self._parts = b"", 1

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes; none at the end. Zeros behind a file fill up its last block."""
        while True:
            _check(self._deadline)
            self._packed = self._packed or self._stream.read(_PACKED_CHUNK)
            if not self._packed:
                if self._inflater.eof:
                    return b""
                raise EOFError("it ends within a file of gzip")
            if self._inflater.eof and not self._begins():
                continue
            content = self._inflater.decompress(self._packed, max(size, 1))
            self._packed = self._inflater.unused_data or self._inflater.unconsumed_tail
            if content:
                return content

    def _begins(self) -> bool:
        """Begin with the next file; False if there are only zeros."""
        self._packed = self._packed.lstrip(b"\0")
        if not self._packed:
            return False
        self._parts += 1
        if self._parts > _MAX_PACKED_PARTS:
            raise ValueError(f"it is packed in more than {_MAX_PACKED_PARTS} parts")
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)
        return True


def _check(deadline: Deadline) -> None:
    """Raise TooLarge when the time is up."""
    if deadline.is_over:
        raise TooLarge(f"The archive takes longer than {deadline.limit_s:g} s to unpack.")


class _Rationed(io.RawIOBase):
    """Stream that can be read only until its deadline or its byte limit."""

    def __init__(self, stream: IO[bytes], deadline: Deadline) -> None:
        super().__init__()
        self._stream, self._deadline, self.left = stream, deadline, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        _check(self._deadline)
        chunk = self._stream.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(chunk)
        if self.left < 0:
            raise TooLarge("The archive is larger than allowed when it is unpacked.")
        return chunk


def unpack(stream: BinaryIO, *, name: str, limit_bytes: int, deadline: Deadline) -> Unpacked:
    """The plain files of an archive. Raises InvalidInput with every fault, or ArchiveTooLarge."""
    stream.seek(0)
    start = stream.read(2)
    stream.seek(0)
    members = _zipped if start == b"PK" else _tarred
    reading = _Reading(name, limit_bytes)
    try:
        reading.take(members(stream, limit_bytes, deadline), deadline)
    except TooLarge as error:
        raise ArchiveTooLarge(str(error), archive=name, member=reading.at_hand) from error
    except UnicodeDecodeError as error:
        # Of a zip that says its names were UTF-8: all are read before the first.
        member = _shown(error.object.decode(errors="surrogateescape"))
        finding = Finding("has a name that is no text in UTF-8", file=name, member=member)
        raise InvalidInput([finding]) from error
    except (
        tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError,
        OSError, RuntimeError, ValueError, struct.error,
    ) as error:  # fmt: skip
        message = f"is no zip or tar archive that can be read here: {error}"
        finding = Finding(message, file=name, field="archive", member=reading.at_hand)
        raise InvalidInput([finding]) from error
    if reading.findings:
        raise InvalidInput(reading.findings[:_MAX_FINDINGS])
    return reading.unpacked


class _Reading:
    """Reading of an archive: files and faults found so far, and the name of the member at hand."""

    def __init__(self, name: str, limit_bytes: int) -> None:
        self.unpacked, self.findings, self.at_hand = Unpacked(), list[Finding](), ""
        self._name, self._left = name, limit_bytes

    def take(self, members: Iterable[_Member], deadline: Deadline) -> None:
        """Take all members in, until there are too many of them or of faults."""
        for member, content, fault in members:
            self.at_hand = _shown(member)
            _check(deadline)
            self._take_one(member, content, fault)
            self.at_hand = ""
            if len(self.unpacked) > MAX_FILES:
                self.findings.append(Finding(f"has more than {MAX_FILES} files", file=self._name))
                return
            if len(self.findings) >= _MAX_FINDINGS:
                return

    def _take_one(self, member: str, content: IO[bytes] | None, fault: str) -> None:
        path, fault = _path(member, fault, self.unpacked)
        if fault:
            message = f"{member[:_SHOWN]!r} {fault}"
            self.findings.append(Finding(message, file=self._name, member=self.at_hand))
        if content is not None:
            # What is passed over counts as well.
            self._left -= (
                sum(map(len, _chunks(content, self._left)))
                if fault
                else self.unpacked.add(path, content, left=self._left)
            )


def _shown(member: str) -> str:
    """Name of a member as a text that can be sent, of a length that can be read."""
    return member[:_SHOWN].encode(errors="surrogateescape").decode(errors="backslashreplace")


def _path(member: str, fault: str, known: Unpacked) -> tuple[str, str]:
    if fault:
        return member, fault
    try:
        path = checked_path(member)
    except InvalidInput as error:
        return member, f"is no name of a file here: {error.findings[0].message}"
    return path, "is there twice" if path in known else ""


def _tarred(stream: BinaryIO, limit_bytes: int, deadline: Deadline) -> Iterator[_Member]:
    rationed = _Rationed(_decompressed(stream, deadline), deadline)
    rationed.left = _MEMBER_HEAD_BYTES
    with tarfile.open(fileobj=rationed, mode="r|") as archive:
        for _ in range(_MAX_MEMBERS):
            member = archive.next()
            if member is None:
                return
            if member.isfile():
                # Its content, and the blocks that are read ahead.
                rationed.left = min(member.size, limit_bytes) + _MEMBER_HEAD_BYTES
                yield member.name, archive.extractfile(member), ""
            elif not member.isdir():
                yield member.name, None, "is neither a plain file nor a folder"
            archive.members = []  # type: ignore[attr-defined]
            rationed.left = _MEMBER_HEAD_BYTES
    raise tarfile.TarError(f"it has more than {_MAX_MEMBERS} members")


def _decompressed(stream: BinaryIO, deadline: Deadline) -> IO[bytes]:
    start = stream.read(2)
    stream.seek(0)
    return _Gunzipped(stream, deadline) if start == _GZIP else stream


def _zipped(stream: BinaryIO, limit_bytes: int, deadline: Deadline) -> Iterator[_Member]:
    _check_zip_directory(stream)
    with zipfile.ZipFile(stream) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir():
                continue
            if kind not in (0, stat.S_IFREG):
                yield member.filename, None, "is neither a plain file nor a folder"
            elif member.flag_bits & 1:
                yield member.filename, None, "is encrypted"
            elif member.compress_type not in _BOUNDED:
                # The others are unpacked in one piece, however large that is.
                yield member.filename, None, "is packed by another method than deflate"
            else:
                with archive.open(member) as content:
                    yield member.filename, content, ""


def _check_zip_directory(stream: BinaryIO) -> None:
    """Refuse a table of contents that would take much memory: all of it is read first."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, size - 65_557))
    tail = stream.read()
    end = tail.rfind(_ZIP_END)
    if _ZIP64_END in tail[max(0, end - 20) : end]:
        raise zipfile.BadZipFile("ZIP64 is not read")
    if end < 0 or int.from_bytes(tail[end + 12 : end + 16], "little") > _DIRECTORY_BYTES:
        raise zipfile.BadZipFile("it has no table of contents, or too large a one")
    stream.seek(0)
