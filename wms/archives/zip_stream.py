"""Writer of a ZIP file as a stream of bytes: equal contents give equal bytes, nothing is sought."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

#: A fixed time, the earliest that ZIP knows: members tell no time of their own.
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_LEVEL: Final = 6
_UNIX: Final = 3
_PLAIN_FILE: Final = 0o100644 << 16


@dataclass(frozen=True, slots=True)
class Member:
    """A written member: its unpacked bytes and their SHA-256; rows, if it is a chunk of them."""

    name: str
    sha256: str
    size_bytes: int
    rows: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The member as the manifest lists it."""
        told: dict[str, Any] = {
            "name": self.name, "sha256": self.sha256, "size_bytes": self.size_bytes,
        }  # fmt: skip
        return told if self.rows is None else {**told, "rows": self.rows}


class _Outbox(io.RawIOBase):
    """Bytes that were written and not sent yet; it has no position."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class ZipStream:
    """A ZIP file that is sent while it is written; memory is that of one piece."""

    def __init__(self) -> None:
        self._outbox, self.members = _Outbox(), list[Member]()
        self._archive = zipfile.ZipFile(
            self._outbox, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL
        )

    def add(
        self, name: str, pieces: Iterable[bytes], *, rows: int | None = None
    ) -> Iterator[bytes]:
        """Write a member of any size; gives the bytes to be sent."""
        info = zipfile.ZipInfo(name, _TIME)
        info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, _UNIX
        info.external_attr = _PLAIN_FILE
        digest, size_bytes = hashlib.sha256(), 0
        with self._archive.open(info, "w", force_zip64=True) as stream:
            for piece in pieces:
                digest.update(piece)
                size_bytes += len(piece)
                stream.write(piece)
                if packed := self._outbox.taken():
                    yield packed
        self.members.append(Member(name, digest.hexdigest(), size_bytes, rows))
        yield self._outbox.taken()

    def end(self) -> bytes:
        """The table of contents, which ends the file."""
        self._archive.close()
        return self._outbox.taken()
