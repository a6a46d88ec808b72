"""Segments: the parts of a payload's output of which its beginning and its end are kept.

A byte of what was printed has one place for ever; nothing is ever written over by something else,
so a reader whose row is old reads what it says or finds a part gone. Of a long stream the segments
between its beginning and its end are removed, as its pilot leaves them out of the file that it
sends last: the store of a stream is bounded, and its end is always here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wms.core.storage.contents import GrowingContent
from wms.core.storage.current import writable_store
from wms.core.storage.protocol import Growing
from wms.jobs.output.texts import Gap, PiecedText, Span

SEGMENT_BYTES = 2**20
#: Bytes kept of the beginning, and at least of the end.
HALF_BYTES = 5 * SEGMENT_BYTES
#: More gaps are told as fewer and larger ones, so that a row stays small.
MOST_GAPS = 32


def text_of_segments(file: Growing, size_bytes: int, gaps: Iterable[Gap]) -> PiecedText:
    """Text of a stream, read from its segments."""
    content = GrowingContent(file)
    spans: list[Span] = []
    start = 0
    for gap in (*gaps, Gap(size_bytes, size_bytes)):
        if start < gap.start:
            spans.append(Span(start, gap.start, content, start))
        start = gap.end
    return PiecedText(spans)


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


def remove_middle(file: Growing, gap: Gap) -> None:
    """Remove the segments in what is not kept, but for the last: somebody may be reading it."""
    writable_store().remove_within(file, gap.start, gap.end - SEGMENT_BYTES)
