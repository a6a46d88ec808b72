"""Windows of large texts, the numbers of their lines, and what they contain."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.negotiation.deadline import Deadline
from wms.core.errors import NotFound
from wms.core.storage.contents import FileContent
from wms.jobs.output import lines
from wms.jobs.output.lines import (
    BLOCK_BYTES,
    WINDOW_BYTES,
    LineCounts,
    line_start,
    search_back,
    window_after,
    window_around,
    window_before,
)
from wms.jobs.output.texts import Gap, PiecedText, ShortText, Span, StoredText

ENDLESS = Deadline(None, 1.0)


class _Impatient(Deadline):
    """Has time for so many blocks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    @property
    def is_over(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@dataclass
class _Watched:
    """A text that notes how much of it was read."""

    text: StoredText
    reads: list[int] = field(default_factory=list)
    counts_at: Path | None = None

    @property
    def size_bytes(self) -> int:
        return self.text.size_bytes

    @property
    def gaps(self) -> Sequence[Gap]:
        return self.text.gaps

    def read(self, start: int, length: int) -> bytes:
        content = self.text.read(start, length)
        self.reads.append(len(content))
        return content


@pytest.fixture
def numbered(tmp_path: Path) -> _Watched:
    """Some twelve megabytes, each line with its own number."""
    path = tmp_path / "numbered"
    path.write_bytes(b"".join(b"%d %s\n" % (n, b"x" * (n % 97)) for n in range(1, 200_001)))
    text = StoredText(FileContent(path), path.stat().st_size)
    return _Watched(text, counts_at=tmp_path / "numbered.lines")


def test_the_end_is_shown_from_the_beginning_of_a_line(numbered: _Watched) -> None:
    window = window_before(numbered, numbered.size_bytes)

    assert window.lines[-1].content.split()[0] == b"200000"
    assert all(line.content.split()[0].isdigit() for line in window.lines)
    assert window.is_last
    assert not window.is_first
    assert sum(numbered.reads) <= WINDOW_BYTES + 1


def test_earlier_and_later_windows_meet(numbered: _Watched) -> None:
    end = window_before(numbered, numbered.size_bytes)
    before = window_before(numbered, end.start)
    again = window_after(numbered, before.start)

    assert before.end == end.start
    assert int(before.lines[-1].content.split()[0]) + 1 == int(end.lines[0].content.split()[0])
    assert again.lines[: len(before.lines)] == before.lines


@pytest.mark.slow
def test_all_windows_from_the_beginning_hold_every_line_once(numbered: _Watched) -> None:
    numbers, start = [], 0
    while True:
        window = window_after(numbered, start)
        numbers += [int(line.content.split()[0]) for line in window.lines]
        if window.is_last:
            break
        start = window.end

    assert numbers == list(range(1, 200_001))


def test_numbers_are_right_in_the_midst_and_counted_once(numbered: _Watched) -> None:
    counts = LineCounts(numbered, numbered.counts_at)
    window = window_before(numbered, 3 * numbered.size_bytes // 4)

    first = counts.before(window.start, ENDLESS)
    numbered.reads.clear()
    again = counts.before(window.start, ENDLESS)

    assert first is not None
    assert first + 1 == int(window.lines[0].content.split()[0])
    assert again == first
    assert sum(numbered.reads) <= BLOCK_BYTES


def test_each_read_is_as_small_for_a_large_text(numbered: _Watched) -> None:
    LineCounts(numbered, numbered.counts_at).before(numbered.size_bytes, ENDLESS)

    assert max(numbered.reads) <= BLOCK_BYTES


def test_without_time_there_is_no_number_and_the_next_one_counts_on(numbered: _Watched) -> None:
    counts = LineCounts(numbered, numbered.counts_at)
    end = numbered.size_bytes

    assert counts.before(end, _Impatient(5)) is None
    assert 0 < counts.share < 1
    numbered.reads.clear()
    assert counts.before(end, ENDLESS) == 200_000
    assert sum(numbered.reads) <= end - 5 * BLOCK_BYTES


@pytest.mark.parametrize("number", [1, 2, 77_777, 199_999, 200_000])
@pytest.mark.parametrize("is_counted", [False, True])
def test_a_line_is_found_by_its_number(numbered: _Watched, number: int, is_counted: bool) -> None:
    counts = LineCounts(numbered, numbered.counts_at)
    if is_counted:
        counts.before(numbered.size_bytes, ENDLESS)

    start = counts.start_of(number, ENDLESS)

    assert start is not None
    assert numbered.read(start, 10).split()[0] == b"%d" % number
    assert counts.start_of(200_001, ENDLESS) is None


def test_counts_are_extended_as_the_text_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    line = b"y" * 99 + b"\n"
    path.write_bytes(line * 5000)
    first = LineCounts(StoredText(FileContent(path), 500_000), tmp_path / "log.lines")
    assert first.before(500_000, ENDLESS) == 5000

    with path.open("ab") as file:
        file.write(line * 15_000)
    grown = _Watched(StoredText(FileContent(path), 2_000_000))

    assert LineCounts(grown, tmp_path / "log.lines").before(2_000_000, ENDLESS) == 20_000
    assert sum(grown.reads) <= 2_000_000 - BLOCK_BYTES


def test_zeros_that_a_crash_left_are_counted_again(numbered: _Watched) -> None:
    kept = numbered.counts_at
    assert kept is not None
    counts = LineCounts(numbered, kept)
    counts.before(numbered.size_bytes, ENDLESS)
    size = kept.stat().st_size
    os.truncate(kept, size // 16 * 8)
    os.truncate(kept, size)

    assert counts.before(numbered.size_bytes, ENDLESS) == 200_000


@given(st.binary(max_size=300), st.integers(0, 320))
def test_a_window_before_and_one_after_a_place_are_the_whole(content: bytes, place: int) -> None:
    text = ShortText(content)
    place = line_start(text, min(place, len(content)))

    before, after = window_before(text, place), window_after(text, place)

    parts = [line.content for line in [*before.lines, *after.lines]]
    assert b"\n".join(parts) == content.removesuffix(b"\n")
    assert all(line.has_begin for line in after.lines)


@given(st.lists(st.sampled_from([b"a", b"bb", b"", b"a" * 40]), max_size=60), st.integers(1, 61))
def test_small_blocks_count_like_one_that_splits(pieces: list[bytes], number: int) -> None:
    content = b"".join(piece + b"\n" for piece in pieces)
    counts = LineCounts(ShortText(content))

    starts = [0]
    for piece in pieces[:-1]:
        starts.append(starts[-1] + len(piece) + 1)
    expected = starts[number - 1] if number <= len(pieces) else None

    assert counts.start_of(number, ENDLESS) == expected


def test_a_line_longer_than_a_window_is_shown_in_parts() -> None:
    text = ShortText(b"short\n" + b"z" * (3 * WINDOW_BYTES) + b"\nlast\n")

    middle = window_after(text, WINDOW_BYTES)
    end = window_before(text, text.size_bytes)

    assert len(middle.lines[0].content) == WINDOW_BYTES
    assert not middle.lines[0].has_begin
    assert not middle.lines[0].has_end
    assert [line.content[-4:] for line in end.lines] == [b"last"]


def test_a_window_has_a_limited_number_of_lines() -> None:
    text = ShortText(b"\n" * 50_000)

    end, start = window_before(text, 50_000), window_after(text, 0)

    assert len(end.lines) == len(start.lines) == lines.WINDOW_LINES
    assert (end.start, end.end) == (50_000 - lines.WINDOW_LINES, 50_000)
    assert (start.start, start.end) == (0, lines.WINDOW_LINES)


def test_a_last_line_without_an_end_is_read_again() -> None:
    window = window_before(ShortText(b"one\ntw"), 6)
    ended = window_before(ShortText(b"one\ntwo\n"), 8)

    assert window.next_start == 4
    assert not window.lines[-1].has_end
    assert ended.next_start == 8


def test_what_surrounds_a_line_is_shown_with_it(numbered: _Watched) -> None:
    start = LineCounts(numbered, None).start_of(5000, ENDLESS)
    assert start is not None

    window = window_around(numbered, start)

    numbers = [int(line.content.split()[0]) for line in window.lines]
    assert numbers[0] == 4980
    assert 5000 in numbers


def test_a_search_finds_the_latest_lines_first_and_says_where_it_stopped(
    numbered: _Watched,
) -> None:
    def look(words: str, **how: int) -> lines.Search:
        usual = {"end": numbered.size_bytes, "limit_bytes": 2**40, "limit_lines": 100}
        return search_back(numbered, words, deadline=ENDLESS, **usual | how)

    every = look("99999 X")
    few = look("99", limit_lines=3)
    further = look("99", limit_lines=3, end=few.stopped_at)
    little = look("never there", limit_bytes=1)

    assert [line.content.split()[0] for line in every.lines] == [b"199999", b"99999"]
    assert every.stopped_at == 0
    assert [line.content.split()[0] for line in few.lines] == [b"199999", b"199998", b"199997"]
    assert [line.content.split()[0] for line in further.lines] == [b"199996", b"199995", b"199994"]
    assert little.stopped_at == numbered.size_bytes - 2**20
    assert max(numbered.reads) < 2**20 + WINDOW_BYTES


def test_a_search_finds_what_lies_across_two_of_its_chunks() -> None:
    at = 2**20 - 3
    content = b"x" * at + b"needle\n" + b"y" * (2**20 - 4) + b"\n"

    found = search_back(
        ShortText(content), "Needle", end=len(content), limit_bytes=2**40, limit_lines=9,
        deadline=ENDLESS,
    )  # fmt: skip
    stopped = search_back(
        ShortText(content), "needle", end=at + 3, limit_bytes=2**40, limit_lines=9,
        deadline=ENDLESS,
    )  # fmt: skip

    assert len(found.lines) == 1
    assert len(stopped.lines) == 1


def test_a_text_that_the_store_lost_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        window_before(StoredText(FileContent(tmp_path / "gone"), 10), 10)


def _pieced(tmp_path: Path, *parts: tuple[int, bytes]) -> PiecedText:
    """A text with these parts at their places."""
    spans = []
    for start, content in parts:
        path = tmp_path / str(start)
        path.write_bytes(content)
        spans.append(Span(start, start + len(content), FileContent(path), 0))
    return PiecedText(spans)


def test_windows_end_at_what_is_not_here_and_go_on_behind_it(tmp_path: Path) -> None:
    text = _pieced(tmp_path, (0, b"one\ntwo\nthr"), (1000, b"ten\nele\n"), (2000, b"last\n"))
    first, second = Gap(11, 1000), Gap(1008, 2000)

    end = window_before(text, text.size_bytes)
    earlier = window_before(text, end.start)
    beginning = window_before(text, earlier.start)
    windows = [window_after(text, place) for place in (0, 500, 1008, 2000)]

    assert [line.content for line in end.lines] == [b"last"]
    assert (end.gap_before, end.gap_after, end.is_last) == (second, None, True)
    assert [line.content for line in earlier.lines] == [b"ten", b"ele"]
    assert (earlier.gap_before, earlier.gap_after) == (first, second)
    assert [line.content for line in beginning.lines] == [b"one", b"two", b"thr"]
    assert beginning.is_first
    assert windows == [beginning, earlier, end, end]


def test_only_lines_before_what_is_not_here_have_numbers(tmp_path: Path) -> None:
    text = _pieced(tmp_path, (0, b"one\ntwo\n"), (1000, b"ten\nele\n"))
    counts = LineCounts(text)

    assert counts.before(8, ENDLESS) == 2
    assert counts.before(1000, ENDLESS) is None
    assert counts.start_of(2, ENDLESS) == 4
    assert counts.start_of(3, ENDLESS) is None
    assert counts.share == 1
    assert line_start(text, 1005) == 1004
    assert line_start(text, 500) == 1000
    assert window_around(text, 1000).start == 1000


def test_a_search_goes_on_before_what_is_not_here(tmp_path: Path) -> None:
    text = _pieced(tmp_path, (0, b"a needle\nnee"), (1000, b"dle\nneedle\n"))

    found = search_back(
        text, "needle", end=text.size_bytes, limit_bytes=2**40, limit_lines=9, deadline=ENDLESS
    )

    assert [line.start for line in found.lines] == [1004, 0]
    assert found.stopped_at == 0


def test_pieces_in_several_files_are_read_as_one(tmp_path: Path) -> None:
    text = _pieced(tmp_path, (0, b"one "), (4, b"two "), (8, b"three"))

    assert text.gaps == []
    assert text.read(2, 9) == b"e two thr"
    assert text.read(0, 10**9) == b"one two three"
