"""Scan of a table of parameters in one pass: separator, index, faults and special rows.

The first row tells if commas or blanks separate. A special row has characters, or `..` or `//`,
that may go wrong in a command: its jobs are looked at besides the samples. Chunks are compared as
a whole, by what is left of them without plain characters, so that millions of rows are checked in
seconds. Only chunks with something special are read line by line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from wms.core.errors import Finding
from wms.jobs.clusters.parameters.row_index import CHUNK_BYTES, IndexBuilder, row_of
from wms.jobs.models import ClusterTable

Kind = ClusterTable.Kind
#: Faults that are told of one table, and rows with special characters that are looked at.
MAX_FAULTS = 200
MAX_SPECIAL = 2_000
#: The longest row.
MAX_ROW_BYTES = 64 * 1024
#: Characters that mean nothing in any command, beside which no row can go wrong.
_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:=@%"
#: But these together may in a path.
_PAIRS = ((b".", b".."), (b"/", b"//"))
#: Where blanks separate, or nothing does, these make other rows than one a line.
_GAPS = (b"\n\n", b"\n ", b"  ", b" \n")


@dataclass(slots=True)
class TableScan:
    """Kind of a table by its first row, its index, its faults, and the places of special rows."""

    kind: ClusterTable.Kind = Kind.BLANKS
    built: IndexBuilder = field(default_factory=IndexBuilder)
    faults: list[Finding] = field(default_factory=list)
    special: list[int] = field(default_factory=list)


def scan_table(stream: BinaryIO, *, file: str, columns: int) -> TableScan:
    """Read a table of so many columns once; stops after many faults."""
    scan = _Scan(file, columns)
    stream.seek(0)
    carry = b""
    while chunk := stream.read(CHUNK_BYTES):
        data = carry + chunk
        cut = data.rfind(b"\n") + 1
        carry = data[cut:]
        if cut:
            scan.add(data[:cut])
        if len(carry) > MAX_ROW_BYTES:
            scan.fault(f"the row has more than {MAX_ROW_BYTES} bytes")
            return scan.result
        if len(scan.result.faults) >= MAX_FAULTS:
            return scan.result
    if carry:
        scan.add(carry)
    return scan.result


class _Scan:
    """State of a pass: `line` is the number of the next one, `offset` where it begins."""

    def __init__(self, file: str, columns: int) -> None:
        self.result = TableScan()
        self._file = file
        self._columns = columns
        self._line = 1
        self._offset = 0
        self._pattern = b""
        self._deleted = b""

    def fault(self, message: str, line: int | None = None) -> None:
        """Add a fault of a line, or of the next."""
        found = Finding(message, file=self._file, line=line or self._line)
        self.result.faults.append(found)

    def add(self, lines: bytes) -> None:
        """Take whole lines; the last one of the table may have no end."""
        self._offset += len(lines)
        if self._pattern or self._begin(lines):
            whole = lines if lines.endswith(b"\n") else lines + b"\n"
            count = whole.count(b"\n")
            if self._is_plain(whole, count):
                self._line += count
                self.result.built.add(self._offset, count)
                return
        self._add_each(lines)

    def _begin(self, lines: bytes) -> bool:
        """Tell from the first row how the table is separated; False if there is none yet."""
        row = next((row for _, row in _rows(lines, 0)), None)
        if row is None:
            return False
        commas = b","
        if self._columns > 1:
            first = row.replace(b",", b" , ").split()
            is_commas = commas in first[1:2] or commas in first[:1]
            self.result.kind = Kind.COMMAS if is_commas else Kind.BLANKS
        if self.result.kind == Kind.COMMAS:
            self._pattern = commas * (self._columns - 1) + b"\n"
            self._deleted = _PLAIN + b" "
        else:
            self._pattern = b" " * (self._columns - 1) + b"\n"
            self._deleted = _PLAIN + (b", " if self._columns == 1 else commas)
        return True

    def _is_plain(self, lines: bytes, count: int) -> bool:
        """Whether all lines are rows of the right length without special characters.

        An empty line or a comment has not as many commas.
        """
        if b"\r" in lines:
            lines = lines.replace(b"\r\n", b"\n")
        if self.result.kind == Kind.BLANKS:
            lines = lines.replace(b"\t", b" ")
            if lines[:1] in b" \n" or any(gap in lines for gap in _GAPS):
                return False
        if lines.translate(None, self._deleted) != self._pattern * count:
            return False
        return not any(one in lines and pair in lines for one, pair in _PAIRS)

    def _add_each(self, lines: bytes) -> None:
        result, rows, at = self.result, 0, self.result.built.row_count
        for number, row in _rows(lines, self._line):
            fault = row_fault(row, result.kind, self._columns)
            if fault and len(result.faults) < MAX_FAULTS:
                self.fault(fault, number)
            if len(result.special) < MAX_SPECIAL and _is_special(row):
                result.special.append(at + rows)
            rows += 1
        self._line += lines.count(b"\n") + (not lines.endswith(b"\n"))
        result.built.add(self._offset, rows)


def row_fault(row: bytes, kind: ClusterTable.Kind, columns: int) -> str:
    """Why a row does not fit its table; empty when it does."""
    if b"\0" in row:
        return "the row contains a zero byte"
    if len(row) > MAX_ROW_BYTES:
        return f"the row has more than {MAX_ROW_BYTES} bytes"
    try:
        text = row.decode()
    except UnicodeDecodeError as error:
        return f"the row is not UTF-8 text: byte {error.start + 1} of it is {row[error.start]:#04x}"
    if columns == 1:
        return ""
    if kind == Kind.COMMAS:
        count = text.count(",") + 1
        is_wrong = count != columns
    else:
        count = len(text.split())
        is_wrong = count < columns
    if is_wrong:
        return f"the row has {count} values, and there are {columns} variables"
    return ""


def _is_special(row: bytes) -> bool:
    is_paired = any(pair in row for _, pair in _PAIRS)
    return is_paired or bool(row.translate(None, _PLAIN + b", \t"))


def _rows(lines: bytes, first_line: int) -> Iterator[tuple[int, bytes]]:
    """Rows with the numbers of their lines."""
    for number, line in enumerate(lines.split(b"\n"), first_line):
        if row := row_of(line):
            yield number, row
