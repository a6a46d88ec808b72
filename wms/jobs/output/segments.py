"""Segments: files of fixed size on disk that keep the beginning and end of a payload's output.

Segment n has the bytes from n to n + 1 MiB of what was printed; nothing is ever written over by
something else, so a reader whose row is old reads what it says or finds a file gone. Of a long
stream the segments between its beginning and its end are removed, as its pilot leaves them out of
the file that it sends last: the disk of a stream is bounded, and its end is always here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from wms.jobs.output.texts import Gap, PiecedText, Span

SEGMENT_BYTES = 2**20
#: Bytes kept of the beginning, and at least of the end.
HALF_BYTES = 5 * SEGMENT_BYTES
#: More gaps are told as fewer and larger ones, so that a row stays small.
MOST_GAPS = 32


def segment_path(path: Path, number: int) -> Path:
    """The file of a segment; `path` is that of the first one."""
    return path.with_name(f"{path.name}.{number}") if number else path


def write_piece(path: Path, content: bytes, *, start: int) -> None:
    """Write a piece that begins at a byte."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for span in _spans(path, start, start + len(content)):
        piece = content[span.start - start : span.end - start]
        descriptor = os.open(span.path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            write_at(descriptor, piece, span.offset)
        finally:
            os.close(descriptor)


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of it."""
    written = 0
    while written < len(content):
        written += os.pwrite(descriptor, content[written:], offset + written)


def text_of_segments(path: Path, size_bytes: int, gaps: Iterable[Gap]) -> PiecedText:
    """Text of a stream, read from its segments."""
    spans: list[Span] = []
    start = 0
    for gap in (*gaps, Gap(size_bytes, size_bytes)):
        spans += _spans(path, start, gap.start)
        start = gap.end
    return PiecedText(spans)


def _spans(path: Path, start: int, end: int) -> Iterator[Span]:
    while start < end:
        number, offset = divmod(start, SEGMENT_BYTES)
        stop = min(end, start + SEGMENT_BYTES - offset)
        yield Span(start, stop, segment_path(path, number), offset)
        start = stop


def middle_gap(size_bytes: int, half_bytes: int) -> Gap:
    """Gap of whole segments in the middle of a stream of this size, which are not kept."""
    first = half_bytes // SEGMENT_BYTES
    end = max(first, (size_bytes - half_bytes) // SEGMENT_BYTES)
    return Gap(first * SEGMENT_BYTES, end * SEGMENT_BYTES)


def with_gap(gaps: Sequence[Gap], new: Gap) -> list[Gap]:
    """The gaps with another one; those that touch are one, and there are never too many."""
    if new.start >= new.end:
        return list(gaps)
    merged: list[Gap] = []
    for gap in sorted([*gaps, new]):
        if merged and gap.start <= merged[-1].end:
            merged[-1] = Gap(merged[-1].start, max(merged[-1].end, gap.end))
        else:
            merged.append(gap)
    if len(merged) > MOST_GAPS:
        merged[:2] = [Gap(merged[0].start, merged[1].end)]
    return merged


def remove_middle(path: Path, gap: Gap) -> None:
    """Remove the segments in what is not kept, but for the last: somebody may be reading it."""
    numbers = range(gap.start // SEGMENT_BYTES, gap.end // SEGMENT_BYTES - 1)
    for file in path.parent.glob(f"{path.name}.*"):
        number = file.suffix[1:]
        if number.isdecimal() and int(number) in numbers:
            file.unlink(missing_ok=True)
