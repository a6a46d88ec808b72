"""Lines of log texts of any size: windows of whole lines, line numbers, and search backwards.

A window never reaches over a gap; lines behind a gap have no numbers.

Every answer costs the memory of one window or block, whatever the size. Numbers are counted once:
how many lines end before each block is kept in a file beside the text, which is extended as the
text grows. Only the first `size_bytes` count, and those never change, so who counts the same blocks
at once writes the same.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matching.negotiation.deadline import Deadline
from wms.jobs.output.texts import Gap, Text, begin_of_part, part_after, part_before

#: A window has at most so many bytes, and so many lines.
WINDOW_BYTES = 64 * 1024
WINDOW_LINES = 1500
BLOCK_BYTES = 256 * 1024
#: Lines shown before one that was asked for.
_CONTEXT_LINES = 20
_ENTRY = struct.Struct("<Q")
_CHUNK_BYTES = 1024 * 1024
_NEWLINE = b"\n"


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or the part of a long one that is in a window; without its end."""

    start: int
    content: bytes
    has_begin: bool = True
    has_end: bool = True


@dataclass(frozen=True, slots=True)
class Window:
    """Lines that follow each other, from the byte `start` up to `end` of `size_bytes`."""

    lines: Sequence[Line]
    start: int
    end: int
    size_bytes: int
    #: Missing bytes between it and its neighbours, before and after.
    gap_before: Gap | None = None
    gap_after: Gap | None = None

    @property
    def is_first(self) -> bool:
        """True when the window begins with the text's first stored byte."""
        return (self.gap_before.start if self.gap_before else self.start) == 0

    @property
    def is_last(self) -> bool:
        """True when the window ends with the text's last byte up to now."""
        return self.end >= self.size_bytes

    @property
    def next_start(self) -> int:
        """Byte from which to read on: that of the last line, if it had no end yet."""
        if not self.lines or not self.is_last or self.lines[-1].has_end:
            return self.end
        last = self.lines[-1]
        return self.end if self.end - last.start >= WINDOW_BYTES else last.start


def window_before(
    text: Text, end: int, *, limit_bytes: int = WINDOW_BYTES, limit_lines: int = WINDOW_LINES
) -> Window:
    """The lines that end at a byte; the first one is whole unless it is longer than a window."""
    begin, end = part_before(text, min(max(end, 0), text.size_bytes))
    start = max(begin, end - limit_bytes)
    content = text.read(start, end - start)
    has_begin = _begins_line(text, start)
    if not has_begin:
        cut = content.find(_NEWLINE) + 1
        if 0 < cut < len(content):
            start, content, has_begin = start + cut, content[cut:], True
    lines = _split(content, start, has_begin=has_begin)[-limit_lines:]
    first = lines[0].start if lines else start
    return _window(text, lines, first, start + len(content))


def window_after(
    text: Text, start: int, *, limit_bytes: int = WINDOW_BYTES, limit_lines: int = WINDOW_LINES
) -> Window:
    """The lines from a byte on; the last one is whole unless it is longer than a window."""
    start, bound = part_after(text, min(max(start, 0), text.size_bytes))
    content = text.read(start, limit_bytes)
    if start + len(content) < bound:
        content = content[: content.rfind(_NEWLINE) + 1] or content
    lines = _split(content, start, has_begin=_begins_line(text, start))
    end = start + len(content) if len(lines) <= limit_lines else lines[limit_lines].start
    return _window(text, lines[:limit_lines], start, end)


def _window(text: Text, lines: Sequence[Line], start: int, end: int) -> Window:
    before = next((gap for gap in text.gaps if gap.end == start), None)
    after = next((gap for gap in text.gaps if gap.start == end), None)
    return Window(lines, start, end, text.size_bytes, before, after)


def window_around(text: Text, position: int) -> Window:
    """The line with this byte, some before it, and what follows."""
    begin = line_start(text, position)
    if begin == begin_of_part(text, begin):
        return window_after(text, begin)
    before = window_before(text, begin, limit_bytes=WINDOW_BYTES // 4, limit_lines=_CONTEXT_LINES)
    return window_after(text, before.start)


def line_start(text: Text, position: int) -> int:
    """First byte of the line with this byte; the byte itself inside a very long line."""
    position, _ = part_after(text, min(max(position, 0), text.size_bytes))
    begin = begin_of_part(text, position)
    base = max(begin, position - WINDOW_BYTES)
    found = text.read(base, position - base).rfind(_NEWLINE)
    if found >= 0:
        return base + found + 1
    return position if base > begin else begin


def _begins_line(text: Text, start: int) -> bool:
    """True for a line's first byte; pilots go on with one behind a gap, as far as they can."""
    return start == begin_of_part(text, start) or text.read(start - 1, 1) == _NEWLINE


def _split(content: bytes, start: int, *, has_begin: bool) -> list[Line]:
    pieces = content.split(_NEWLINE)
    is_ended = pieces[-1] == b""
    if is_ended:
        pieces.pop()
    lines = []
    for number, piece in enumerate(pieces):
        lines.append(
            Line(
                start,
                piece,
                has_begin=has_begin or number > 0,
                has_end=is_ended or number < len(pieces) - 1,
            )
        )
        start += len(piece) + 1
    return lines


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Index of line numbers of a text; `path` keeps what was counted, if given.

    Only what comes before the first gap can be counted.

    Entry n of the file is one more than the number of ends in blocks 0 to n, so that zeros, which a
    crash may leave at its end, are told from counts.
    """

    text: Text
    path: Path | None = None

    @property
    def end(self) -> int:
        """Byte up to which lines can be counted."""
        gaps = self.text.gaps
        return gaps[0].start if gaps else self.text.size_bytes

    def before(self, position: int, deadline: Deadline) -> int | None:
        """Number of lines that end before a byte. None behind a gap, or after the deadline."""
        if position > self.end:
            return None
        block = position // BLOCK_BYTES
        count = self._before_block(block, deadline)
        if count is None:
            return None
        start = block * BLOCK_BYTES
        return count + self.text.read(start, position - start).count(_NEWLINE)

    def start_of(self, number: int, deadline: Deadline) -> int | None:
        """First byte of the line with this number, counted from 1.

        None when there is no such line, or after the deadline: see `share`.
        """
        if number <= 1:
            return 0 if self.end else None
        block, count = self._block_of(number - 1, deadline)
        start = block * BLOCK_BYTES
        content = self.text.read(start, BLOCK_BYTES)
        position = -1
        for _ in range(number - 1 - count):
            position = content.find(_NEWLINE, position + 1)
            if position < 0:
                return None
        start += position + 1
        return start if start < self.end else None

    @property
    def share(self) -> float:
        """Counted part of what can be counted, from 0 to 1."""
        blocks = self.end // BLOCK_BYTES
        return 1.0 if not blocks or self.path is None else min(1.0, self._known() / blocks)

    def _block_of(self, ends: int, deadline: Deadline) -> tuple[int, int]:
        """The block in which this number of lines has ended, and the number before it."""
        last = self.end // BLOCK_BYTES
        low, high = 0, min(self._known(), last)
        if self._entry(high) < ends:
            return self._counted_on(high, ends, last, deadline)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._entry(middle) < ends else (low, middle - 1)
        return low, self._entry(low)

    def _counted_on(self, block: int, ends: int, last: int, deadline: Deadline) -> tuple[int, int]:
        count = self._entry(block)
        for number, total in self._extended(block, last, deadline):
            if total >= ends:
                return number, count
            block, count = number + 1, total
        return block, count

    def _before_block(self, block: int, deadline: Deadline) -> int | None:
        known = min(self._known(), block)
        count = self._entry(known)
        for number, total in self._extended(known, block, deadline):
            known, count = number + 1, total
        return count if known == block else None

    def _extended(self, first: int, end: int, deadline: Deadline) -> Iterator[tuple[int, int]]:
        """Count the blocks from `first` up to `end`; each with the ends up to its own end."""
        count, entries = self._entry(first), []
        try:
            for block in range(first, end):
                if deadline.is_over:
                    return
                content = self.text.read(block * BLOCK_BYTES, BLOCK_BYTES)
                count += content.count(_NEWLINE)
                entries.append(_ENTRY.pack(count + 1))
                yield block, count
        finally:
            self._keep(first, entries)

    def _keep(self, first: int, entries: Sequence[bytes]) -> None:
        if self.path is None or not entries:
            return
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(descriptor, b"".join(entries), first * _ENTRY.size)
        finally:
            os.close(descriptor)

    def _known(self) -> int:
        """Number of counted blocks, from the first one on."""
        try:
            known = self.path.stat().st_size // _ENTRY.size if self.path is not None else 0
        except FileNotFoundError:
            return 0
        while known and self._stored(known) == 0:
            known -= 1
        return known

    def _entry(self, blocks: int) -> int:
        """Number of lines that end in the first blocks."""
        return max(self._stored(blocks) - 1, 0) if blocks else 0

    def _stored(self, blocks: int) -> int:
        if self.path is None:
            return 0
        with self.path.open("rb") as file:
            file.seek((blocks - 1) * _ENTRY.size)
            content = file.read(_ENTRY.size)
        return int(_ENTRY.unpack(content)[0]) if len(content) == _ENTRY.size else 0


@dataclass(frozen=True, slots=True)
class Search:
    """Lines that contain something, the latest first; all from `stopped_at` on was looked at."""

    lines: Sequence[Line]
    stopped_at: int
    read_bytes: int


def search_back(
    text: Text, words: str, *, end: int, limit_bytes: int, limit_lines: int, deadline: Deadline
) -> Search:
    """Search backwards for words, ignoring case, up to the limits of bytes, lines and time."""
    needle = words.encode().lower()
    begin, position = part_before(text, min(end, text.size_bytes))
    lines: list[Line] = []
    read_bytes = 0
    while position > 0 and read_bytes < limit_bytes and not deadline.is_over:
        start = max(begin, position - _CHUNK_BYTES)
        # A little more than the chunk: what is sought may lie across its end.
        content = text.read(start, position + len(needle) - 1 - start).lower()
        read_bytes += position - start
        for position in _places(content, needle):
            line = line_start(text, start + position)
            if lines and lines[-1].start <= line:
                continue
            lines.append(window_after(text, line, limit_bytes=4096, limit_lines=1).lines[0])
            if len(lines) == limit_lines:
                return Search(lines, line, read_bytes)
        begin, position = part_before(text, start) if start == begin else (begin, start)
    return Search(lines, position, read_bytes)


def _places(content: bytes, needle: bytes) -> Iterator[int]:
    """Positions of something, one in each line, the last line first."""
    position = content.rfind(needle)
    while position >= 0:
        yield position
        begin = content.rfind(_NEWLINE, 0, position) + 1
        position = content.rfind(needle, 0, begin) if begin else -1
