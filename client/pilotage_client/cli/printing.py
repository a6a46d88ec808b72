"""What commands print: tables, columns by `-af`, JSON; and on terminals colours and bars.

`rich` is loaded on terminals only, so that pipes and scripts do not pay for it.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..model import Finding, time_of
from .constraints import constraint, field_of

if TYPE_CHECKING:
    from ..files.found import DagFiles

_STYLES = {
    "completed": "green", "done": "green", "running": "cyan", "failed": "red", "held": "yellow",
    "halted": "yellow", "removed": "dim", "killed": "red", "stalled": "yellow",
}  # fmt: skip
_UNDEFINED = "undefined"
Row = Mapping[str, Any]
#: Head of a column, and its text for a row.
Column = tuple[str, Callable[[Row], object]]


def say(text: str) -> None:
    """Print a line that was asked for."""
    sys.stdout.write(f"{text}\n")


def tell(text: str) -> None:
    """Print a line about how it goes, on the error stream."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def say_json(value: Any) -> None:
    """Print a value as JSON."""
    say(json.dumps(value, indent=2, ensure_ascii=False))


def here(finding: Finding, options: Namespace) -> Finding:
    """Finding with the path that its file has on this host, if it is one of those sent."""
    sent: DagFiles | None = getattr(options, "sent", None)
    return replace(finding, file=sent.here(finding.file)) if sent and finding.file else finding


def is_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout.isatty()


def print_rows(rows: Sequence[Row], columns: Sequence[Column], options: Namespace) -> None:
    """Print objects as the options say: those that fit a constraint, as table, columns, or JSON."""
    if options.constraint:
        fits = constraint(options.constraint)
        rows = [row for row in rows if fits(row)]
    rows = rows[: options.limit] if options.limit else rows
    names = options.autoformat or options.autoformat_head
    if options.json:
        say_json(list(rows))
    elif names:
        for line in _autoformat(rows, names, has_head=bool(options.autoformat_head)):
            say(line)
    elif rows:
        _print_table(rows, columns)
    elif is_terminal():
        tell("There are none.")


def short_time(text: str | None) -> str:
    """Time of the API, to the minute and in this host's zone."""
    found = time_of(text)
    return f"{found.astimezone():%Y-%m-%d %H:%M}" if found else ""


def _autoformat(rows: Sequence[Row], names: Sequence[str], *, has_head: bool) -> Iterator[str]:
    if has_head:
        yield " ".join(names)
    for row in rows:
        yield " ".join(_plain(field_of(row, name)) for name in names)


def _plain(value: Any) -> str:
    if value is None:
        return _UNDEFINED
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _print_table(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    heads = [head for head, _ in columns]
    lines = [[_cell(of(row)) for _, of in columns] for row in rows]
    if is_terminal():
        _print_coloured(heads, lines)
        return
    widths = [max(map(len, column)) for column in zip(heads, *lines)]
    for line in [heads, *lines]:
        pairs = zip(line, widths)
        say("  ".join(text.ljust(width) for text, width in pairs).rstrip())


def _print_coloured(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*heads, box=None, pad_edge=False, header_style="bold")
    for line in lines:
        table.add_row(*(Text(text, style=_STYLES.get(text, "")) for text in line))
    Console().print(table)


def _cell(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


@contextmanager
def upload_bar(total: int, name: str) -> Iterator[Callable[[int], None] | None]:
    """Bar of an upload on terminals; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda count: progress.advance(task, count)
