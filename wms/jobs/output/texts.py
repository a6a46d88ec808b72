"""Texts of any size whose bytes are read from any place, and what of them is not here.

A place is the same byte for ever: what is missing is a gap between places, and never stands for
anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from wms.core.errors import NotFound


class Gap(NamedTuple):
    """Bytes that are not here, from `start` up to `end`."""

    start: int
    end: int


class Text(Protocol):
    """A text whose bytes can be read from any place; its last byte is here."""

    @property
    def size_bytes(self) -> int:
        """How many bytes of it count, those that are not here too."""

    @property
    def gaps(self) -> Sequence[Gap]:
        """What is not here, in order; between two gaps there is something."""

    def read(self, start: int, length: int) -> bytes:
        """Bytes from a place on; fewer before a gap and at the end."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """The first bytes of a file."""

    path: Path
    size_bytes: int

    @property
    def gaps(self) -> Sequence[Gap]:
        """None."""
        return ()

    def read(self, start: int, length: int) -> bytes:
        """Bytes from a place on. Raises NotFound when the file is lost."""
        return _read(self.path, start, min(length, self.size_bytes - start))


@dataclass(frozen=True, slots=True)
class ShortText:
    """A text that is in memory."""

    content: bytes

    @property
    def size_bytes(self) -> int:
        """Its length."""
        return len(self.content)

    @property
    def gaps(self) -> Sequence[Gap]:
        """None."""
        return ()

    def read(self, start: int, length: int) -> bytes:
        """Bytes from a place on."""
        return self.content[start : start + length]


class Span(NamedTuple):
    """The bytes of a text from `start` up to `end`, which are in a file from `offset` on."""

    start: int
    end: int
    path: Path
    offset: int


@dataclass(frozen=True, slots=True)
class PiecedText:
    """A text whose pieces are in files, in order; between them may be gaps."""

    spans: Sequence[Span]

    @property
    def size_bytes(self) -> int:
        """Where the last piece ends."""
        return self.spans[-1].end if self.spans else 0

    @property
    def gaps(self) -> Sequence[Gap]:
        """What is between its pieces."""
        ends = [0, *(span.end for span in self.spans)]
        starts = [span.start for span in self.spans]
        return [Gap(end, start) for end, start in zip(ends, starts, strict=False) if end < start]

    def read(self, start: int, length: int) -> bytes:
        """Bytes from a place on, up to a gap. Raises NotFound when a file is lost."""
        pieces: list[bytes] = []
        for span in self.spans:
            if span.end <= start:
                continue
            if length <= 0 or span.start > start:
                break
            wanted = min(length, span.end - start)
            pieces.append(_read(span.path, span.offset + start - span.start, wanted))
            if len(pieces[-1]) < wanted:
                break
            start, length = start + wanted, length - wanted
        return b"".join(pieces)


def _read(path: Path, start: int, length: int) -> bytes:
    if length <= 0:
        return b""
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)
    except FileNotFoundError:
        raise NotFound("The text is not in the store any more.") from None


def part_before(text: Text, end: int) -> tuple[int, int]:
    """The part up to a byte in which nothing is missing: from where to where.

    Where that byte is in a gap, or just after one, it is the part before the gap.
    """
    begin = 0
    for gap in text.gaps:
        if end <= gap.start:
            break
        if end <= gap.end:
            return begin, gap.start
        begin = gap.end
    return begin, end


def part_after(text: Text, start: int) -> tuple[int, int]:
    """The part from a byte on in which nothing is missing, from behind a gap if it is in one."""
    for gap in text.gaps:
        if start < gap.start:
            return start, gap.start
        start = max(start, gap.end) if start < gap.end else start
    return start, text.size_bytes


def begin_of_part(text: Text, place: int) -> int:
    """Where the part with this byte begins."""
    return max((gap.end for gap in text.gaps if gap.end <= place), default=0)


def chunks_of(
    text: Text, chunk_bytes: int, *, start: int = 0, end: int | None = None
) -> Iterator[bytes]:
    """The bytes from a place on; a line tells of each gap. Raises NotFound when a file is lost."""
    end = text.size_bytes if end is None else end
    while start < end:
        begin, _ = part_after(text, start)
        if begin > start:
            yield gap_line(begin - start)
            start = begin
        chunk = text.read(start, min(chunk_bytes, end - start))
        if not chunk:
            return
        start += len(chunk)
        yield chunk


def gap_line(count: int) -> bytes:
    """What stands for so many missing bytes where a text is sent as one."""
    return f"\n[... {count} bytes are not here ...]\n".encode()
