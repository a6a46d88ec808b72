"""Tables of a cluster that is being submitted, from its queue statements, files and rows in JSON.

With their faults, and the places of special rows, whose jobs are looked at besides the samples.
Also the index of a content that has rows only.
"""

from __future__ import annotations

import io
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from matching.descriptions.macros import Budget, MacroError, Scopes, parse_template
from wms.core.conf import conf
from wms.core.errors import Finding
from wms.jobs.clusters.json_description import ROWS
from wms.jobs.clusters.parameters.row_checks import MAX_FAULTS, MAX_SPECIAL, scan_table
from wms.jobs.clusters.parameters.row_index import CHUNK_BYTES, IndexBuilder, RowIndex, row_of
from wms.jobs.clusters.parameters.tables import (
    MAX_KEPT_CHARACTERS,
    MAX_KEPT_ROWS,
    Kind,
    ParameterTable,
)
from wms.jobs.description.queue_statement import BadQueue, QueueStatement
from wms.jobs.description.stages import Stage, stages_of
from wms.jobs.description.submit_file import SubmitFile
from wms.jobs.models import ClusterTable

#: Jobs of a cluster.
MAX_SIZE = 100_000_000


@dataclass(slots=True)
class NewTable:
    """Table of a queue statement before it is stored.

    `file` is where its rows come from; `special` are the places of rows with unusual characters.
    `content` are its rows where they are stored apart from the files.
    """

    table: ParameterTable
    file: str = ""
    special: Sequence[int] = ()
    content: bytes | None = None

    def text_of(self, row: int) -> str:
        """A row as it stands in the table."""
        return self.table.rows([row])[row]

    def line_of(self, row: int) -> int:
        """The line of a row in its file."""
        assert self.table.stream is not None
        self.table.stream.seek(0)
        wanted = self.table.first_row + row * self.table.row_step
        lines = enumerate(self.table.stream, start=1)
        numbers = (number for number, line in lines if row_of(line))
        return next(islice(numbers, wanted, None))


class _Files:
    """Files that came with the submission, as queue statements read their names."""

    def __init__(self, files: Mapping[str, BinaryIO]) -> None:
        self._names = sorted(files)

    def text(self, path: str) -> str | None:
        return None

    def names(self) -> Sequence[str]:
        return self._names


def make_tables(
    description: SubmitFile, files: Mapping[str, BinaryIO], rows: list[str] | None
) -> tuple[list[NewTable], list[Finding]]:
    """Tables of all queue statements, and their faults. `rows` came with the description."""
    tables: list[NewTable] = []
    faults: list[Finding] = []
    first_process = 0
    for stage in stages_of(description):
        line = stage.queue.line or None
        try:
            made, found = _table(stage, first_process, files, rows)
        except (BadQueue, MacroError) as error:
            faults.append(Finding(str(error), file=description.file, line=line))
            continue
        faults += found
        tables.append(made)
        first_process += made.table.size
    return tables, faults


def _table(
    stage: Stage, first_process: int, files: Mapping[str, BinaryIO], rows: list[str] | None
) -> tuple[NewTable, list[Finding]]:
    queue = stage.queue
    scopes = Scopes(stage.commands)

    def expand(text: str) -> str:
        return scopes.expand(parse_template(text)) if "$" in text else text

    count = queue.jobs_per_row(expand, MAX_SIZE)
    if not queue.kind:
        return NewTable(ParameterTable(Kind.NUMBERS, first_process, 1, count)), []
    if rows is not None and queue.file == ROWS:
        return _kept(queue, first_process, count, rows, Kind.CELLS), []
    if queue.file:
        return _of_file(queue, expand(queue.file), first_process, count, files)
    items = list(queue.items_of(expand, _Files(files), Budget()))
    if queue.kind != "from":
        return _kept(queue, first_process, count, items, Kind.WORDS), []
    return _of_lines(queue, first_process, count, items)


def _of_lines(
    queue: QueueStatement, first_process: int, count: int, items: Sequence[str]
) -> tuple[NewTable, list[Finding]]:
    """Table of rows that stand in the description."""
    content = "".join(f"{item}\n" for item in items).encode()
    scan = scan_table(io.BytesIO(content), file="", columns=len(queue.names))
    faults = [
        Finding(f"row {(each.line or 1) - 1}: {each.message}", line=queue.line)
        for each in scan.faults
    ]
    if len(queue.names) == 1:
        # The kind whose lines are all rows: a macro may leave nothing of one, or a `#` before it.
        return _kept(queue, first_process, count, items, Kind.WORDS), faults
    bare = (place for place, item in enumerate(items) if not row_of(item.encode()))
    faults += [
        Finding(f"row {place}: its macros leave no values", line=queue.line)
        for place in islice(bare, MAX_FAULTS)
    ]
    return _kept(queue, first_process, count, items, scan.kind), faults


def _of_file(
    queue: QueueStatement,
    name: str,
    first_process: int,
    count: int,
    files: Mapping[str, BinaryIO],
) -> tuple[NewTable, list[Finding]]:
    file = posixpath.normpath(name)
    stream = files.get(file)
    if stream is None:
        raise BadQueue(f"queue: there is no file {name}")
    limit_bytes = conf().max_upload_bytes
    # It is read while the sender waits; by an upload any size may have come.
    if (size_bytes := stream.seek(0, io.SEEK_END)) > limit_bytes:
        raise BadQueue(
            f"queue: {name} has {size_bytes} bytes, and a table of parameters at most {limit_bytes}"
        )
    scan = scan_table(stream, file=file, columns=len(queue.names))
    chosen = queue.chosen(scan.built.row_count)
    table = ParameterTable(
        kind=scan.kind,
        first_process=first_process,
        row_count=len(chosen),
        jobs_per_row=count,
        stream=stream,
        index=scan.built.index(is_exact=False),
        first_row=chosen.start,
        row_step=chosen.step,
    )
    special = [chosen.index(place) for place in scan.special if place in chosen]
    return NewTable(table, file=file, special=special), scan.faults


def _kept(
    queue: QueueStatement,
    first_process: int,
    count: int,
    items: Sequence[str],
    kind: ClusterTable.Kind,
) -> NewTable:
    """Table of rows that are in memory; long ones become a content of their own."""
    chosen = [items[place] for place in queue.chosen(len(items))]
    special = [at for at, item in enumerate(chosen) if not item.isalnum()][:MAX_SPECIAL]
    table = ParameterTable(kind, first_process, len(chosen), count, items=chosen)
    if len(chosen) <= MAX_KEPT_ROWS and sum(map(len, chosen)) <= MAX_KEPT_CHARACTERS:
        return NewTable(table, special=special)
    content = "".join(f"{item}\n" for item in chosen).encode()
    return NewTable(table, special=special, content=content)


def index_of_lines(content: bytes) -> RowIndex:
    """Index of a content whose lines are all rows."""
    built, begin = IndexBuilder(), 0
    while begin < len(content):
        end = content.find(b"\n", begin + CHUNK_BYTES - 1) + 1 or len(content)
        built.add(end, content.count(b"\n", begin, end))
        begin = end
    return built.index(is_exact=True)
