"""Texts of any size with random access to their bytes, and the gaps in them.

A position is the same byte for ever: missing bytes are a gap, and their positions never stand for
anything else. Also the parts between gaps, and a text in chunks, with a line in place of each gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from wms.core.storage.contents import Readable


class Gap(NamedTuple):
    """Bytes that are not here, from `start` up to `end`."""

    start: int
    end: int


class Text(Protocol):
    """A text with random access to its bytes; its last byte is here."""

    @property
    def size_bytes(self) -> int:
        """Size of the text, gaps included."""

    @property
    def gaps(self) -> Sequence[Gap]:
        """Gaps, in order; between two of them there is something."""

    def read(self, start: int, length: int) -> bytes:
        """Bytes from a position on; fewer before a gap and at the end."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """The first bytes of a stored content."""

    content: Readable
    size_bytes: int

    @property
    def gaps(self) -> Sequence[Gap]:
        """None."""
        return ()

    def read(self, start: int, length: int) -> bytes:
        """Bytes from a position on. Raises NotFound when the content is lost."""
        return self.content.read(start, min(length, self.size_bytes - start))


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
        """Bytes from a position on."""
        return self.content[start : start + length]


class Span(NamedTuple):
    """The bytes of a text from `start` up to `end`, which are in a content from `offset` on."""

    start: int
    end: int
    content: Readable
    offset: int


@dataclass(frozen=True, slots=True)
class PiecedText:
    """A text whose pieces are in contents, in order; between them may be gaps."""

    spans: Sequence[Span]

    @property
    def size_bytes(self) -> int:
        """End of the last piece."""
        return self.spans[-1].end if self.spans else 0

    @property
    def gaps(self) -> Sequence[Gap]:
        """Gaps between the pieces."""
        ends = [0, *(span.end for span in self.spans)]
        starts = [span.start for span in self.spans]
        return [Gap(end, start) for end, start in zip(ends, starts, strict=False) if end < start]

    def read(self, start: int, length: int) -> bytes:
        """Bytes from a position on, up to a gap. Raises NotFound when one is lost."""
        pieces: list[bytes] = []
        for span in self.spans:
            if span.end <= start:
                continue
            if length <= 0 or span.start > start:
                break
            wanted = min(length, span.end - start)
            pieces.append(span.content.read(span.offset + start - span.start, wanted))
            if len(pieces[-1]) < wanted:
                break
            start, length = start + wanted, length - wanted
        return b"".join(pieces)


def part_before(text: Text, end: int) -> tuple[int, int]:
    """Start and end of the part without a gap up to a byte.

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
    """Start and end of the part without a gap from a byte on; a byte in a gap moves behind it."""
    for gap in text.gaps:
        if start < gap.start:
            return start, gap.start
        start = max(start, gap.end) if start < gap.end else start
    return start, text.size_bytes


def begin_of_part(text: Text, position: int) -> int:
    """First byte of the part without a gap that has this byte."""
    return max((gap.end for gap in text.gaps if gap.end <= position), default=0)


def chunks_of(
    text: Text, chunk_bytes: int, *, start: int = 0, end: int | None = None
) -> Iterator[bytes]:
    """Bytes from a position on, with a line for each gap. Raises NotFound when it is lost."""
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
    """Line that stands for this number of missing bytes where a text is sent as one."""
    return f"\n[... {count} bytes are not here ...]\n".encode()
