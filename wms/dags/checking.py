"""Checking a submitted DAG as a whole, before anything of it is stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import BinaryIO

from matching.needs import Needs
from matching.substitution import macro_expander, uses_macros
from wms.core.errors import Finding, PilotageError
from wms.core.models import User
from wms.dags.description import Description, read_description
from wms.dags.graph import find_cycle
from wms.dags.language import MAX_FINDINGS, DagFile, NodeSpec, parse_dag
from wms.dags.rendering import (
    CannotRender,
    Identity,
    NodeContext,
    attributes_of,
    file_list,
    render_job,
)
from wms.dags.submitfile import SubmitFile, parse_submit_file
from wms.dags.warnings import place_of, warnings_of
from wms.jobs.specs import JobSpec
from wms.sites.words import offered_words
from wms.taskqueues.policies import task_queue_policy

#: Submit files and DAG files are text that people write; larger ones are a mistake.
MAX_TEXT_BYTES = 1024 * 1024
MAX_DAG_TEXT_BYTES = 64 * 1024 * 1024
MAX_NODES = 200_000
#: Each makes a TaskQueue.
MAX_DIFFERENT_NEEDS = 10_000


@dataclass(slots=True)
class CheckedDag:
    """A DAG and its submit files after parsing; `findings` is empty when all is well.

    `warnings` tell what is accepted but may not be meant.
    """

    dag: DagFile
    submit_files: dict[str, SubmitFile] = field(default_factory=dict)
    description: Description = field(default_factory=Description)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)


def check_dag(
    dag_text: str,
    *,
    dag_name: str,
    files: Mapping[str, BinaryIO],
    owner: User,
    description_text: str = "",
    description_name: str = "",
) -> CheckedDag:
    """Parse and check everything that `owner` submitted; all faults are found at once."""
    dag = parse_dag(dag_text, file=dag_name)
    checked = CheckedDag(dag=dag, findings=list(dag.findings))
    if not dag.nodes and not dag.findings:
        checked.findings.append(Finding("the DAG has no nodes", file=dag_name))
    if len(dag.nodes) > MAX_NODES:
        checked.findings.append(Finding(f"a DAG has at most {MAX_NODES} nodes", file=dag_name))
        return checked
    checked.findings += _cycle_faults(dag, dag_name)
    _read_submit_files(checked, dag_name, files)
    if description_text:
        checked.description, faults = read_description(
            description_text, file=description_name, owner=owner
        )
        checked.findings += faults
    if not checked.findings:
        _check_nodes(checked, dag_name, files.keys(), owner)
    return checked


def _cycle_faults(dag: DagFile, dag_name: str) -> list[Finding]:
    cycle = find_cycle(dag.nodes, dag.edges)
    if not cycle:
        return []
    line = dag.edges[cycle[0], cycle[1]]
    return [Finding(f"the nodes form a cycle: {' -> '.join(cycle)}", file=dag_name, line=line)]


def _read_submit_files(checked: CheckedDag, dag_name: str, files: Mapping[str, BinaryIO]) -> None:
    for node in checked.dag.nodes.values():
        name = node.submit_file
        if name in checked.submit_files:
            continue
        if name not in files:
            message = f"submit file {name} of node {node.name} was not uploaded"
            checked.findings.append(Finding(message, file=dag_name, line=node.line))
            checked.submit_files[name] = SubmitFile()
            continue
        text, fault = read_text(files[name])
        submit_file = parse_submit_file(text, file=name)
        if fault:
            submit_file.findings = [Finding(fault, file=name)]
        elif "executable" not in submit_file.commands and not submit_file.findings:
            submit_file.findings.append(Finding("no executable is named", file=name))
        checked.submit_files[name] = submit_file
        checked.findings += submit_file.findings


def read_text(stream: BinaryIO, *, limit_bytes: int = MAX_TEXT_BYTES) -> tuple[str, str]:
    """The stream as UTF-8 text, and the fault if it is none. The stream is left at its start."""
    stream.seek(0)
    content = stream.read(limit_bytes + 1)
    stream.seek(0)
    if len(content) > limit_bytes:
        return "", f"the file is larger than {limit_bytes} bytes"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return "", f"the file is not UTF-8 text (byte {error.start})"
    return ("", "the file contains a zero byte") if "\0" in text else (text, "")


def _check_nodes(
    checked: CheckedDag, dag_name: str, uploaded: Collection[str], owner: User
) -> None:
    """Find what is wrong with the nodes as far as can be known now, and what may not be meant.

    What depends on the site is known only after the match.
    """
    group = checked.description.group
    identity = Identity(
        owner=owner.get_username(),
        group=group.name if group else "",
        cpu_segments_s=task_queue_policy().cpu_segments_s,
    )
    files = _FileNames()
    needs: dict[Needs, NodeSpec] = {}
    faults: list[Finding] = []
    for node in checked.dag.nodes.values():
        submit_file = checked.submit_files[node.submit_file]
        try:
            texts = _expanded(node, submit_file)
            files.add(node, submit_file, texts)
            spec = _try_rendering(node, submit_file, texts, identity)
            needs.setdefault(spec.needs, node)
        except (ValueError, OverflowError, PilotageError) as error:
            faults.append(_placed(error, node, submit_file, dag_name))
        if len(needs) > MAX_DIFFERENT_NEEDS:
            message = f"the nodes of a DAG have at most {MAX_DIFFERENT_NEEDS} different needs"
            faults.append(Finding(message, file=dag_name, line=node.line))
            break
        if len(faults) >= MAX_FINDINGS:
            break
    # Nodes that share a description share its faults.
    checked.findings = [*dict.fromkeys(faults), *files.faults(checked.submit_files, uploaded)]
    checked.warnings = warnings_of(
        checked.dag, checked.submit_files, needs.items(), offered_words(), dag_name=dag_name
    )


def _placed(error: Exception, node: NodeSpec, submit_file: SubmitFile, dag_name: str) -> Finding:
    """The fault with its place, and with the node's name where other nodes may be without it."""
    names = error.names if isinstance(error, CannotRender) else ()
    file, line = place_of(names, node, submit_file, dag_name=dag_name)
    texts = [submit_file.commands.get(name, "") for name in names]
    texts += [text for name, text in submit_file.attributes.items() if f"+{name}" in names]
    message = str(error)
    if file == dag_name or not any(map(uses_macros, texts)):
        message = message.removeprefix(f"node {node.name}: ")
    return Finding(message, file=file, line=line)


@dataclass(slots=True)
class _FileNames:
    """The names of files that the nodes make and want, where they are known."""

    made: set[str] = field(default_factory=set)
    wanted: list[tuple[NodeSpec, str, str]] = field(default_factory=list)

    def add(self, node: NodeSpec, submit_file: SubmitFile, texts: Mapping[str, str]) -> None:
        """Take in those of a node."""
        self.made |= _known_names(submit_file, texts, "transfer_output_files")
        for command in ("executable", "transfer_input_files"):
            names = _known_names(submit_file, texts, command)
            self.wanted += [(node, command, name) for name in names]

    def faults(
        self, submit_files: Mapping[str, SubmitFile], uploaded: Collection[str]
    ) -> list[Finding]:
        """Inputs that were neither uploaded nor are made by another node."""
        missing = (
            (node, command, name)
            for node, command, name in self.wanted
            if name not in self.made and name not in uploaded and not name.startswith("/")
        )
        return [
            Finding(
                f"{command} of node {node.name} was not uploaded, and no node makes it: {name}",
                file=node.submit_file,
                line=submit_files[node.submit_file].lines.get(command),
            )
            for node, command, name in islice(missing, MAX_FINDINGS)
        ]


def _context(node: NodeSpec) -> NodeContext:
    return NodeContext(
        node_name=node.name,
        dag_id=0,
        retry_number=0,
        variables=node.variables,
        environment={},
        match_attributes={},
    )


def _expanded(node: NodeSpec, submit_file: SubmitFile) -> dict[str, str]:
    """The commands' texts with the macros filled in; references stay."""
    expand = macro_expander({**submit_file.commands, **_context(node).macros()})
    return {name: expand(text) for name, text in submit_file.commands.items()}


def _known_names(submit_file: SubmitFile, texts: Mapping[str, str], command: str) -> set[str]:
    """The file names in a command that do not depend on the site or on the DAG's number."""
    names = texts.get(command, "")
    if "$" in names or "dagmanjobid" in submit_file.commands.get(command, "").lower():
        return set()
    if command == "executable":
        return {names.strip()}
    return set(file_list(names))


def _try_rendering(
    node: NodeSpec, submit_file: SubmitFile, texts: Mapping[str, str], identity: Identity
) -> JobSpec:
    """The node's job as far as it does not depend on the site: bad values are found now."""
    context = _context(node)
    attributes = attributes_of(submit_file, context)
    known = SubmitFile(
        commands={
            # One that is known later is no fault.
            "executable": "/",
            **{name: text for name, text in texts.items() if "$" not in text},
        },
        attributes={name: text for name, text in attributes.items() if "$" not in text},
    )
    variables = {n: value for n, value in node.variables.items() if not n.startswith("+")}
    return render_job(known, replace(context, variables=variables), identity)
