"""What is accepted at submission but may not be meant: words unknown today, misspelt names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from operator import attrgetter

from matching.needs import Needs
from wms.core.errors import Finding
from wms.dags.language import MAX_FINDINGS, DagFile, NodeSpec
from wms.dags.needs import ATTRIBUTES, COMMANDS, is_need, written_name
from wms.dags.submitfile import SubmitFile
from wms.sites.words import OfferedWords, UnknownWord

_CLOSE = 0.8
_MACRO = re.compile(r"\$\(([A-Za-z0-9_.+]+)")
_ONLY_MACRO = re.compile(r'\s*"?\$\(([A-Za-z0-9_.]+)(?::[^()]*)?\)"?\s*')
_ATTRIBUTE_OF = {name.lower(): name for name in ATTRIBUTES.values()}
#: How else HTCondor and DIRAC call what has another name here.
_ELSEWHERE = {
    "cputime": "+CPUTimeSeconds",
    "jobprio": "priority",
    "max_cores": "+MaxCpus",
    "max_cpus": "+MaxCpus",
    "maxcores": "+MaxCpus",
    "numberofprocessors": "request_cpus",
    "requestcpus": "request_cpus",
    "requestgpus": "request_gpus",
    "requestmemory": "request_memory",
    "userpriority": "priority",
}
#: What HTCondor's jobs have of their own, and here the DAG as a whole.
_OF_THE_DAG = frozenset(
    {
        "accounting_group", "accounting_group_user", "accountinggroup", "acctgroup",
        "concurrency_limits", "concurrencylimits", "periodic_rematch",
    }
)  # fmt: skip
#: So many different names of VARS are looked at.
_MOST_NAMES = 1000
_COMMANDS = frozenset({*COMMANDS.values(), "priority", "allowed_execute_duration"})


def warnings_of(
    dag: DagFile,
    submit_files: dict[str, SubmitFile],
    wanted: Iterable[tuple[Needs, NodeSpec]],
    words: OfferedWords,
    *,
    dag_name: str,
) -> list[Finding]:
    """The warnings about a DAG without a fault, each once, in the order of files and lines.

    `wanted` has the different needs of the nodes, each with a node that has them.
    """
    of_files = (each for name, read in submit_files.items() for each in _of_file(read, name))
    found = set(islice(chain(of_files, _of_variables(dag, dag_name)), MAX_FINDINGS))
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

    It is in the DAG file for what the node's VARS set, by themselves or as the macro that a value
    consists of; and the node's own line there for what is not given.
    """
    for name in names:
        text = _text_of(name.lower(), submit_file)
        macro = _ONLY_MACRO.fullmatch(text)
        for variable in (name.lower(), macro.group(1).lower() if macro else ""):
            if variable in node.variable_lines:
                return dag_name, node.variable_lines[variable][1]
        if text:
            return node.submit_file, submit_file.lines[name.removeprefix("+").lower()]
    return dag_name, node.line


def _text_of(name: str, submit_file: SubmitFile) -> str:
    """The value of a command or, behind a plus, of an attribute; empty where it is not given."""
    if not name.startswith("+"):
        return submit_file.commands.get(name, "")
    return submit_file.attributes.get(submit_file.spellings.get(name[1:], ""), "")


def _of_variables(dag: DagFile, dag_name: str) -> Iterator[Finding]:
    """Names of VARS that say nothing, each where it comes first, or that come twice."""
    for line, again in dag.repeated:
        yield Finding(f"{again}: the last one counts", dag_name, line)
    seen: set[str] = set()
    for node in dag.nodes.values():
        for name, (written, line) in node.variable_lines.items():
            if not name.startswith("+") or name in seen:
                continue
            if len(seen) >= _MOST_NAMES:
                return
            seen.add(name)
            if message := _attribute_warning(written[1:]):
                yield Finding(message, dag_name, line)


def _of_file(submit_file: SubmitFile, file: str) -> Iterator[Finding]:
    """Names that look like one that says what a job needs, but say nothing, or that come twice."""
    yield from submit_file.warnings
    texts = [*submit_file.commands.values(), *submit_file.attributes.values()]
    macros = {name.lower() for text in texts for name in _MACRO.findall(text)}
    told = {
        **{name: _attribute_warning(name) for name in submit_file.attributes},
        **{name: _command_warning(name) for name in submit_file.commands if name not in macros},
    }
    for name, message in told.items():
        if message:
            yield Finding(message, file=file, line=submit_file.lines[name.lower()])


def _attribute_warning(name: str) -> str:
    if name.lower() in _OF_THE_DAG:
        return _belongs_to_the_dag(f"+{name}")
    better = _meant_attribute(name)
    return f"+{name} means nothing here; {better} does" if better else ""


def _command_warning(name: str) -> str:
    if name in _OF_THE_DAG:
        return _belongs_to_the_dag(name)
    better = _meant_command(name)
    return f"{name} means nothing here; {better} does" if better else ""


def _belongs_to_the_dag(name: str) -> str:
    return f"{name} means nothing here: it is the whole DAG's, and belongs in the DAG's description"


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
