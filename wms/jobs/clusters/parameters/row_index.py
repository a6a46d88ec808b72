"""Index of a long table: places in its content by rows, so that any row is read without the rest.

A row is a line; of the tables that people write, empty lines and those that begin with `#` are
none. The index has a pair for each chunk: where the first line that is not yet read begins, and how
many rows there are before it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO

CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class RowIndex:
    """Byte offsets in a table, and how many rows are before each.

    With `is_exact` each line is a row.
    """

    offsets: Sequence[int] = (0,)
    rows_before: Sequence[int] = (0,)
    is_exact: bool = False

    def to_bytes(self) -> bytes:
        """The index as it is stored."""
        pairs = zip(self.offsets, self.rows_before, strict=True)
        return array("Q", (number for pair in pairs for number in pair)).tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes, *, is_exact: bool) -> RowIndex:
        """The index that was stored."""
        numbers = array("Q")
        numbers.frombytes(stored)
        return cls(numbers[::2], numbers[1::2], is_exact)

    def read(self, stream: BinaryIO, wanted: Iterable[int]) -> dict[int, str]:
        """The rows at these places. The stream is moved."""
        found: dict[int, str] = {}
        lines: Iterator[tuple[int, bytes]] = iter(())
        at = -1
        for place in sorted(set(wanted)):
            chunk = bisect_right(self.rows_before, place) - 1
            if self.rows_before[chunk] > at or at < 0:
                stream.seek(self.offsets[chunk])
                lines = enumerate(rows_of(stream, is_exact=self.is_exact), self.rows_before[chunk])
                at = self.rows_before[chunk]
            at, row = next(islice(lines, place - at, None))
            found[place] = row.decode()
            at += 1
        return found


@dataclass(slots=True)
class IndexBuilder:
    """Index that grows with each chunk of a table."""

    offsets: list[int] = field(default_factory=lambda: [0])
    rows_before: list[int] = field(default_factory=lambda: [0])
    row_count: int = 0

    def add(self, end: int, rows: int) -> None:
        """Note that so many more rows end before this offset, at which a line begins."""
        self.row_count += rows
        self.offsets.append(end)
        self.rows_before.append(self.row_count)

    def index(self, *, is_exact: bool) -> RowIndex:
        """The index of what was added."""
        return RowIndex(array("Q", self.offsets), array("Q", self.rows_before), is_exact)


def rows_of(stream: BinaryIO, *, is_exact: bool) -> Iterator[bytes]:
    """Rows of a table from where the stream stands."""
    for line in stream:
        if is_exact:
            yield line.removesuffix(b"\n")
        elif row := row_of(line):
            yield row


def row_of(line: bytes) -> bytes:
    """Row on a line that people wrote; empty where it is none."""
    row = line.strip().removeprefix(BOM_UTF8)
    return b"" if row.startswith(b"#") else row
