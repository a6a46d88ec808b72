"""Streams: stdout and stderr of running payloads, stored piece by piece as pilots send them.

Also their reading and removal, the append to any such file, for logs of pilots too, and the end
(tail) of a text. A row says which bytes count, and is locked while a piece is added. So a piece
that is sent twice is there once, a process that dies in between leaves only bytes that do not
count, and reading takes the memory of one chunk whatever the size.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from wms.core.conf import conf
from wms.core.errors import Conflict, NotFound, TooLarge
from wms.core.storage.copying import Extent, GrowingRows
from wms.core.storage.current import writable_store
from wms.core.storage.protocol import Growing
from wms.jobs.models import Attempt, AttemptFile, Stream
from wms.jobs.output.segments import (
    HALF_BYTES,
    SEGMENT_BYTES,
    middle_gap,
    remove_middle,
    text_of_segments,
    with_gap,
)
from wms.jobs.output.texts import Gap, PiecedText, Text, begin_of_part

MAX_PIECE_BYTES = 256 * 1024
#: The most of a text that is written anew with each piece, where objects cannot be appended to.
_OBJECT_BYTES = 64 * 1024
#: Streams of attempts that sent the whole file at their end are kept so long after it.
_KEPT_BESIDE_FILE = timedelta(hours=1)
#: All others, and logs of pilots, so long after the end of their attempt or pilot.
KEPT = timedelta(days=30)
SWEPT_AT_ONCE = 1000


class PieceMissing(Conflict):
    """The piece does not begin where the stored ones end; those before it must come first."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"Only {size_bytes} bytes are here: send those that follow them.")
        self.size_bytes = size_bytes


def stream_file(attempt_id: int, kind: str) -> Growing:
    """One stream of an attempt; see `wms.jobs.output.segments`."""
    return Growing(_key("streams", attempt_id, f".{kind}"), SEGMENT_BYTES, _OBJECT_BYTES)


def growing_text(folder: str, key: int) -> Growing:
    """A text that is appended to, and kept whole."""
    return Growing(_key(folder, key), 0, _OBJECT_BYTES)


def _key(folder: str, key: int, suffix: str = "") -> str:
    return f"{folder}/{key % 256:02x}/{key}{suffix}"


def stream_text(stream: Stream) -> PiecedText:
    """Stored text of a stream."""
    file = stream_file(stream.attempt_id, stream.kind)
    return text_of_segments(file, stream.size_bytes, [Gap(*pair) for pair in stream.gaps])


def add_piece(file: Growing, content: bytes, *, offset: int, size_bytes: int) -> int:
    """Append a piece to a file of which `size_bytes` count; returns the new size.

    One that begins before the end is there already and changes nothing. The caller has locked the
    row. Raises PieceMissing and TooLarge.
    """
    if offset > size_bytes:
        raise PieceMissing(size_bytes)
    if offset < size_bytes or not content:
        return size_bytes
    limit_bytes = conf().max_stream_bytes
    if size_bytes + len(content) > limit_bytes:
        raise TooLarge(f"No more than {limit_bytes} bytes are kept.")
    writable_store().append(file, content, at=size_bytes)
    return size_bytes + len(content)


@transaction.atomic
def append_to_stream(
    job_id: int, number: int, *, pilot_id: int, kind: str, offset: int, content: bytes,
    now: datetime, after: int | None = None,
) -> int:  # fmt: skip
    """Store a piece of an attempt's output; returns the byte up to which it is known here.

    With `after` nothing comes between that byte, which must be the end of what is here, and the
    piece: the pilot has left out what it could not send in time. It is taken after the attempt's
    end too, in whatever order pieces and reports arrive: it changes nothing but what that attempt
    printed. Raises NotFound for an attempt that is not this pilot's, and PieceMissing.
    """
    attempts = Attempt.objects.filter(job_id=job_id, number=number, pilot_id=pilot_id)
    attempt_id = attempts.values_list("pk", flat=True).first()
    if attempt_id is None:
        raise NotFound(f"This pilot has no attempt {number} of job {job_id}.")
    stream, _ = Stream.objects.select_for_update().get_or_create(attempt_id=attempt_id, kind=kind)
    size_bytes = stream.size_bytes
    if offset > size_bytes and after != size_bytes:
        raise PieceMissing(size_bytes)
    if offset < size_bytes or not content:
        return size_bytes
    file = stream_file(attempt_id, kind)
    writable_store().append(file, content, at=offset)
    end = offset + len(content)
    half_bytes = min(HALF_BYTES, conf().max_stream_bytes // 2)
    left_out = middle_gap(end, half_bytes)
    gaps = with_gap([Gap(*pair) for pair in stream.gaps], Gap(size_bytes, offset))
    gaps = with_gap(gaps, left_out)
    Stream.objects.filter(pk=stream.pk).update(size_bytes=end, gaps=gaps, updated_at=now)
    if left_out != middle_gap(size_bytes, half_bytes):
        transaction.on_commit(partial(remove_middle, file, left_out))
    return end


def tail_of(text: Text, *, limit_bytes: int) -> str:
    """The last `limit_bytes` of a text, or fewer; bytes that are not UTF-8 are replaced."""
    size_bytes = text.size_bytes
    start = max(begin_of_part(text, size_bytes), size_bytes - limit_bytes)
    try:
        content = text.read(start, size_bytes - start)
    except NotFound:
        return ""
    return content.decode("utf-8", errors="replace")


def sweep_streams(*, now: datetime) -> int:
    """Remove streams whose time is over; the number of streams."""
    sent = AttemptFile.objects.filter(attempt=OuterRef("attempt"), kind=OuterRef("kind"))
    over = Stream.objects.filter(
        Q(attempt__ended_at__lt=now - KEPT)
        | Q(Exists(sent), attempt__ended_at__lt=now - _KEPT_BESIDE_FILE)
    )
    rows = list(over.values_list("pk", "attempt_id", "kind", "size_bytes")[:SWEPT_AT_ONCE])
    if not rows:
        return 0
    writable_store().remove_grown((stream_file(*row[1:3]), row[3]) for row in rows)
    Stream.objects.filter(pk__in=[row[0] for row in rows]).delete()
    return len(rows)


def _extent(stream: Stream) -> Extent:
    spans = stream_text(stream).spans
    file = stream_file(stream.attempt_id, stream.kind)
    return Extent(file, tuple((span.start, span.end) for span in spans))


#: All streams, with the bytes of them that are kept.
STREAM_EXTENTS: Final = GrowingRows(Stream.objects.all, _extent)
