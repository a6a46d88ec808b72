"""Names of files in DAG files: descriptions, splices, inner DAGs, scripts, included files.

A reader that is meant to find files, not faults: the portal checks what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .submit_scan import Description, read_description

_PIECE = re.compile(r"""[^ \t\r"']+|"([^"\\]*(?:\\.[^"\\]*)*)"|'([^'\\]*(?:\\.[^'\\]*)*)'""")
_WORD = re.compile(
    r"""(?:[^ \t\r"']+|"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')+""", re.DOTALL
)
_VARIABLE = re.compile(r'([A-Za-z0-9_.+]+)\s*=\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ALL_NODES = "ALL-NODES"
_NODES = frozenset({"JOB", "FINAL", "PROVISIONER", "SERVICE"})
_SCRIPT_KINDS = frozenset({"PRE", "POST", "HOLD"})
#: First words of lines by which a DAG file is told from a submit description.
COMMANDS = frozenset(
    {
        "JOB", "PARENT", "WEAK", "SUBDAG", "SPLICE", "DATA", "FINAL", "PROVISIONER", "SERVICE",
        "INCLUDE", "GATE", "SUBMIT-DESCRIPTION", "SCRIPT", "VARS", "RETRY", "CONFIG", "DOT",
    }
)  # fmt: skip


@dataclass
class Node:
    """A node with a description of its own file or text; `variables` by lower-case name."""

    name: str
    source: str
    directory: str
    variables: dict[str, str] = field(default_factory=dict)
    inline: Description | None = None


@dataclass
class DagText:
    """Names in a DAG file.

    `nodes` by name; `inner` and `spliced` are DAG files with their directories, `data` the files
    of requests, `scripts` programs with the node that they belong to, `others` plain files.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    inner: list[tuple[str, str]] = field(default_factory=list)
    spliced: list[tuple[str, str]] = field(default_factory=list)
    data: list[tuple[str, str]] = field(default_factory=list)
    scripts: list[tuple[str, str]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    descriptions: dict[str, Description] = field(default_factory=dict)
    #: VARS lines: the node and its variables.
    variables: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def directories_of(self, node: str) -> list[str]:
        """Directories of the nodes that a command names."""
        if _keyword(node) == _ALL_NODES:
            return sorted({each.directory for each in self.nodes.values()} or {""})
        found = self.nodes.get(node)
        return [found.directory if found else ""]


def is_dag_text(text: str) -> bool:
    """Whether the first command of a text is one of DAG files."""
    for line in text.splitlines():
        words = line.split(None, 2)
        if not words or words[0].startswith(("#", "//")):
            continue
        is_assignment = len(words) > 1 and words[1].startswith(("=", "@="))
        return _keyword(words[0]) in COMMANDS and not is_assignment
    return False


def read_dag(text: str, include: Callable[[str], str] = lambda name: "") -> DagText:
    """Names in the text of a DAG file; `include` gives the text of an included file."""
    found = DagText()
    _Reader(text, found, include).read()
    for name, variables in found.variables:
        is_for_all = _keyword(name) == _ALL_NODES
        named = found.nodes.values() if is_for_all else filter(None, [found.nodes.get(name)])
        for node in named:
            node.variables.update(variables)
    return found


class _Reader:
    def __init__(self, text: str, found: DagText, include: Callable[[str], str]) -> None:
        self._lines = text.split("\n")
        self._at = 0
        self._found, self._include = found, include

    def read(self) -> None:
        for line in self._logical_lines():
            self._take(line)

    def _logical_lines(self) -> Iterator[str]:
        joined = ""
        while self._at < len(self._lines):
            line = self._lines[self._at].strip(" \t\r")
            self._at += 1
            if not line or line.startswith(("#", "//")):
                continue
            if line.endswith("\\"):
                joined += line[:-1] + " "
                continue
            yield joined + line
            joined = ""
        if joined:
            yield joined

    def _take(self, line: str) -> None:
        words = _words(line)
        command, rest = _keyword(words[0]) if words else "", words[1:]
        if command == "VARS" and len(rest) >= 2:
            self._found.variables.append((rest[0], _variables(line)))
        elif command in _NODES and len(rest) >= 2:
            self._node(rest)
        elif command == "SUBMIT-DESCRIPTION" and rest:
            self._found.descriptions[rest[0]] = self._block(rest[1:])[0]
        elif command == "INCLUDE" and rest:
            # Its lines count as if they stood here.
            _Reader(self._include(rest[0]), self._found, self._include).read()
        elif command == "SCRIPT":
            self._script(rest)
        else:
            self._take_file(command, rest)

    def _take_file(self, command: str, rest: list[str]) -> None:
        """Take a command that names one file."""
        if command == "SUBDAG" and len(rest) >= 3:
            self._found.inner.append((rest[2], _directory(rest[3:])))
        elif command == "SPLICE" and len(rest) >= 2:
            self._found.spliced.append((rest[1], _directory(rest[2:])))
        elif command == "DATA" and len(rest) >= 2:
            self._found.data.append((rest[1], _directory(rest[2:])))
        elif command == "CONFIG" and rest:
            self._found.others.append(rest[0])
        elif command == "DOT":
            self._found.others += _after(rest, "INCLUDE")

    def _node(self, rest: list[str]) -> None:
        name, source, more = rest[0], rest[1], rest[2:]
        inline = None
        if source == "{" or source.startswith("@="):
            inline, more = self._block([source])
        self._found.nodes[name] = Node(name, source, _directory(more), inline=inline)

    def _block(self, opening: list[str]) -> tuple[Description, list[str]]:
        """Description in the next lines, and the words behind its end."""
        closing = "}" if opening[:1] == ["{"] else "@" + opening[0][2:] if opening else "}"
        lines: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at].strip(" \t\r")
            self._at += 1
            if line.startswith(closing):
                return read_description("\n".join(lines)), _words(line[len(closing) :])
            lines.append(line)
        return read_description("\n".join(lines)), []

    def _script(self, rest: list[str]) -> None:
        place = next((at for at, word in enumerate(rest) if _keyword(word) in _SCRIPT_KINDS), None)
        if place is not None and len(rest) > place + 2:
            self._found.scripts.append((rest[place + 2], rest[place + 1]))


def _keyword(word: str) -> str:
    return word.upper().replace("_", "-")


def _words(text: str) -> list[str]:
    return [_unquoted(match[0]) for match in _WORD.finditer(text)]


def _unquoted(word: str) -> str:
    if '"' not in word and "'" not in word:
        return word
    return "".join(
        piece[0] if piece[0][0] not in "\"'" else _ESCAPED.sub(r"\1", piece[0][1:-1])
        for piece in _PIECE.finditer(word)
    )


def _variables(line: str) -> dict[str, str]:
    found = _VARIABLE.findall(line)
    return {name.lower(): _ESCAPED.sub(r"\1", value) for name, value in found}


def _directory(options: list[str]) -> str:
    return next(iter(_after(options, "DIR")), "")


def _after(words: list[str], keyword: str) -> list[str]:
    """The word behind a keyword, if it is there."""
    places = [at for at, word in enumerate(words[:-1]) if _keyword(word) == keyword]
    return [words[places[0] + 1]] if places else []
