"""Text of rescue files and save points, written and parsed: nodes that are done, retries left.

The form is DAGMan's "partial" one: the file is read after the DAG file and does not replace it. Of
nodes with conditions on arcs from them it has the outcome too, and of a DAG that has grown what it
grew by; both are Pilotage's own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from wms.core.errors import Finding
from wms.dags.states import GrowthKind

#: The version of the form, which DAGMan writes into every rescue file.
VERSION = "2.0.1"
_MOST_FINDINGS = 200
_MOST_RETRIES = 2**31 - 1
_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_MOST_OUTCOME_LENGTH = 32 * 1024
_MOST_GROWTH_LENGTH = 512 * 1024
_GROWTH_EXPECTED = "GROW takes what the DAG grew by as JSON: kind, file, and the nodes around it"
_AROUND = frozenset({"after", "before"})
#: What a line of each kind has, and what it may have beside that.
_GROWTH_KEYS = {
    GrowthKind.PASS.value: (frozenset({"kind", "node"}), frozenset[str]()),
    GrowthKind.FRAGMENT.value: (frozenset({"kind", "node", "file"}), frozenset[str]()),
    GrowthKind.HAND.value: (frozenset({"kind", "file"}), _AROUND),
}
_NUMBER = re.compile(r"-?[0-9]{1,10}\Z")


class GrowthLine(NamedTuple):
    """Insertion of nodes into a DAG that ran: a pass or a fragment after a node; or a fragment that
    somebody added, behind and before others.
    """

    kind: str
    node: str = ""
    file: str = ""
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    number: int = 0

    @property
    def values(self) -> dict[str, Any]:
        """The line as it is written, without what is empty."""
        given = self._asdict()
        del given["number"]
        return {name: value for name, value in given.items() if value}


class NodeProgress(NamedTuple):
    """Progress of one node in a rescue file."""

    name: str
    is_done: bool = False
    is_failed: bool = False
    #: It has children, and all of them wait for its end only, whatever that is.
    has_only_weak_children: bool = False
    max_retries: int = 0
    retry_number: int = 0
    unless_exit: int | None = None
    #: FINAL and PROVISIONER run in every run, so they are never written as done.
    is_final: bool = False
    #: Of an end that counts in the next run, as JSON: see `wms.dags.joins.outcomes`.
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    """Comments at the top of the file. With `start_node` the file is that node's save point."""

    dag_file: str
    created_at: datetime
    start_node: str = ""


def write_rescue(
    header: Header,
    nodes: Sequence[NodeProgress],
    *,
    growth: Sequence[GrowthLine] = (),
    resets_retries: bool = True,
) -> str:
    """Text of a rescue file or save point; `nodes` are all nodes of the DAG, in their order.

    So are the insertions of `growth`, which make nodes that are not in the DAG files.

    Unless retries begin anew in the next run, it has the number left of each unfinished node. A
    failed node is written as done if it has children and these wait for its end only.
    """
    return "".join([*_head(header, nodes), *map(_grown, growth), *_lines(nodes, resets_retries)])


def counts_as_done(node: NodeProgress) -> bool:
    """Whether the node is done at the start of the next run."""
    is_forgiven = node.is_failed and node.has_only_weak_children
    return (node.is_done or is_forgiven) and not node.is_final


def _head(header: Header, nodes: Sequence[NodeProgress]) -> Iterator[str]:
    failed = [node.name for node in nodes if node.is_failed]
    created = header.created_at.astimezone(UTC)
    if header.start_node:
        yield f"# Save file written at Start Node {header.start_node}\n"
    else:
        yield "# Rescue DAG file, created after running\n"
        yield f"#   the {header.dag_file} DAG file\n"
    yield f"# Created {created.month}/{created.day}/{created:%Y %H:%M:%S} UTC\n"
    yield f"# Rescue DAG version: {VERSION} (partial)\n#\n"
    yield f"# Total number of Nodes: {len(nodes)}\n"
    yield f"# Nodes premarked DONE: {sum(map(counts_as_done, nodes))}\n"
    yield f"# Nodes that failed: {len(failed)}\n"
    yield f"#   {','.join([*failed, '<ENDLIST>'])}\n\n"


def _lines(nodes: Sequence[NodeProgress], resets_retries: bool) -> Iterator[str]:
    for node in nodes:
        if counts_as_done(node):
            if node.is_failed:
                yield f"# {node.name} failed, but its children need only its end\n"
            yield f"DONE {node.name}\n"
            yield from _outcome(node)
        elif node.is_failed and node.outcome:
            yield f"# {node.name} failed, which was handled\n"
            yield from _outcome(node)
        elif node.max_retries and not resets_retries:
            yield from _retries(node)


def _grown(line: GrowthLine) -> str:
    return f"GROW {json.dumps(line.values, sort_keys=True)}\n"


def _outcome(node: NodeProgress) -> Iterator[str]:
    if node.outcome:
        yield f"OUTCOME {node.name} {node.outcome}\n"


def _retries(node: NodeProgress) -> Iterator[str]:
    left = max(node.max_retries - node.retry_number, 0)
    unless = "" if node.unless_exit is None else f" UNLESS-EXIT {node.unless_exit}"
    yield f"# {node.retry_number} of {node.max_retries} retries performed, {left} left\n"
    yield f"RETRY {node.name} {left}{unless}\n"


@dataclass(frozen=True, slots=True)
class RescueText:
    """Contents of a rescue file, by Pilotage or DAGMan; names are not checked against the DAG.

    `retries` are (count, UNLESS-EXIT) by name, `outcomes` those of nodes that ended, `growth` the
    insertions in their order; `lines` is the first line of each name.
    """

    done: list[str] = field(default_factory=list)
    retries: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    growth: list[GrowthLine] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> set[str]:
        """Names of nodes that failed, and do not run again where the DAG handles that."""
        return {name for name, each in self.outcomes.items() if each.get("State") == "failed"}


def parse_rescue(text: str, *, file: str) -> tuple[RescueText, list[Finding]]:
    """Parsed rescue file or save point; all faults have the file and the line, at most 200.

    Only DONE, RETRY, OUTCOME and GROW are commands of such a file. A repeated name
    counts once; of several RETRY or OUTCOME lines for a node the last one counts.
    """
    read = RescueText()
    done: dict[str, None] = {}
    findings: list[Finding] = []
    for number, line, words in _commands(text):
        command = words[0].upper()
        if command == "DONE" and len(words) == 2:
            done[words[1]] = None
            read.lines.setdefault(words[1], number)
            continue
        if command == "RETRY":
            fault = _read_retry(words, number, read)
        elif command == "OUTCOME":
            fault = _read_outcome(line, number, read)
        elif command == "GROW":
            fault = _read_growth(line, number, read)
        else:
            fault = _fault(words)
        if fault:
            findings.append(Finding(fault, file=file, line=number))
            if len(findings) == _MOST_FINDINGS:
                break
    read.done.extend(done)
    return read, findings


def _commands(text: str) -> Iterable[tuple[int, str, list[str]]]:
    """Number, text and words of each line that is neither empty nor a comment."""
    # By hand, as `splitlines` also divides at characters that may stand in names.
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words and not words[0].startswith(("#", "//")):
            yield number, line, words


def _fault(words: Sequence[str]) -> str:
    if words[0].upper() == "DONE":
        return f"DONE takes one node name, not {len(words) - 1} words"
    return f"a rescue file has only DONE, RETRY, OUTCOME and GROW lines, not {words[0][:80]}"


def _read_retry(words: Sequence[str], number: int, read: RescueText) -> str:
    """Read `RETRY name count [UNLESS-EXIT code]`; the fault as text, or an empty string."""
    has_exit = len(words) == 5 and words[3].upper().replace("_", "-") == "UNLESS-EXIT"
    if len(words) != 3 and not has_exit:
        return "RETRY takes a node name, a number, and UNLESS-EXIT with a code if wanted"
    if not _NUMBER.match(words[2]) or not 0 <= int(words[2]) <= _MOST_RETRIES:
        return f"the number of retries is not a number from 0: {words[2][:80]}"
    if has_exit and not _NUMBER.match(words[4]):
        return f"the code of UNLESS-EXIT is not a number: {words[4][:80]}"
    read.retries[words[1]] = (int(words[2]), int(words[4]) if has_exit else None)
    read.lines.setdefault(words[1], number)
    return ""


def _read_outcome(line: str, number: int, read: RescueText) -> str:
    """Read `OUTCOME name {...}`; the fault as text, or an empty string."""
    words = line.split(None, 2)
    known = _object_in(words[2] if len(words) > 2 else "", _MOST_OUTCOME_LENGTH)
    if known is None or not all(map(_is_value, known.items())):
        return "OUTCOME takes a node name and its outcome as JSON, values by names"
    read.outcomes[words[1]] = known
    read.lines.setdefault(words[1], number)
    return ""


def _read_growth(line: str, number: int, read: RescueText) -> str:
    """Read `GROW {...}`; the fault as text, or an empty string."""
    known = _object_in(line.split(None, 1)[-1], _MOST_GROWTH_LENGTH)
    if known is None or not isinstance(known.get("kind"), str):
        return _GROWTH_EXPECTED
    needed, possible = _GROWTH_KEYS.get(known["kind"], (frozenset(), frozenset()))
    names = {name: known.pop(name, []) for name in _AROUND & possible}
    if known.keys() != needed or not all(isinstance(value, str) for value in known.values()):
        return _GROWTH_EXPECTED
    if not all(map(_is_list_of_names, names.values())):
        return _GROWTH_EXPECTED
    line_read = GrowthLine(
        **known,
        after=tuple(names.get("after", ())),
        before=tuple(names.get("before", ())),
        number=number,
    )
    read.growth.append(line_read)
    return ""


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _object_in(text: str, most: int) -> dict[str, Any] | None:
    try:
        known = json.loads(text) if len(text) <= most else None
    except (ValueError, RecursionError):
        return None
    return known if isinstance(known, dict) else None


def _is_value(item: tuple[str, Any]) -> bool:
    name, value = item
    is_number = isinstance(value, int | float) and math.isfinite(value)
    is_text = isinstance(value, str) and "\0" not in value
    return _ATTRIBUTE.match(name) is not None and (is_number or is_text)
