from __future__ import annotations

import tracemalloc
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from tests.stored_files import stream_path
from wms.core.actors import Actor
from wms.core.errors import NotFound
from wms.core.models import User
from wms.core.storage.contents import FileContent, GrowingContent
from wms.core.storage.protocol import Growing
from wms.jobs import operations
from wms.jobs.attempts.progress import add_attempt_file
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Attempt, Stream
from wms.jobs.output import streams
from wms.jobs.output.segments import HALF_BYTES, MOST_GAPS, SEGMENT_BYTES, with_gap
from wms.jobs.output.streams import (
    MAX_PIECE_BYTES,
    PieceMissing,
    append_to_stream,
    stream_text,
    tail_of,
)
from wms.jobs.output.texts import Gap, StoredText, chunks_of
from wms.jobs.specs import JobSpec
from wms.taskqueues.operations import claim

NOW = timezone.now()
MIB = 1024**2
GIB = 1024**3


@pytest.fixture
def attempt(alice: User) -> Attempt:
    spec = JobSpec(name="run", executable="/bin/true", needs=Needs.of("alice"))
    operations.submit_jobs(
        [spec],
        owner=alice,
        workspace=operations.create_workspace(alice, {}),
        actor=Actor.person(alice),
    )
    claimed = claim(Resource("site-a", cpu_time_s=10**6))
    assert claimed is not None
    made = operations.bind_to_pilot(
        claimed, pilot_id=7, site_name="site-a", host="n", free_cores=1, actor=Actor.pilot("p")
    )
    assert made is not None
    return made


def send(
    attempt: Attempt, content: bytes, *, offset: int, kind: str = "stdout", after: int | None = None
) -> int:
    return append_to_stream(
        attempt.job_id,
        attempt.number,
        pilot_id=attempt.pilot_id,
        kind=kind,
        offset=offset,
        content=content,
        now=NOW,
        after=after,
    )


def content_of(attempt: Attempt, kind: str = "stdout") -> bytes:
    stream = Stream.objects.get(attempt=attempt, kind=kind)
    return b"".join(chunks_of(stream_text(stream), 1000))


def test_pieces_are_put_together_in_their_order(attempt: Attempt) -> None:
    assert send(attempt, b"one ", offset=0) == 4
    assert send(attempt, b"two", offset=4) == 7

    assert content_of(attempt) == b"one two"


def test_a_piece_that_is_here_already_changes_nothing(attempt: Attempt) -> None:
    send(attempt, b"one", offset=0)

    assert send(attempt, b"one", offset=0) == 3
    assert send(attempt, b"X", offset=1) == 3
    assert content_of(attempt) == b"one"


def test_a_piece_beyond_the_end_is_refused_with_the_size(attempt: Attempt) -> None:
    send(attempt, b"one", offset=0)

    with pytest.raises(PieceMissing) as refused:
        send(attempt, b"three", offset=7)

    assert refused.value.size_bytes == 3
    assert content_of(attempt) == b"one"


def test_what_a_process_wrote_that_died_before_the_row_does_not_count(attempt: Attempt) -> None:
    send(attempt, b"one", offset=0)
    with stream_path(attempt.pk, "stdout").open("ab") as file:
        file.write(b"garbage")

    send(attempt, b" two", offset=3)

    assert content_of(attempt) == b"one two"


def test_what_a_pilot_leaves_out_is_a_gap_and_never_read(attempt: Attempt) -> None:
    send(attempt, b"one\n", offset=0)

    assert send(attempt, b"nine\n", offset=3 * MIB, after=4) == 3 * MIB + 5
    assert send(attempt, b"nine\n", offset=3 * MIB, after=4) == 3 * MIB + 5
    assert send(attempt, b"ten\n", offset=3 * MIB + 5) == 3 * MIB + 9

    text = stream_text(Stream.objects.get())
    assert text.gaps == [(4, 3 * MIB)]
    assert text.read(0, 100) == b"one\n"
    assert text.read(3, 3 * MIB) == b"\n"
    assert text.read(5, 100) == b""
    assert text.read(3 * MIB, 100) == b"nine\nten\n"
    told = f"\n[... {3 * MIB - 4} bytes are not here ...]\n".encode()
    assert content_of(attempt) == b"one\n" + told + b"nine\nten\n"


@pytest.mark.parametrize("after", [None, 2, 4])
def test_only_after_all_that_is_here_something_is_left_out(
    attempt: Attempt, after: int | None
) -> None:
    send(attempt, b"one", offset=0)

    with pytest.raises(PieceMissing) as refused:
        send(attempt, b"nine", offset=9, after=after)

    assert refused.value.size_bytes == 3
    assert send(attempt, b"", offset=9, after=3) == 3
    assert content_of(attempt) == b"one"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_a_stream_without_end_the_beginning_and_the_end_are_kept_on_a_bounded_disk(
    attempt: Attempt,
) -> None:
    piece = b"".join(b"%07d\n" % number for number in range(MAX_PIECE_BYTES // 8))
    size = most_bytes = 0
    while size < 40 * MIB:
        size = send(attempt, piece, offset=size)
        files = stream_path(attempt.pk, "stdout").parent.iterdir()
        most_bytes = max(most_bytes, sum(file.stat().st_blocks * 512 for file in files))

    text = stream_text(Stream.objects.get())
    [gap] = text.gaps
    assert gap.start == HALF_BYTES
    assert size - HALF_BYTES - SEGMENT_BYTES < gap.end <= size - HALF_BYTES
    for start, end in ((0, gap.start), (gap.end, size)):
        assert text.read(start, size) == (piece * (size // len(piece)))[start:end]
    assert most_bytes <= 2 * HALF_BYTES + 3 * SEGMENT_BYTES

    Attempt.objects.update(outcome="done", ended_at=NOW - timedelta(days=31))
    assert streams.sweep_streams(now=NOW) == 1
    assert list(stream_path(attempt.pk, "stdout").parent.iterdir()) == []


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), max_size=60))
def test_gaps_are_what_was_left_out_and_few(skips: list[tuple[int, int]]) -> None:
    gaps: list[Gap] = []
    missing, size = set(), 0
    for skip, length in skips:
        gaps = with_gap(gaps, Gap(size, size + skip))
        missing |= set(range(size, size + skip))
        size += skip + length

    told = {place for gap in gaps for place in range(gap.start, gap.end)}
    assert missing <= told
    assert len(gaps) <= MOST_GAPS
    assert all(one.end < other.start for one, other in pairwise(gaps))
    if sum(skip > 0 for skip, _ in skips) <= MOST_GAPS:
        assert told == missing


def test_another_pilot_adds_nothing(attempt: Attempt) -> None:
    attempt.pilot_id = 8

    with pytest.raises(NotFound):
        send(attempt, b"x", offset=0)


@pytest.mark.slow
def test_a_gibibyte_is_read_in_the_memory_of_a_chunk(attempt: Attempt) -> None:
    path = stream_path(attempt.pk, "stdout")
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(GIB - 3)
        file.seek(0, 2)
        file.write(b"end")

    text = FileContent(path)
    tracemalloc.start()
    size = sum(map(len, chunks_of(StoredText(text, GIB), 256 * 1024)))
    tail = tail_of(StoredText(text, GIB), limit_bytes=1000)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert size == GIB
    assert tail == "\0" * 997 + "end"
    assert peak_bytes < 4 * 1024 * 1024


@pytest.mark.slow
@given(parts=st.lists(st.binary(max_size=20), max_size=6), data=st.data())
def test_whatever_is_repeated_or_comes_too_early_the_file_grows_by_each_piece_once(
    parts: list[bytes], data: st.DataObject
) -> None:
    file = Growing(f"pieces/{uuid4()}", 0, 64)
    whole, size = b"".join(parts), 0
    offsets = [sum(map(len, parts[:number])) for number in range(len(parts))]
    order = data.draw(st.lists(st.sampled_from(range(len(parts))), max_size=20)) if parts else []

    for number in [*order, *range(len(parts))]:
        try:
            size = streams.add_piece(file, parts[number], offset=offsets[number], size_bytes=size)
        except PieceMissing:
            assert offsets[number] > size
        assert b"".join(chunks_of(StoredText(GrowingContent(file), size), 7)) == whole[:size]

    assert size == len(whole)


@pytest.mark.parametrize(
    ("ended_ago", "has_file", "is_kept"),
    [
        (None, True, True),
        (timedelta(minutes=5), True, True),
        (timedelta(hours=2), True, False),
        (timedelta(hours=2), False, True),
        (timedelta(days=31), False, False),
    ],
)
def test_streams_are_removed_by_a_rule(
    attempt: Attempt, ended_ago: timedelta | None, has_file: bool, is_kept: bool
) -> None:
    send(attempt, b"one", offset=0)
    if has_file:
        add_attempt_file(attempt, kind="stdout", path="stdout", blob=store_bytes(b"one"))
    if ended_ago is not None:
        Attempt.objects.update(outcome="done", ended_at=NOW - ended_ago)

    removed = streams.sweep_streams(now=NOW)

    assert removed == (0 if is_kept else 1)
    assert Stream.objects.exists() == is_kept
    assert stream_path(attempt.pk, "stdout").exists() == is_kept
