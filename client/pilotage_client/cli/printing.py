"""Output of commands: tables, columns by `-af`, JSON; and on terminals colours and bars.

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
    from ..files.found import DagFiles, JobFiles

_STYLES = {
    "completed": "green", "done": "green", "running": "cyan", "failed": "red", "held": "yellow",
    "halted": "yellow", "removed": "dim", "killed": "red", "stalled": "yellow",
}  # fmt: skip
_UNDEFINED = "undefined"
#: Head of the column with reasons.
WHY = "WHY"
_LEAST_OF_WHY = 20
_SHOWN_FROM_BYTES = 1024 * 1024
Row = Mapping[str, Any]
#: Head of a column, and its text for a row.
Column = tuple[str, Callable[[Row], object]]


def say(text: str) -> None:
    """Print a line that was asked for."""
    sys.stdout.write(f"{text}\n")


def counted(number: int, what: str) -> str:
    """Number with its word: `1 job`, `2 jobs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def tell(text: str) -> None:
    """Print a line about how it goes, on the error stream."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def say_json(value: Any) -> None:
    """Print a value as JSON."""
    say(json.dumps(value, indent=2, ensure_ascii=False))


def here(finding: Finding, options: Namespace) -> Finding:
    """Finding with the path that its file has on this host, if it is one of those sent."""
    sent: DagFiles | JobFiles | None = getattr(options, "sent", None)
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
    widths = [max(map(len, column)) for column in zip(heads, *lines)]
    show = _coloured(cuts_last=heads[-1] == WHY) if is_terminal() else _plainly
    for line in [heads, *lines]:
        show([text.ljust(width) for text, width in zip(line, widths)])


def _plainly(cells: Sequence[str]) -> None:
    say("  ".join(cells).rstrip())


def _coloured(*, cuts_last: bool) -> Callable[[Sequence[str]], None]:
    """Printer of lines with states in colours; the terminal folds long ones.

    A last column that is prose is cut to the terminal's width, unless little would be left of it.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console()

    def show(cells: Sequence[str]) -> None:
        line = Text("  ").join(Text(cell, style=_STYLES.get(cell.strip(), "")) for cell in cells)
        line.rstrip()
        if cuts_last and console.width - sum(len(cell) + 2 for cell in cells[:-1]) >= _LEAST_OF_WHY:
            line.truncate(console.width, overflow="ellipsis")
        console.print(line, soft_wrap=True)

    return show


def _cell(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


@contextmanager
def upload_bar(size_bytes: int, name: str) -> Iterator[Callable[[int, int], None] | None]:
    """Bar of an upload on terminals; None where nobody looks, or it is over at once."""
    if not sys.stderr.isatty() or size_bytes < _SHOWN_FROM_BYTES:
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
        task = progress.add_task(name, total=size_bytes)
        yield lambda sent, total: progress.update(task, completed=sent, total=total)
