"""Tables of parameters of a cluster: give the row of a job by its number, and the row's values.

Rows are in memory, up to a limit, or read from a stored content by its index.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from wms.jobs.clusters.parameters.row_index import RowIndex
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import Cluster, ClusterTable

Kind = ClusterTable.Kind
#: Between the cells of a row that a program gave.
CELL_END = "\x1f"
#: Tables of no more rows and characters stand in the row of the table, others in a content.
MAX_KEPT_ROWS = 1_000
MAX_KEPT_CHARACTERS = 32 * 1024


class Place(NamedTuple):
    """A job's place: its number in the cluster, statement, row of the table and step in the row."""

    process: int
    statement: int
    row: int
    step: int


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """Table of one queue statement: rows in memory, or in a stream with its index, or none.

    `first_row` and `row_step` are those of a slice.
    """

    kind: ClusterTable.Kind
    first_process: int
    row_count: int
    jobs_per_row: int = 1
    items: Sequence[str] | None = None
    stream: BinaryIO | None = None
    index: RowIndex | None = None
    first_row: int = 0
    row_step: int = 1

    @property
    def size(self) -> int:
        """Number of its jobs."""
        return self.row_count * self.jobs_per_row

    def place(self, process: int, statement: int) -> Place:
        """Place of a job of this table."""
        row, step = divmod(process - self.first_process, self.jobs_per_row)
        return Place(process, statement, row, step)

    def rows(self, wanted: Sequence[int]) -> Mapping[int, str]:
        """Texts of rows by their places; an empty one for a row that is a number only."""
        if self.kind == Kind.NUMBERS:
            return dict.fromkeys(wanted, "")
        if self.items is not None:
            return {row: self.items[row] for row in wanted}
        assert self.stream is not None
        assert self.index is not None
        places = {row: self.first_row + row * self.row_step for row in wanted}
        texts = self.index.read(self.stream, places.values())
        return {row: texts[place] for row, place in places.items()}


class Tables:
    """The tables of a cluster, in the order of its queue statements. A context manager."""

    def __init__(self, tables: Sequence[ParameterTable]) -> None:
        self._tables = tables
        self._starts = [table.first_process for table in tables]

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, *_: object) -> None:
        for table in self._tables:
            if table.stream is not None:
                table.stream.close()

    @property
    def size(self) -> int:
        """Number of jobs of the cluster."""
        return sum(table.size for table in self._tables)

    def read(self, processes: Sequence[int]) -> Iterator[tuple[Place, str]]:
        """Places and rows of these jobs, which are in their order."""
        places: list[list[Place]] = [[] for _ in self._tables]
        for process in processes:
            statement = bisect_right(self._starts, process) - 1
            places[statement].append(self._tables[statement].place(process, statement))
        for table, wanted in zip(self._tables, places, strict=True):
            texts = table.rows(list(dict.fromkeys(place.row for place in wanted)))
            yield from ((place, texts[place.row]) for place in wanted)

    def kind(self, statement: int) -> ClusterTable.Kind:
        """How the rows of a statement give their values."""
        return self._tables[statement].kind


def stored_tables(cluster: Cluster) -> Tables:
    """Tables of a stored cluster. Raises NotFound when the store has lost one."""
    return Tables([_stored(row) for row in cluster.tables.order_by("place")])


def _stored(row: ClusterTable) -> ParameterTable:
    kind = Kind(row.kind)
    stream, index = None, None
    if row.content_id is not None:
        stream = open_blob(row.content_id)
        is_exact = kind in (Kind.CELLS, Kind.WORDS)
        index = RowIndex.from_bytes(bytes(row.offsets or b""), is_exact=is_exact)
    return ParameterTable(
        kind=kind,
        first_process=row.first_process,
        row_count=row.row_count,
        jobs_per_row=row.jobs_per_row,
        items=row.items,
        stream=stream,
        index=index,
        first_row=row.first_row,
        row_step=row.row_step,
    )


def row_values(names: Sequence[str], row: str, kind: ClusterTable.Kind) -> dict[str, str]:
    """Values of the variables in a row, and of `item`, the row itself."""
    if not names:
        return {"item": row}
    values = dict.fromkeys(names, "")
    if kind == Kind.WORDS or len(names) == 1:
        cells = [row]
    elif kind == Kind.BLANKS:
        cells = row.split(None, len(names) - 1)
    elif kind == Kind.COMMAS:
        cells = [cell.strip() for cell in row.split(",", len(names) - 1)]
    else:
        cells = row.split(CELL_END, len(names) - 1)
    values.update(zip(names, cells, strict=False))
    values.setdefault("item", row)
    return values
