"""Checking a submitted DAG as a whole, before anything of it is stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from matching.substitution import expand_macros
from wms.core.errors import Finding, PilotageError
from wms.core.models import User
from wms.dags.description import Description, read_description
from wms.dags.graph import find_cycle
from wms.dags.language import MAX_FINDINGS, DagFile, NodeSpec, parse_dag
from wms.dags.rendering import NodeContext, file_list, render_job
from wms.dags.submitfile import SubmitFile, parse_submit_file

#: Submit files and DAG files are text that people write; larger ones are a mistake.
MAX_TEXT_BYTES = 1024 * 1024
MAX_DAG_TEXT_BYTES = 64 * 1024 * 1024
MAX_NODES = 200_000


@dataclass(slots=True)
class CheckedDag:
    """A DAG and its submit files after parsing; `findings` is empty when all is well."""

    dag: DagFile
    submit_files: dict[str, SubmitFile] = field(default_factory=dict)
    description: Description = field(default_factory=Description)
    findings: list[Finding] = field(default_factory=list)


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
        checked.findings += _file_faults(checked, dag_name, files.keys())
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


def _file_faults(checked: CheckedDag, dag_name: str, uploaded: Collection[str]) -> list[Finding]:
    """Inputs that were neither uploaded nor are made by another node, as far as can be known now.

    Names that depend on the site are known only after the match.
    """
    findings: list[Finding] = []
    made: set[str] = set()
    wanted: list[tuple[NodeSpec, str, str]] = []
    for node in checked.dag.nodes.values():
        submit_file = checked.submit_files[node.submit_file]
        try:
            made |= _known_names(node, submit_file, "transfer_output_files")
            for command in ("executable", "transfer_input_files"):
                wanted += [(node, command, n) for n in _known_names(node, submit_file, command)]
            _try_rendering(node, submit_file)
        except (ValueError, OverflowError, PilotageError) as error:
            findings.append(
                Finding(
                    str(error).removeprefix(f"node {node.name}: "), file=dag_name, line=node.line
                )
            )
    for node, command, name in wanted:
        if len(findings) >= MAX_FINDINGS:
            break
        if name not in made and name not in uploaded and not name.startswith("/"):
            message = (
                f"{command} of node {node.name} was not uploaded, and no node makes it: {name}"
            )
            line = checked.submit_files[node.submit_file].lines.get(command)
            findings.append(Finding(message, file=node.submit_file, line=line))
    return findings


def _context(node: NodeSpec) -> NodeContext:
    return NodeContext(
        node_name=node.name,
        dag_id=0,
        retry_number=0,
        variables=node.variables,
        environment={},
        match_attributes={},
    )


def _expanded(node: NodeSpec, submit_file: SubmitFile, command: str) -> str:
    macros = {**submit_file.commands, **_context(node).macros()}
    return expand_macros(submit_file.commands.get(command, ""), macros)


def _known_names(node: NodeSpec, submit_file: SubmitFile, command: str) -> set[str]:
    """The file names in a command that do not depend on the site or on the DAG's number."""
    names = _expanded(node, submit_file, command)
    if "$" in names or "dagmanjobid" in submit_file.commands.get(command, "").lower():
        return set()
    if command == "executable":
        return {names.strip()}
    return set(file_list(names))


def _try_rendering(node: NodeSpec, submit_file: SubmitFile) -> None:
    """Find bad numbers, quotes and paths now, if the description does not depend on the site."""
    commands = {
        name: text
        for name, text in submit_file.commands.items()
        if "$" not in _expanded(node, submit_file, name)
    }
    if "executable" in commands:
        known = SubmitFile(commands=commands, attributes=submit_file.attributes)
        render_job(known, _context(node), owner="", site="")
