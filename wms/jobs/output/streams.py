"""Streams: stdout and stderr of running payloads, stored piece by piece as pilots send them.

Also their reading and removal, the append to any such file, for logs of pilots too, and the end
(tail) of a text. A row says which bytes count, and is locked while a piece is added. So a piece
that is sent twice is there once, a process that dies in between leaves only bytes that do not
count, and reading takes the memory of one chunk whatever the size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from wms.core.conf import conf
from wms.core.errors import Conflict, NotFound, TooLarge
from wms.jobs.models import Attempt, AttemptFile, Stream
from wms.jobs.output.lines import counts_path
from wms.jobs.output.segments import (
    HALF_BYTES,
    SEGMENT_BYTES,
    middle_gap,
    remove_middle,
    text_of_segments,
    with_gap,
    write_at,
    write_piece,
)
from wms.jobs.output.texts import Gap, PiecedText, Text, begin_of_part

MAX_PIECE_BYTES = 256 * 1024
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


def stream_path(attempt_id: int, kind: str) -> Path:
    """The first file of one stream of an attempt; see `wms.jobs.output.segments`."""
    return appendable_path("streams", attempt_id, f".{kind}")


def stream_text(stream: Stream) -> PiecedText:
    """Stored text of a stream."""
    path = stream_path(stream.attempt_id, stream.kind)
    return text_of_segments(path, stream.size_bytes, [Gap(*pair) for pair in stream.gaps])


def appendable_path(folder: str, key: int, suffix: str = "") -> Path:
    """Path of a file that is appended to, in one of 256 folders."""
    return conf().blobs_dir / folder / f"{key % 256:02x}" / f"{key}{suffix}"


def add_piece(path: Path, content: bytes, *, offset: int, size_bytes: int) -> int:
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
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        write_at(descriptor, content, size_bytes)
    finally:
        os.close(descriptor)
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
    path = stream_path(attempt_id, kind)
    write_piece(path, content, start=offset)
    end = offset + len(content)
    half_bytes = min(HALF_BYTES, conf().max_stream_bytes // 2)
    left_out = middle_gap(end, half_bytes)
    gaps = with_gap([Gap(*pair) for pair in stream.gaps], Gap(size_bytes, offset))
    gaps = with_gap(gaps, left_out)
    Stream.objects.filter(pk=stream.pk).update(size_bytes=end, gaps=gaps, updated_at=now)
    if left_out != middle_gap(size_bytes, half_bytes):
        transaction.on_commit(partial(remove_middle, path, left_out))
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
    for _, attempt_id, kind, size_bytes in rows:
        path = stream_path(attempt_id, kind)
        remove_files([path])
        if size_bytes > SEGMENT_BYTES:
            remove_files(path.parent.glob(f"{path.name}.*"))
    Stream.objects.filter(pk__in=[row[0] for row in rows]).delete()
    return len(rows)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files with the counts of their lines; some may be gone already."""
    for path in paths:
        path.unlink(missing_ok=True)
        counts_path(path).unlink(missing_ok=True)
