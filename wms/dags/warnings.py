"""What is accepted at submission but may not be meant: words unknown today, misspelt names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter

from matching.needs import Needs
from wms.core.errors import Finding
from wms.dags.language import MAX_FINDINGS, NodeSpec
from wms.dags.needs import ATTRIBUTES, COMMANDS, is_need, written_name
from wms.dags.submitfile import SubmitFile
from wms.sites.words import OfferedWords, UnknownWord

_CLOSE = 0.8
_MACRO = re.compile(r"\$\(([A-Za-z0-9_.+]+)")
_ATTRIBUTE_OF = {name.lower(): name for name in ATTRIBUTES.values()}
#: How else HTCondor and DIRAC call what has another name here.
_ELSEWHERE = {
    "cputime": "+CPUTimeSeconds",
    "jobprio": "priority",
    "maxcores": "+MaxCpus",
    "numberofprocessors": "request_cpus",
    "requestcpus": "request_cpus",
    "requestgpus": "request_gpus",
    "requestmemory": "request_memory",
    "userpriority": "priority",
}
_COMMANDS = frozenset({*COMMANDS.values(), "priority", "allowed_execute_duration"})


def warnings_of(
    submit_files: dict[str, SubmitFile],
    wanted: Iterable[tuple[Needs, NodeSpec]],
    words: OfferedWords,
    *,
    dag_name: str,
) -> list[Finding]:
    """The warnings about a DAG without a fault, each once, in the order of files and lines.

    `wanted` has the different needs of the nodes, each with a node that has them.
    """
    misspelt = (each for name, read in submit_files.items() for each in _misspelt(read, name))
    found = set(islice(misspelt, MAX_FINDINGS))
    # Thousands of needs may share a hundred unknown words.
    known: set[tuple[str, int, UnknownWord]] = set()
    for needs, node in wanted:
        if len(found) >= MAX_FINDINGS:
            break
        for field, unknown in groupby(words.unknown(needs), attrgetter("field")):
            name = written_name(field)
            file, line = place_of([name], node, submit_files[node.submit_file], dag_name=dag_name)
            new = {(file, line, word) for word in unknown} - known
            known |= new
            found |= {Finding(f"{name}: {word.message}", file, line) for _, _, word in new}
    in_order = sorted(found, key=lambda each: (each.file, each.line or 0, each.message))
    return in_order[:MAX_FINDINGS]


def place_of(
    names: Iterable[str], node: NodeSpec, submit_file: SubmitFile, *, dag_name: str
) -> tuple[str, int]:
    """Where the first of these commands and attributes of a node stands, as file and line.

    It is the node's own line in the DAG file for what its VARS set, and for what is not given.
    """
    own = {name.lower() for name in node.variables}
    for name in names:
        bare = name.removeprefix("+").lower()
        if bare in submit_file.lines and name.lower() not in own:
            return node.submit_file, submit_file.lines[bare]
    return dag_name, node.line


def _misspelt(submit_file: SubmitFile, file: str) -> Iterator[Finding]:
    """Names that look like one that says what a job needs, but say nothing."""
    texts = [*submit_file.commands.values(), *submit_file.attributes.values()]
    macros = {name.lower() for text in texts for name in _MACRO.findall(text)}
    meant = {
        **{name: _meant_attribute(name) for name in submit_file.attributes},
        **{name: _meant_command(name) for name in submit_file.commands if name not in macros},
    }
    for name, better in meant.items():
        if better:
            written = f"+{name}" if name in submit_file.attributes else name
            message = f"{written} means nothing here; {better} does"
            yield Finding(message, file=file, line=submit_file.lines[name.lower()])


def _meant_attribute(name: str) -> str:
    if is_need(name):
        return ""
    if name.lower() in _COMMANDS | _ELSEWHERE.keys():
        return _ELSEWHERE.get(name.lower(), name.lower())
    close = difflib.get_close_matches(name.lower(), _ATTRIBUTE_OF, 1, _CLOSE)
    return f"+{_ATTRIBUTE_OF[close[0]]}" if close else ""


def _meant_command(name: str) -> str:
    if name in _COMMANDS:
        return ""
    if name in _ATTRIBUTE_OF:
        return f"+{_ATTRIBUTE_OF[name]}"
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    close = difflib.get_close_matches(name, _COMMANDS, 1, _CLOSE)
    return close[0] if close else ""
