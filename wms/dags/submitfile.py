"""Submit descriptions in HTCondor's syntax: reading them, and making a job of one for a node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from matching.classads import AdError, parse_expression
from matching.substitution import MAX_TEXT_LENGTH, reference_fault, uses_macros
from wms.core.errors import Finding

_COMMAND = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)\Z", re.DOTALL)
_ATTRIBUTE = re.compile(
    r"(?:\+|MY\.)([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)\Z", re.DOTALL | re.IGNORECASE
)
_QUEUE = re.compile(r"queue\b\s*(.*)\Z", re.IGNORECASE | re.DOTALL)
#: After so many faults the rest of the file is not read: nobody mends more at once.
MAX_FINDINGS = 200
#: Every node reads all of its description: nobody writes so many lines.
MAX_COMMANDS = 1000
#: Commands whose values are ClassAd expressions.
_EXPRESSIONS = frozenset({"requirements", "rank"})


@dataclass(slots=True)
class SubmitFile:
    """A parsed submit description.

    `commands` by lower-case name, macros not expanded; `attributes` are those given by `+Name`;
    `lines` tells where each command and attribute stands, `spellings` how an attribute is written,
    by lower-case name. `warnings` tell what is given again in another case: the last one counts.
    """

    commands: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def as_dict(self) -> dict[str, dict[str, str]]:
        """The description as JSON values."""
        return {"commands": self.commands, "attributes": self.attributes}


def parse_submit_file(text: str, *, file: str) -> SubmitFile:
    """Parse a submit description. Never raises: faults are in `findings`, by line.

    One `queue` for one job is understood; lines after it are not read, as one description makes
    one job here.
    """
    parsed = SubmitFile()
    for count, (number, line) in enumerate(_logical_lines(text)):
        queue = _QUEUE.match(line)
        if queue is not None:
            if queue.group(1).strip() not in {"", "1"}:
                message = f"only `queue` for one job is supported, found: {line}"
                parsed.findings.append(Finding(message, file=file, line=number))
            break
        if len(parsed.findings) >= MAX_FINDINGS:
            break
        if count == MAX_COMMANDS:
            message = f"a submit description has at most {MAX_COMMANDS} commands"
            parsed.findings.append(Finding(message, file=file, line=number))
            break
        fault = _take(parsed, number, line, file)
        if fault:
            parsed.findings.append(Finding(fault, file=file, line=number))
    return parsed


def _take(parsed: SubmitFile, number: int, line: str, file: str) -> str:
    """Take one line into the description; the fault as text, or an empty string."""
    if len(line) > MAX_TEXT_LENGTH:
        return f"a command has at most {MAX_TEXT_LENGTH} characters"
    attribute = _ATTRIBUTE.match(line)
    if attribute is not None:
        name, value = attribute.groups()
        earlier = parsed.spellings.setdefault(name.lower(), name)
        if earlier != name:
            del parsed.attributes[earlier]
            told = f"+{name} is +{earlier} of line {parsed.lines[name.lower()]} again"
            message = f"{told}: the last one counts"
            parsed.warnings.append(Finding(message, file=file, line=number))
        parsed.attributes[name] = value
        parsed.spellings[name.lower()] = name
        parsed.lines[name.lower()] = number
        return _expression_fault(f"+{name}", value)
    command = _COMMAND.match(line)
    if command is None:
        return f"expected `name = value`, found: {line[:80]}"
    name, value = command.group(1).lower(), command.group(2)
    parsed.commands[name] = value
    parsed.lines[name] = number
    if name in _EXPRESSIONS:
        return _expression_fault(name, value)
    fault = reference_fault(value)
    return f"{name}: {fault}" if fault else ""


def _expression_fault(name: str, text: str) -> str:
    # With macros in it the expression is known only when a node is submitted.
    if uses_macros(text):
        return ""
    try:
        parse_expression(text)
    except AdError as error:
        return f"{name}: {error.message}"
    return ""


def _logical_lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    joined, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("#") or (not line and not joined):
            continue
        first = first or number
        if line.endswith("\\"):
            joined += line[:-1]
            continue
        lines.append((first, (joined + line).strip()))
        joined, first = "", 0
    if joined.strip():
        lines.append((first, joined.strip()))
    return [(number, line) for number, line in lines if line]


def from_dict(values: Mapping[str, Mapping[str, str]]) -> SubmitFile:
    """The description that `as_dict` made."""
    return SubmitFile(commands=dict(values["commands"]), attributes=dict(values["attributes"]))
