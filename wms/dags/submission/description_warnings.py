"""Warnings at submission about likely mistakes in submit descriptions and VARS of a DAG's nodes.

Sites, tags and other words that no site offers, misspelt names, and commands, variables and values
that may not do what was meant.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby, islice, takewhile
from operator import attrgetter

from matching.descriptions.macros import MacroError, names_in, parse_template
from matching.negotiation.deadline import Deadline
from matching.task_queues.needs import Needs
from wms.core.errors import Finding
from wms.dags.language.size_limits import MAX_FINDINGS
from wms.dags.language.spec import DagSpec, NodeSpec
from wms.dags.submission.command_locations import location_of_command
from wms.jobs.description.commands import (
    ATTRIBUTE_SYNONYMS,
    FIELDS,
    SYNONYMS,
    command_warning,
    value_warning,
)
from wms.jobs.description.needs import ATTRIBUTES, is_need, written_name
from wms.jobs.description.submit_file import SubmitFile
from wms.sites.vocabulary import UnknownTerm, Vocabulary

_SIMILARITY = 0.8
_ATTRIBUTE_OF = {name.lower(): name for name in ATTRIBUTES.values()}
#: Names in HTCondor and DIRAC of things that have another name here.
_ELSEWHERE = {
    "cputime": "+CPUTimeSeconds",
    "jobprio": "priority",
    "max_cores": "+MaxCpus",
    "max_cpus": "+MaxCpus",
    "maxcores": "+MaxCpus",
    "numberofprocessors": "request_cpus",
    "requestcpus": "request_cpus",
    "requestdisk": "request_disk",
    "requestgpus": "request_gpus",
    "requestmemory": "request_memory",
    "userpriority": "priority",
}
#: Settings of single jobs in HTCondor that belong to the whole DAG here.
_OF_THE_DAG = frozenset(
    {
        "accounting_group", "accountinggroup", "acctgroup", "concurrencylimits", "periodic_rematch",
        "max_idle", "max_materialize",
    }
)  # fmt: skip
#: Names of VARS that are checked.
_MOST_NAMES = 1000


def dag_warnings(
    dag: DagSpec,
    submit_files: Mapping[str, SubmitFile],
    nodes_by_needs: Iterable[tuple[Needs, NodeSpec]],
    offered: Vocabulary | None,
    deadline: Deadline | None = None,
) -> list[Finding]:
    """Warnings about the descriptions and variables of a DAG's nodes, each once.

    `nodes_by_needs` has the different needs of the nodes, each with a node that has them; their
    words are checked if `offered` is given. No descriptions are read after the deadline.
    """
    deadline = deadline or Deadline(None, 0)
    files = takewhile(lambda _: not deadline.is_over, submit_files.values())
    of_files = (each for read in files for each in _file_warnings(read))
    findings = set(islice(chain(of_files, _variable_warnings(dag)), MAX_FINDINGS))
    if offered is not None:
        _add_unknown_words(findings, submit_files, nodes_by_needs, offered)
    return sorted(findings, key=lambda each: (each.file, each.line or 0, each.message))[
        :MAX_FINDINGS
    ]


def _add_unknown_words(
    findings: set[Finding],
    submit_files: Mapping[str, SubmitFile],
    nodes_by_needs: Iterable[tuple[Needs, NodeSpec]],
    offered: Vocabulary,
) -> None:
    # Thousands of needs may share a hundred unknown words.
    known: set[tuple[str, int | None, UnknownTerm]] = set()
    for needs, node in nodes_by_needs:
        if len(findings) >= MAX_FINDINGS:
            return
        for field, unknown in groupby(offered.unknown(needs), attrgetter("field")):
            name = written_name(field)
            file, line = location_of_command([name], node, submit_files[node.source])
            new = {(file, line, word) for word in unknown} - known
            known |= new
            findings |= {Finding(f"{name}: {word.message}", file, line) for _, _, word in new}


def _variable_warnings(dag: DagSpec) -> Iterator[Finding]:
    """Warnings about attributes in VARS without a meaning, at their first location."""
    seen: set[str] = set()
    for node in dag.nodes.values():
        variables = node.variables or {}
        for name in variables:
            if name[0] != "+" or name in seen:
                continue
            if len(seen) >= _MOST_NAMES:
                return
            seen.add(name)
            if message := _attribute_warning(variables[name].name[1:]):
                yield Finding(message, *variables[name].location)


def _file_warnings(submit_file: SubmitFile) -> Iterator[Finding]:
    """Warnings about names without a meaning, and names that are given twice."""
    yield from submit_file.warnings
    texts = [*submit_file.commands.values(), *submit_file.attributes.values()]
    for queue in submit_file.queues:
        texts += [*queue.commands.values(), *queue.attributes.values(), queue.count, *queue.items]
    macros = {name for text in texts if "$" in text for name in _macro_names(text)}
    commands = {*submit_file.commands}.union(*(queue.commands for queue in submit_file.queues))
    messages = {
        **{name: _attribute_warning(name) for name in submit_file.attributes},
        **{name: _command_warning(name) for name in sorted(commands - macros)},
    }
    for given in (submit_file.commands, *(queue.commands for queue in submit_file.queues)):
        told = {name: value_warning(name, submit_file.commands | given) for name in given}
        messages |= {name: message for name, message in told.items() if message}
    for name, message in messages.items():
        if message:
            yield Finding(message, submit_file.file, submit_file.lines.get(name.lower()))


def _macro_names(text: str) -> set[str]:
    try:
        return names_in(parse_template(text))
    except MacroError:
        # The renderer reports this fault with its line.
        return set()


def _attribute_warning(name: str) -> str:
    if name.lower() in _OF_THE_DAG:
        return _belongs_to_the_dag(f"+{name}")
    better = _suggested_attribute(name)
    return f"+{name} means nothing here; {better} does" if better else ""


def _command_warning(name: str) -> str:
    if name in _OF_THE_DAG:
        return _belongs_to_the_dag(name)
    if name in SYNONYMS:
        return ""
    better = f"+{_ATTRIBUTE_OF[name]}" if name in _ATTRIBUTE_OF else _ELSEWHERE.get(name)
    return f"{name} means nothing here; {better} does" if better else command_warning(name)


def _belongs_to_the_dag(name: str) -> str:
    return f"{name} means nothing here: it is the whole DAG's, and belongs in the DAG's description"


def _suggested_attribute(name: str) -> str:
    if is_need(name):
        return ""
    if name.lower() in ATTRIBUTE_SYNONYMS:
        return ATTRIBUTE_SYNONYMS[name.lower()]
    if name.lower() in FIELDS | _ELSEWHERE.keys():
        return _ELSEWHERE.get(name.lower(), name.lower())
    close = difflib.get_close_matches(name.lower(), _ATTRIBUTE_OF, 1, _SIMILARITY)
    return f"+{_ATTRIBUTE_OF[close[0]]}" if close else ""
