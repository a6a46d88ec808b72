"""Parser of submit descriptions (submit files) in HTCondor's syntax; each fault has its line.

Also the parsed description (`SubmitFile`), to and from JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from matching.ads.classads import AdError, parse_expression
from matching.descriptions.macros import MacroError, merged, parse_template
from matching.descriptions.substitution import MAX_TEXT_LENGTH, reference_fault, uses_macros
from wms.core.errors import Finding
from wms.jobs.description.commands import ATTRIBUTE_SYNONYMS, SYNONYMS
from wms.jobs.description.queue_statement import (
    MAX_JOBS,
    BadQueue,
    QueueStatement,
    parse_queue,
)

_COMMAND = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_./]*)\s*=\s*(.*)\Z", re.DOTALL)
_TEXT_OF_LINES = re.compile(r"((?:\+|MY\.)?[A-Za-z0-9_][A-Za-z0-9_.]*)\s*@=\s*(\S+)\Z", re.I)
_ATTRIBUTE = re.compile(
    r"(?:\+|MY\.)([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)\Z", re.DOTALL | re.IGNORECASE
)
_QUEUE = re.compile(r"queue\b(?!\s*=)\s*(.*)\Z", re.IGNORECASE | re.DOTALL)
_META = re.compile(r"(if|elif|else|endif|include|use)\b\s*(?!\s*=)", re.IGNORECASE)
#: After so many faults the rest of the file is not read: nobody mends more at once.
MAX_FINDINGS = 200
#: Every node reads all of its description: nobody writes so many lines.
MAX_COMMANDS = 1000
#: Commands whose values are ClassAd expressions.
EXPRESSIONS = frozenset(
    {
        "requirements", "rank", "periodic_hold", "periodic_release", "periodic_remove",
        "on_exit_hold", "on_exit_remove", "retry_until",
    }
)  # fmt: skip


@dataclass(slots=True)
class SubmitFile:
    """A parsed submit description.

    `commands` by lower-case name, macros not expanded; `attributes` are those given by `+Name`.
    Both are those before the first `queue`, and each of `queues` has the later changes; a
    description without one makes one job. `lines` has the line of each command and attribute,
    `spellings` the spelling of each attribute, by lower-case name. `warnings` are about names given
    again in another case: the last one counts. `file` is its path. `faulty` are the commands and
    `+attributes`, in lower case, that findings are about; with `is_unreadable`, some are about what
    could not be read at all, so that nobody knows what is missing.
    """

    commands: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    queues: list[QueueStatement] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    file: str = ""
    faulty: set[str] = field(default_factory=set)
    is_unreadable: bool = False

    def as_dict(self) -> dict[str, Any]:
        """JSON values of the description."""
        content: dict[str, Any] = {"commands": self.commands, "attributes": self.attributes}
        if len(self.queues) > 1 or not all(queue.is_single for queue in self.queues):
            content["queues"] = [queue.as_dict() for queue in self.queues]
        return content


def parse_submit_file(
    text: str, *, file: str, first_line: int = 1, most_jobs: int = MAX_JOBS
) -> SubmitFile:
    """Parsed submit description. Never raises: faults are in `findings`, by line.

    `first_line` is the number of the text's first line in the file; a queue statement makes
    `most_jobs` at most of one item.
    """
    return _Parser(text, file, first_line, most_jobs).parsed()


class _Parser:
    """Reads line after line into a description."""

    def __init__(self, text: str, file: str, first_line: int, most_jobs: int) -> None:
        self._most_jobs = most_jobs
        self._lines = text.splitlines()
        self._place = 0
        self._file = file
        self._first_line = first_line
        self._parsed = SubmitFile(file=file)
        self._commands = self._parsed.commands
        self._attributes = self._parsed.attributes

    def parsed(self) -> SubmitFile:
        findings = self._parsed.findings
        for count, (number, line) in enumerate(self._logical_lines()):
            queue = _QUEUE.match(line)
            if count == MAX_COMMANDS and queue is None:
                message = f"a submit description has at most {MAX_COMMANDS} commands"
                findings.append(Finding(message, file=self._file, line=number))
                self._parsed.is_unreadable = True
            if len(findings) >= MAX_FINDINGS or count == MAX_COMMANDS:
                break
            fault = self._take_queue(number, queue[1]) if queue else self._take(number, line)
            if fault:
                findings.append(Finding(fault, file=self._file, line=number))
        return self._parsed

    def _logical_lines(self) -> Iterator[tuple[int, str]]:
        """Lines joined where one ends with a backslash, without comments and empty lines."""
        joined, first = "", 0
        while self._place < len(self._lines):
            line = self._lines[self._place].strip()
            self._place += 1
            if line.startswith("#") or (not line and not joined):
                continue
            first = first or self._first_line + self._place - 1
            if line.endswith("\\"):
                joined += line[:-1]
                continue
            whole = (joined + line).strip()
            joined, number, first = "", first, 0
            if whole:
                yield number, whole
        if joined.strip():
            yield first, joined.strip()

    def _block(self, closing: str) -> list[str] | None:
        """Lines up to the one that begins with these characters; None when there is none."""
        for end in range(self._place, len(self._lines)):
            if self._lines[end].lstrip().startswith(closing):
                lines = self._lines[self._place : end]
                self._place = end + 1
                return _continued(lines)
        # Faults of its items would only follow from this one.
        self._place = len(self._lines)
        return None

    def _take_queue(self, number: int, text: str) -> str:
        """Add a queue statement; the fault as text, or an empty string."""
        try:
            queue = parse_queue(text, number, lambda: self._block(")"), self._most_jobs)
        except BadQueue as error:
            return self._unreadable(str(error))
        for each in (queue.count, queue.file, *queue.items):
            if fault := _macro_fault(each):
                return self._unreadable(f"queue: {fault}")
        if self._parsed.queues:
            queue.commands, queue.attributes = self._commands, self._attributes
        self._parsed.queues.append(queue)
        # Later commands belong to the next statement.
        self._commands, self._attributes = {}, {}
        return ""

    def _take(self, number: int, line: str) -> str:
        """Add one line to the description; the fault as text, or an empty string."""
        if (several := _TEXT_OF_LINES.match(line)) is not None:
            lines = self._block(f"@{several[2]}")
            if lines is None:
                return self._unreadable(f"the text of {several[1]} is not closed by @{several[2]}")
            line = f"{several[1]} = " + "\n".join(lines)
        if len(line) > MAX_TEXT_LENGTH:
            return self._unreadable(f"a command has at most {MAX_TEXT_LENGTH} characters")
        attribute = _ATTRIBUTE.match(line)
        if attribute is not None:
            command_of = ATTRIBUTE_SYNONYMS.get(attribute[1].lower())
            if command_of is not None:
                return self._take_command(number, command_of, attribute[2])
            return self._take_attribute(number, *attribute.groups())
        command = _COMMAND.match(line)
        if command is None:
            if (word := _META.match(line)) is not None:
                return self._unreadable(
                    f"{word[1].lower()} cannot be used here: write what it would lead to"
                )
            return self._unreadable(f"expected `name = value`, found: {line[:80]}")
        return self._take_command(number, command[1].lower(), command[2])

    def _unreadable(self, fault: str) -> str:
        """The fault of something that stays unknown."""
        self._parsed.is_unreadable = True
        return fault

    def _take_attribute(self, number: int, name: str, value: str) -> str:
        if fault := self._attribute_fault(number, name, value):
            self._parsed.faulty.add(f"+{name.lower()}")
        return fault

    def _attribute_fault(self, number: int, name: str, value: str) -> str:
        parsed = self._parsed
        earlier = parsed.spellings.setdefault(name.lower(), name)
        if earlier != name:
            self._attributes.pop(earlier, None)
            repeated = f"+{name} is +{earlier} of line {parsed.lines[name.lower()]} again"
            message = f"{repeated}: the last one counts"
            parsed.warnings.append(Finding(message, file=self._file, line=number))
        self._attributes[name] = value
        parsed.spellings[name.lower()] = name
        parsed.lines[name.lower()] = number
        if fault := _macro_fault(value):
            return f"+{name}: {fault}"
        return _expression_fault(f"+{name}", value)

    def _take_command(self, number: int, name: str, value: str) -> str:
        if fault := self._command_fault(number, name, value):
            self._parsed.faulty.add(SYNONYMS.get(name, name))
        return fault

    def _command_fault(self, number: int, name: str, value: str) -> str:
        earlier = self._commands.get(name)
        if earlier is None and self._parsed.queues:
            earlier = self._earlier(name)
        try:
            value = merged(earlier, name, value)
        except MacroError as error:
            return f"{name}: {error}"
        self._commands[name] = value
        self._parsed.lines[name] = number
        if fault := _macro_fault(value):
            return f"{name}: {fault}"
        if name in EXPRESSIONS:
            return _expression_fault(name, value)
        fault = reference_fault(value)
        return f"{name}: {fault}" if fault else ""

    def _earlier(self, name: str) -> str | None:
        """Value of a command before the latest queue statement."""
        for queue in reversed(self._parsed.queues):
            if name in queue.commands:
                return queue.commands[name]
        return self._parsed.commands.get(name)


def _continued(lines: list[str]) -> list[str]:
    """Lines, joined where one ends with a backslash."""
    joined: list[str] = []
    is_open = False
    for line in lines:
        text = line.strip()
        if is_open:
            text = joined.pop() + text
        is_open = text.endswith("\\")
        joined.append(text[:-1] if is_open else text)
    return joined


def _macro_fault(text: str) -> str:
    """Fault in the macros of a text; empty if there is none."""
    try:
        parse_template(text)
    except MacroError as error:
        return str(error)
    return ""


def _expression_fault(name: str, text: str) -> str:
    # With macros in it the expression is known only when a node is submitted.
    if uses_macros(text):
        return ""
    try:
        parse_expression(text)
    except AdError as error:
        return f"{name}: {error.message}"
    return ""


def from_dict(values: Mapping[str, Any]) -> SubmitFile:
    """Description from the values of `as_dict`."""
    return SubmitFile(
        commands=dict(values["commands"]),
        attributes=dict(values["attributes"]),
        queues=[QueueStatement(**queue) for queue in values.get("queues", ())],
    )
