"""The DAG language: the part of DAGMan's that is understood here, every fault with its line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from matching.substitution import reference_fault
from wms.core.errors import Finding

_RESERVED_NAMES = frozenset({"PARENT", "CHILD", "ALL_NODES"})
_OTHER_COMMANDS = frozenset(
    {
        "ABORT-DAG-ON", "CATEGORY", "CONFIG", "CONNECT", "DATA", "DONE", "DOT", "ENV", "FINAL",
        "INCLUDE", "JOBSTATE_LOG", "MAXJOBS", "NODE_STATUS_FILE", "PIN_IN", "PIN_OUT", "PRE_SKIP",
        "PRIORITY", "PROVISIONER", "REJECT", "SAVE_POINT_FILE", "SCRIPT", "SERVICE",
        "SET_JOB_ATTR", "SPLICE", "SUBDAG", "SUBMIT-DESCRIPTION", "TOLERANCE", "WEAK",
    }
)  # fmt: skip
MAX_RETRIES = 1000
MAX_EDGES = 2_000_000
#: After so many faults the rest of the file is not read: nobody mends more at once.
MAX_FINDINGS = 200


@dataclass(slots=True)
class NodeSpec:
    """A node as the DAG file describes it.

    `variable_lines` tells how each of its VARS is written and where, by lower-case name.
    """

    name: str
    submit_file: str
    line: int
    variables: dict[str, str] = field(default_factory=dict)
    variable_lines: dict[str, tuple[str, int]] = field(default_factory=dict)
    max_retries: int = 0


@dataclass(slots=True)
class DagFile:
    """A parsed DAG file: nodes in the order of the file, edges with their lines, all faults.

    `arcs_read` counts repeated arcs as well: reading them is what costs time. `repeated` are VARS
    that are given again in another case, by line; the last one counts.
    """

    nodes: dict[str, NodeSpec] = field(default_factory=dict)
    edges: dict[tuple[str, str], int] = field(default_factory=dict)
    arcs_read: int = 0
    repeated: list[tuple[int, str]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


class _Fault(ValueError):
    """A fault of one line."""


def parse_dag(text: str, *, file: str) -> DagFile:
    """Parse a whole DAG file. Never raises: faults are in `findings`, by line.

    The file is read twice, as DAGMan does: lines that make nodes first, then the others, so that a
    PARENT or RETRY line may stand above the JOB line that it names.
    """
    dag = DagFile()
    lines = list(_logical_lines(text))
    for handlers, is_last in ((_MAKERS, False), (_MODIFIERS, True)):
        for number, line in lines:
            if len(dag.findings) >= MAX_FINDINGS:
                break
            try:
                _handle(dag, number, line, handlers, is_last)
            except _Fault as fault:
                dag.findings.append(Finding(str(fault), file=file, line=number))
    dag.findings.sort(key=lambda finding: finding.line or 0)
    return dag


_Handler = Callable[[DagFile, int, list[str]], None]


def _handle(
    dag: DagFile, number: int, line: str, handlers: dict[str, _Handler], is_last: bool
) -> None:
    """Give the line to the handler of its command; unknown commands are told in the last pass."""
    keyword = line.split(None, 1)[0].upper()
    if keyword in handlers:
        handlers[keyword](dag, number, tokenize(line)[1:])
    elif is_last and keyword not in _MAKERS:
        if keyword.replace("_", "-") in {name.replace("_", "-") for name in _OTHER_COMMANDS}:
            raise _Fault(f"{keyword} is a DAGMan command that is not supported here")
        raise _Fault(f"unknown command {line.split(None, 1)[0]}")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with the number of their first part; a backslash at the end joins."""
    joined, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("#") or (not line and not joined):
            continue
        first = first or number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        if (joined + line).strip():
            yield first, (joined + line).strip()
        joined, first = "", 0
    if joined.strip():
        yield first, joined.strip()


def tokenize(line: str) -> list[str]:
    """Words separated by blanks; quotes group, and a backslash escapes inside of them.

    Raises ValueError for an open quote.
    """
    words: list[str] = []
    word, quote, position = "", "", 0
    is_word = False
    while position < len(line):
        char = line[position]
        if quote and char == "\\" and position + 1 < len(line):
            word += line[position + 1]
            position += 1
        elif quote and char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote, is_word = char, True
        elif not quote and char.isspace():
            if is_word:
                words.append(word)
            word, is_word = "", False
        else:
            word, is_word = word + char, True
        position += 1
    if quote:
        raise _Fault(f"a quote ({quote}) is not closed")
    return [*words, word] if is_word else words


def _job(dag: DagFile, number: int, words: list[str]) -> None:
    if len(words) < 2:
        raise _Fault("expected: JOB name submit-file")
    name, submit_file, *options = words
    if name.upper() in _RESERVED_NAMES:
        raise _Fault(f"{name} cannot be the name of a node")
    if "+" in name:
        raise _Fault(f"the name of a node cannot contain +: {name}")
    if len(name) > 255:
        raise _Fault("the name of a node has at most 255 characters")
    if options:
        raise _Fault(f"unexpected or unsupported after the submit file: {' '.join(options)}")
    if name in dag.nodes:
        raise _Fault(f"node {name} is defined twice, first in line {dag.nodes[name].line}")
    dag.nodes[name] = NodeSpec(name=name, submit_file=submit_file, line=number)


def _parent(dag: DagFile, number: int, words: list[str]) -> None:
    at = next((i for i, word in enumerate(words) if word.upper() == "CHILD"), None)
    if at is None:
        raise _Fault("expected: PARENT names... CHILD names...")
    parents, children = words[:at], words[at + 1 :]
    if not parents or not children:
        raise _Fault("PARENT and CHILD need at least one node each")
    for kind, names in (("parent", parents), ("child", children)):
        unknown = [name for name in names if name not in dag.nodes]
        if unknown:
            raise _Fault(f"unknown {kind} {', '.join(unknown)}")
    dag.arcs_read += len(parents) * len(children)
    if dag.arcs_read > MAX_EDGES:
        raise _Fault(f"a DAG has at most {MAX_EDGES} arcs, repeated ones included")
    for parent in parents:
        for child in children:
            dag.edges.setdefault((parent, child), number)


def _vars(dag: DagFile, number: int, words: list[str]) -> None:
    if len(words) < 2:
        raise _Fault('expected: VARS node name="value" ...')
    node = _node(dag, words[0])
    for pair in words[1:]:
        name, equals, value = pair.partition("=")
        if not equals or not any(char.isalnum() for char in name):
            raise _Fault(f'expected name="value", found: {pair}')
        if name.lower().startswith("queue"):
            raise _Fault(f"the name of a variable cannot begin with queue: {name}")
        if fault := reference_fault(value):
            raise _Fault(f"{name}: {fault}")
        earlier, line = node.variable_lines.get(name.lower(), (name, number))
        if earlier != name:
            del node.variables[earlier]
            if len(dag.repeated) < MAX_FINDINGS:
                again = f"{name} of node {node.name} is {earlier} of line {line} again"
                dag.repeated.append((number, again))
        node.variables[name] = value
        node.variable_lines[sys.intern(name.lower())] = (name, number)


def _retry(dag: DagFile, _number: int, words: list[str]) -> None:
    if len(words) < 2:
        raise _Fault("expected: RETRY node number")
    node = _node(dag, words[0])
    if len(words) > 2:
        raise _Fault(f"unexpected or unsupported after the number: {' '.join(words[2:])}")
    is_number = words[1].isascii() and words[1].isdigit() and len(words[1]) <= 9
    if not is_number or int(words[1]) > MAX_RETRIES:
        found = words[1][:80]
        raise _Fault(f"RETRY needs a whole number from 0 to {MAX_RETRIES}, found: {found}")
    node.max_retries = int(words[1])


def _node(dag: DagFile, name: str) -> NodeSpec:
    if name not in dag.nodes:
        raise _Fault(f"unknown node {name}")
    return dag.nodes[name]


_MAKERS: dict[str, _Handler] = {"JOB": _job}
_MODIFIERS: dict[str, _Handler] = {"PARENT": _parent, "VARS": _vars, "RETRY": _retry}
