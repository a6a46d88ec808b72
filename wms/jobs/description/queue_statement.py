"""Parser of `queue` statements in submit descriptions: number of jobs, values of variables.

Syntax as in HTCondor: `queue [count] [variables] [in | from | matching [files]] [slice] items`.
Also what a statement gives: items of its text, of a file or of names of files, and a row for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol

from matching.descriptions.macro_functions import UNKNOWN
from matching.descriptions.macros import Budget

#: Jobs of one node.
MAX_JOBS = 10_000
_MAX_VARIABLES = 1_000
_MAX_PATTERNS = 100
#: No name of a file is longer.
_MAX_PATTERN_LENGTH = 1_024
_COUNT = re.compile(r"(?:[0-9]+(?:\s*\*\s*[0-9]+)*|[0-9()+*\s]*\$\([^\s]*\))(?=\s|\Z)")
_WORDS = re.compile(r"\A(?P<names>.*?)\b(?P<word>in|from|matching)\b(?P<rest>.*)\Z", re.I | re.S)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
_SLICE = re.compile(r"\[\s*(-?\d*)\s*(?:(:)\s*(-?\d*)\s*(?::\s*(-?\d*)\s*)?)?\]\s*")
_MOST_DIGITS = 9
_LENGTHS_PER_STEP = 4096
_KIND_OF_FILES = re.compile(r"(files|dirs|any)\b\s*", re.IGNORECASE)
_SEPARATOR = re.compile(r"[\s,]+")
_FIELD = re.compile(r"[^\s,]*(?:\s+|,\s*|\Z)")
_UNIT_SEPARATOR = "\x1f"
_ITEM = "Item"


class BadQueue(ValueError):
    """A queue statement with a syntax fault, or one that cannot be carried out."""


class Files(Protocol):
    """Files of the workspace that queue statements may read, relative to the node's directory."""

    def text(self, path: str) -> str | None:
        """Content of a file; None when there is no such file."""
        ...

    def names(self) -> Sequence[str]:
        """Names of all files, sorted."""
        ...


@dataclass(slots=True)
class QueueStatement:
    """One `queue`. `count` and `items` may have macros; `items` are lines, words or patterns.

    `commands` and `attributes` are those between the previous statement and this one.
    """

    line: int = 0
    count: str = "1"
    variables: list[str] = field(default_factory=list)
    kind: str = ""
    items: list[str] = field(default_factory=list)
    file: str = ""
    slice: str = ""
    commands: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def is_single(self) -> bool:
        """Whether it makes one job without variables."""
        return self.count == "1" and not self.kind

    @property
    def reads_files(self) -> bool:
        """Whether its items come from files of the workspace, or from their names."""
        return bool(self.file) or self.kind == "matching"

    def as_dict(self) -> dict[str, Any]:
        """JSON values of the statement, without empty ones."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value}

    def rows(
        self, expand: Callable[[str], str], files: Files | None, budget: Budget
    ) -> Iterator[tuple[int, int, Mapping[str, str]]]:
        """Step, row and values of the variables for each job.

        `expand` expands macros. Names that patterns are compared with are counted in the budget.
        Raises BadQueue and MacroError; more than MAX_JOBS rows are allowed here.
        """
        count = self.jobs_per_row(expand)
        if not self.kind:
            yield from ((step, 0, {_ITEM.lower(): ""}) for step in range(count))
            return
        names = self.names
        items = self.items_of(expand, files, budget)
        for row, item in enumerate(items[each] for each in self.chosen(len(items))):
            values = _values(names, item, is_row=self.kind == "from")
            values.setdefault(_ITEM.lower(), item)
            yield from ((step, row, values) for step in range(count))

    @property
    def names(self) -> list[str]:
        """Names of the variables in lower case; without any it is `item`."""
        return [name.lower() for name in self.variables] or [_ITEM.lower()]

    def jobs_per_row(self, expand: Callable[[str], str], most: int = MAX_JOBS) -> int:
        """Number of jobs for each item. Raises BadQueue and MacroError."""
        return _count(expand(self.count), most)

    def chosen(self, total: int) -> range:
        """Places of the items that the slice takes of so many. Raises BadQueue."""
        return _sliced(total, self.slice)

    def items_of(
        self, expand: Callable[[str], str], files: Files | None, budget: Budget
    ) -> Sequence[str]:
        """All items, before the slice. Raises BadQueue and MacroError."""
        if self.kind == "in":
            return [word for item in self.items for word in _words(expand(item))]
        if self.kind == "matching":
            return _matching(_patterns(self.items, expand), files, budget)
        if not self.file:
            return [expand(item) for item in self.items]
        name = expand(self.file)
        text = files.text(name) if files is not None else None
        if text is None:
            raise BadQueue(f"queue: there is no file {name}")
        return _lines(text.splitlines())


def parse_queue(
    text: str, line: int, block: Callable[[], list[str] | None], most: int = MAX_JOBS
) -> QueueStatement:
    """Parsed text after the word `queue`, which makes `most` jobs at most. Raises BadQueue.

    `block` returns the lines up to the closing parenthesis, None when there is none.
    """
    queue = QueueStatement(line=line)
    match = _WORDS.match(text)
    names = (match["names"] if match else text).strip()
    counted = _COUNT.match(names)
    if counted is not None:
        queue.count, names = counted.group().strip(), names[counted.end() :].strip()
        _check_count(queue.count, most)
    if match is None:
        if names:
            raise BadQueue(f"not a queue statement: queue {text.strip()[:80]}")
        return queue
    queue.kind = match["word"].lower()
    queue.variables = [name for name in _SEPARATOR.split(names) if name]
    if len(queue.variables) > _MAX_VARIABLES:
        raise BadQueue(f"queue: at most {_MAX_VARIABLES} variables")
    for name in queue.variables:
        if not _NAME.match(name):
            raise BadQueue(f"queue: {name[:80]} is not the name of a variable")
    _read_items(queue, match["rest"].strip(), block)
    if len(queue.items) > most:
        raise BadQueue(f"queue: more than {most} items; {_at_most(most)}")
    return queue


def _read_items(queue: QueueStatement, rest: str, block: Callable[[], list[str] | None]) -> None:
    if queue.kind == "matching":
        rest = _without_kind(rest)
    if (cut := _SLICE.match(rest)) is not None:
        queue.slice, rest = _checked_slice(cut), rest[cut.end() :]
    if rest.startswith("("):
        queue.items = _inline(rest[1:], block, is_rows=queue.kind == "from")
    elif not rest:
        raise BadQueue(f"queue: nothing follows {queue.kind}")
    elif queue.kind != "from":
        queue.items = [rest]
    elif rest.endswith("|"):
        raise BadQueue("queue: items cannot come from a program; write them into a file")
    else:
        queue.file = rest


def _checked_slice(cut: re.Match[str]) -> str:
    if max(len(each or "") for each in cut.groups()) > _MOST_DIGITS:
        raise BadQueue(f"queue: a number of a slice has at most {_MOST_DIGITS} digits")
    return cut.group().strip()


def _without_kind(rest: str) -> str:
    """Text after `files` or `any`."""
    kind = _KIND_OF_FILES.match(rest)
    if kind is None:
        return rest
    if kind[1].lower() == "dirs":
        raise BadQueue("queue: a workspace has files only, there are no directories to match")
    return rest[kind.end() :]


def _inline(first: str, block: Callable[[], list[str] | None], *, is_rows: bool) -> list[str]:
    """Items between parentheses, which may be on lines of their own."""
    closing = first.rfind(")")
    if closing >= 0 and not first[closing + 1 :].strip():
        return _lines([first[:closing]])
    lines = block()
    if lines is None:
        raise BadQueue("queue: the list of items is not closed by a line that begins with )")
    return _lines([first, *lines])


def _lines(lines: Sequence[str]) -> list[str]:
    stripped = (line.strip() for line in lines)
    return [line for line in stripped if line and not line.startswith("#")]


def _words(text: str) -> list[str]:
    return [word for word in _SEPARATOR.split(text) if word]


def _patterns(items: Sequence[str], expand: Callable[[str], str]) -> list[str]:
    patterns = [word for item in items for word in _words(expand(item))]
    if len(patterns) > _MAX_PATTERNS or max(map(len, patterns), default=0) > _MAX_PATTERN_LENGTH:
        raise BadQueue(
            f"queue: at most {_MAX_PATTERNS} patterns of {_MAX_PATTERN_LENGTH} characters"
        )
    return patterns


def _matching(patterns: Sequence[str], files: Files | None, budget: Budget) -> list[str]:
    """Names that match one of the patterns; a wildcard stays within one directory."""
    matching: dict[str, None] = {}
    names = files.names() if files is not None else ()
    # To compare takes the product of the lengths; that of short ones is as good as one step.
    lengths = sum(map(len, names)) * sum(map(len, patterns))
    budget.spend(max(len(patterns) * len(names), lengths // _LENGTHS_PER_STEP))
    for pattern in patterns:
        for name in names:
            if name.count("/") == pattern.count("/") and fnmatchcase(name, pattern):
                matching[name] = None
    return list(matching)


def _at_most(most: int) -> str:
    return f"a {'node' if most == MAX_JOBS else 'cluster'} has at most {most} jobs"


def _check_count(text: str, most: int) -> None:
    if "$" not in text:
        _count(text, most)


def _count(text: str, most: int) -> int:
    """Number of jobs for each item: a number, or a product of numbers."""
    if UNKNOWN in text:
        return 1
    count = 1
    for factor in text.split("*"):
        if not factor.strip().isascii() or not factor.strip().isdigit() or len(factor.strip()) > 9:
            raise BadQueue(f"queue: not a number of jobs: {text[:80]}")
        count = min(count * int(factor), 10 * most)
    if count > most:
        raise BadQueue(f"queue {text}: {_at_most(most)}")
    return count


def _sliced(total: int, text: str) -> range:
    """Places of the items selected by `[start:end:step]` or `[index]`."""
    match, places = _SLICE.match(text), range(total)
    if match is None:
        return places
    start, colon, end, step = match.groups()
    if not colon:
        return places[int(start or 0) :][:1]
    numbers = [int(each) if each else None for each in (start, end, step)]
    if numbers[2] == 0:
        raise BadQueue(f"queue: a slice cannot have steps of 0: {text}")
    return places[slice(*numbers)]


def _values(names: Sequence[str], item: str, *, is_row: bool) -> dict[str, str]:
    """Values of the variables: a row is split into fields, and the last variable gets the rest."""
    values = dict.fromkeys(names, "")
    if not is_row:
        values[names[0]] = item
    elif _UNIT_SEPARATOR in item:
        cut = (each.strip() for each in item.split(_UNIT_SEPARATOR, len(names) - 1))
        values.update(zip(names, cut, strict=False))
    else:
        rest = item
        for name in names[:-1]:
            end = _FIELD.match(rest).end()  # type: ignore[union-attr]
            values[name], rest = rest[:end].rstrip(" \t,"), rest[end:]
        values[names[-1]] = rest.strip()
    return values
