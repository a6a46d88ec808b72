"""Reading of an archive as a ZIP file: what is in it, as far as its table of contents can be true.

Nothing is unpacked under a name of the file, and nothing beyond the bounds of `layout`.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from wms.archives import layout
from wms.archives.manifest import Manifest, fault, read_manifest

_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_ZIP64_PLACE: Final = b"PK\x06\x07"
_ZIP64_PLACE_BYTES: Final = 20
_ZIP64_END: Final = b"PK\x06\x06"
_ZIP64_END_BYTES: Final = 56
_PIECE_BYTES: Final = 256 * 1024
#: What zipfile and zlib raise for files that are none, or spoilt.
_SPOILT: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
)


@contextmanager
def opened(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """The file as a ZIP whose members are of known names and sizes. Raises InvalidInput."""
    _check_end(file)
    try:
        archive = zipfile.ZipFile(file)
    except _SPOILT as error:
        raise _no_zip(str(error)) from None
    with archive:
        _check_members(archive, file.seek(0, io.SEEK_END))
        yield archive


def manifest_of(archive: zipfile.ZipFile) -> Manifest:
    """The manifest of an archive. Raises InvalidInput."""
    return read_manifest(whole(archive, layout.MANIFEST))


def whole(archive: zipfile.ZipFile, name: str) -> bytes:
    """The unpacked bytes of a member, whose size was bounded. Raises InvalidInput."""
    return b"".join(pieces(archive, name))


def pieces(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """The unpacked bytes of a member, piece by piece. Raises InvalidInput."""
    try:
        with _member(archive, name) as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece
    except _SPOILT as error:
        raise fault(f"cannot be unpacked: {error}", member=name) from None


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except KeyError:
        raise fault("is missing", member=name) from None


def _no_zip(why: str) -> Exception:
    return fault(f"is no ZIP file that can be read here: {why}", member="")


def _check_end(file: IO[bytes]) -> None:
    """Refuse a table of contents that would take much memory: all of it is read first."""
    size = file.seek(0, io.SEEK_END)
    if size > layout.MOST_FILE_BYTES:
        raise fault(f"is larger than {layout.MOST_FILE_BYTES} bytes", member="")
    file.seek(max(0, size - _END_BYTES - _ZIP64_PLACE_BYTES - _ZIP64_END_BYTES))
    tail = file.read()
    end = tail[-_END_BYTES:]
    if len(end) < _END_BYTES or not end.startswith(_END):
        raise _no_zip("it does not end with a table of contents")
    count, length = _number(end, 10, 2), _number(end, 12, 4)
    place = tail[-_END_BYTES - _ZIP64_PLACE_BYTES : -_END_BYTES]
    # Its numbers win over those of the short form, whatever these are.
    if place.startswith(_ZIP64_PLACE):
        long = tail[: -_END_BYTES - _ZIP64_PLACE_BYTES]
        if len(long) < _ZIP64_END_BYTES or not long.startswith(_ZIP64_END):
            raise _no_zip("its table of contents has no end that can be read")
        count, length = _number(long, 32, 8), _number(long, 40, 8)
    if count > layout.MOST_MEMBERS or length > layout.MOST_DIRECTORY_BYTES:
        raise fault(f"has more than {layout.MOST_MEMBERS} members", member="")
    file.seek(0)


def _number(text: bytes, start: int, length: int) -> int:
    return int.from_bytes(text[start : start + length], "little")


def _check_members(archive: zipfile.ZipFile, file_bytes: int) -> None:
    names, packed_bytes = set[str](), 0
    for info in archive.infolist():
        name, most = info.filename, layout.most_bytes_of(info.filename)
        if most is None:
            raise fault("is no name of a member", member=name[:100])
        if name in names:
            raise fault("is there twice", member=name)
        if info.flag_bits & 1 or info.compress_type != zipfile.ZIP_DEFLATED:
            raise fault("is packed otherwise than by deflate", member=name)
        if info.file_size > most:
            raise fault(f"has more than {most} bytes", member=name)
        is_large = info.file_size > layout.RATIO_FROM_BYTES
        if is_large and info.file_size > layout.MOST_RATIO * info.compress_size:
            raise fault(f"has {layout.MOST_RATIO} times its packed size", member=name)
        names.add(name)
        packed_bytes += info.compress_size
    # Members that share bytes with others are how a small file unpacks to much.
    if packed_bytes > file_bytes:
        raise fault("has members that lie upon each other", member="")
