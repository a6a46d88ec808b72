"""Names of files in submit descriptions: program, inputs, standard input, images, tables.

A reader that is meant to find files, not faults: the portal checks what was sent. Macros that are
known here are expanded; of others a `*` is left, and all files that fit are meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

#: What stands where a value is known only when the job runs.
UNKNOWN = "*"
_LISTS = ("transfer_input_files", "common_input_files", "public_input_files")
_OTHER_NAMES = {
    "transferinputfiles": "transfer_input_files",
    "stdin": "input",
    "initial_dir": "initialdir",
    "job_iwd": "initialdir",
}
_COMMAND = re.compile(r"([A-Za-z0-9_+][A-Za-z0-9_./]*)\s*=\s*(.*)\Z", re.DOTALL)
_TEXT_OF_LINES = re.compile(r"((?:\+|MY\.)?[A-Za-z0-9_][A-Za-z0-9_.]*)\s*@=\s*(\S+)\Z", re.I)
_QUEUE = re.compile(r"queue\b(?!\s*=)\s*(.*)\Z", re.IGNORECASE | re.DOTALL)
_ITEMS = re.compile(r"(?P<names>.*?)\b(?P<word>in|from|matching)\b\s*(?P<rest>.*)\Z", re.I | re.S)
_MACRO = re.compile(r"\$(\$?[A-Za-z]*)\(([^()]*)\)")
_SLICE = re.compile(r"\A\[[-:\d\s]*\]\s*")
_SEPARATOR = re.compile(r"[\s,]+")
_MOST_ROWS = 10_000
_MOST_DEPTH = 20
Macros = Mapping[str, str]


@dataclass
class Queue:
    """A queue statement: variables, rows of values, a file with rows, or patterns of files."""

    variables: Sequence[str] = ()
    rows: list[str] = field(default_factory=list)
    file: str = ""
    patterns: list[str] = field(default_factory=list)

    def values(self, lines: Iterable[str]) -> Iterator[Macros]:
        """Variables of each row."""
        names = [name.lower() for name in self.variables] or ["item"]
        for line in lines:
            words = _SEPARATOR.split(line.strip(), maxsplit=len(names) - 1)
            yield {"item": line.strip(), **dict(zip(names, words))}


@dataclass
class Description:
    """Commands of a submit description by their names in lower case, and its queue statements."""

    commands: dict[str, str] = field(default_factory=dict)
    queues: list[Queue] = field(default_factory=list)

    def names(self, macros: Macros) -> Iterator[tuple[str, bool]]:
        """Names of files, each with whether it is a program, for these values of macros."""
        known = {**self.commands, **macros}
        folder = expanded(self.commands.get("initialdir", ""), known).strip()
        program = expanded(self.commands.get("executable", ""), known).strip()
        if program:
            yield program, True
        for name in self._inputs(known):
            yield (f"{folder}/{name}" if folder else name), False

    @property
    def is_fixed(self) -> bool:
        """Whether its names are the same for all jobs."""
        texts = [self.commands.get(name, "") for name in (*_LISTS, "executable", "input")]
        return not any("$" in text for text in [*texts, self.commands.get("initialdir", "")])

    def _inputs(self, known: Macros) -> Iterator[str]:
        for command in _LISTS:
            text = expanded(self.commands.get(command, ""), known)
            yield from (name.strip() for name in text.split(",") if name.strip())
        for command in ("input", "container_image"):
            name = expanded(self.commands.get(command, ""), known).strip()
            is_image = command == "container_image"
            if name and name != "/dev/null" and (not is_image or name.endswith(".sif")):
                yield name


def expanded(text: str, known: Macros, depth: int = 0) -> str:
    """Text with the values of its macros; `*` for what is not known here."""
    if "$" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        function, inside = match.groups()
        name, colon, default = inside.partition(":")
        found = known.get(name.strip().lower())
        if function or (found is None and not colon) or depth >= _MOST_DEPTH:
            return UNKNOWN
        return expanded(default if found is None else found, known, depth + 1)

    return _MACRO.sub(value, text)


def read_description(text: str) -> Description:
    """Description in a submit file."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._at = 0
        self._found = Description()

    def read(self) -> Description:
        for line in self._logical_lines():
            queue = _QUEUE.match(line)
            block = _TEXT_OF_LINES.match(line)
            command = _COMMAND.match(line)
            if queue:
                self._found.queues.append(self._queue(queue[1]))
            elif block:
                self._set(block[1], " ".join(self._block(f"@{block[2]}")))
            elif command:
                self._set(command[1], command[2])
        return self._found

    def _set(self, name: str, value: str) -> None:
        lowered = name.lower()
        self._found.commands[_OTHER_NAMES.get(lowered, lowered)] = value.strip()

    def _logical_lines(self) -> Iterator[str]:
        joined = ""
        while self._at < len(self._lines):
            line = self._lines[self._at].strip()
            self._at += 1
            if line.startswith("#") or (not line and not joined):
                continue
            if line.endswith("\\"):
                joined += line[:-1]
                continue
            yield (joined + line).strip()
            joined = ""
        if joined.strip():
            yield joined.strip()

    def _block(self, closing: str) -> list[str]:
        lines = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.lstrip().startswith(closing):
                break
            lines.append(line.strip())
        return [line for line in lines if line and not line.startswith("#")]

    def _queue(self, text: str) -> Queue:
        items = _ITEMS.match(text)
        if items is None:
            return Queue()
        names = [name for name in _SEPARATOR.split(items["names"]) if name and not name.isdigit()]
        rest = _SLICE.sub("", items["rest"].strip(), count=1) if items else ""
        lines = self._items(rest)
        word = items["word"].lower()
        if word == "matching":
            words = [word for line in lines or [rest] for word in _SEPARATOR.split(line) if word]
            kinds = {"files", "dirs", "any"}
            return Queue(names, patterns=[each for each in words if each.lower() not in kinds])
        if lines is None:
            is_file = word == "from" and not rest.rstrip().endswith("|")
            return Queue(names, file=rest.strip()) if is_file else Queue(names, rows=[rest])
        if word == "in":
            lines = [each for line in lines for each in _SEPARATOR.split(line) if each]
        return Queue(names, rows=lines[:_MOST_ROWS])

    def _items(self, rest: str) -> list[str] | None:
        """Items between parentheses, in the line or below it; None without parentheses."""
        if not rest.startswith("("):
            return None
        inside = rest[1:].strip()
        if inside.endswith(")"):
            return [inside[:-1].strip()]
        return [inside, *self._block(")")] if inside else self._block(")")
