"""Check of a submitted DAG as a whole, before anything of it is stored: parse, files, nodes.

Also its limits of size and time, and the reader of uploaded files as text.
"""

from __future__ import annotations

import time
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from matching.negotiation.deadline import Deadline
from matching.task_queues.needs import CPU_SEGMENTS_S, Needs
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.dags.language.commands.growth import fragment_faults
from wms.dags.language.faults import deadline_message, finding_order
from wms.dags.language.origin import TOP, Origin
from wms.dags.language.parser import parse_dag
from wms.dags.language.plain_values import texts_of
from wms.dags.language.size_limits import MAX_FINDINGS, SizeLimits
from wms.dags.language.spec import DagSpec, NodeSpec, SourceLocation
from wms.dags.states import Binding, NodeKind, ScriptKind
from wms.dags.submission.after_faults import can_check_nodes, knows_all_makers
from wms.dags.submission.allocation_checks import MOST_CHECKED, NamedAllocations
from wms.dags.submission.dag_description import DagDescription, read_description
from wms.dags.submission.gate_checks import gate_faults
from wms.dags.submission.node_checks import check_nodes
from wms.dags.submission.node_inputs import NodeInputs, placed_by
from wms.dags.submission.request_texts import NodeValues, checked_text
from wms.dags.submission.unknown_references import unknown_references, uses_references
from wms.jobs.description.submit_file import SubmitFile, parse_submit_file
from wms.placement.modules import Abilities, abilities
from wms.placement.request_ad import parse_requests
from wms.placement.storages.selectors import names_of_storages, words_for_space
from wms.placement.submission import Findings, check_requests
from wms.sites.vocabulary import advertised_names, current_vocabulary
from wms.taskqueues.task_queue_policy import task_queue_policy

#: Seconds for a request, and further ones for each MB: a small one that takes long is
#: an attack or a mistake. A million nodes with as many arcs are 50 MB, and take half a minute.
_CHECK_S, _CHECK_S_PER_MB = 5.0, 2.0
#: Submit descriptions are text that people write; larger ones are a mistake.
MAX_TEXT_BYTES = 1024 * 1024
_SOURCE_NAMES = {NodeKind.SUBDAG: "DAG file", NodeKind.DATA: "placement request"}


@dataclass(slots=True)
class CheckedDag:
    """A parsed DAG with its submit descriptions; `findings` are its faults.

    `submit_files` by the sources of the nodes, without those that were not uploaded. Needs and
    inputs are those of jobs, as far as they are known before the match; `placed` are the logical
    names that DATA nodes write, with the storages, `allocations` those that they make and name.
    `warnings` are about things that are accepted but look like mistakes.
    """

    dag: DagSpec
    submit_files: dict[str, SubmitFile] = field(default_factory=dict)
    nodes_by_needs: dict[Needs, list[NodeSpec]] = field(default_factory=dict)
    nodes_by_inputs: dict[NodeInputs, list[NodeSpec]] = field(default_factory=dict)
    placed: dict[str, str] = field(default_factory=dict)
    allocations: NamedAllocations = field(default_factory=NamedAllocations)
    description: DagDescription = field(default_factory=DagDescription)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)


class FaultyDag(InvalidInput):
    """The DAG has faults and was not stored. `checked` has the rest of what was parsed."""

    def __init__(self, checked: CheckedDag) -> None:
        super().__init__(checked.findings)
        self.checked = checked


def check_dag(
    names: Sequence[str],
    *,
    files: Mapping[str, BinaryIO],
    owner: User | None,
    origin: Origin = TOP,
    description_text: str = "",
    description_name: str = "",
    allow_missing_files: bool = False,
    binding: Binding | None = None,
    limit_s: float | None = None,
    deadline: Deadline | None = None,
    takes_any_request: bool = False,
    is_fragment: bool = False,
) -> CheckedDag:
    """Parse and check a submission; all faults are found at once.

    `files` includes the DAG files `names`, by path; `origin` is the directory from which file names
    are resolved. `binding`, if any, wins over that of the description. Without an owner nothing is
    read from the database. With `allow_missing_files`, missing descriptions, executables and inputs
    are warnings instead of faults. A check that exceeds the deadline, the limit of the settings or
    `limit_s` ends with a fault. With `takes_any_request`, DATA nodes may ask for what nothing here
    does. Of a fragment of a DAG that runs, inputs that are not there are warnings: nodes around it
    may make them.
    """
    texts = _Texts(files)
    deadline = deadline or _check_deadline(limit_s)
    dag = parse_dag(
        names,
        texts.of_dag,
        limits=dag_size_limits(),
        origin=origin,
        deadline=deadline,
        is_fragment=is_fragment,
    )
    checked = CheckedDag(dag, findings=[*dag.findings, *texts.faults], warnings=[*dag.warnings])
    if is_fragment:
        checked.findings += fragment_faults(dag)
    if owner is not None:
        checked.findings += gate_faults(dag)
    is_read = _read_sources(
        checked,
        files,
        deadline,
        allow_missing_files=allow_missing_files,
        able=None if takes_any_request else _abilities(owner),
    )
    if description_text and owner is not None:
        checked.description, faults = read_description(
            description_text, file=description_name, owner=owner, binding=binding
        )
        checked.findings += faults
    elif binding is not None:
        checked.description.binding = binding
    if is_read and not texts.faults and can_check_nodes(dag):
        may_miss = allow_missing_files or is_fragment
        _check_nodes(checked, files, owner, deadline, allow_missing_files=may_miss)
    # Other faults of unreadable lines are meaningless.
    unreadable_lines = {(each.file, each.line) for each in texts.faults}
    findings = [each for each in checked.findings if (each.file, each.line) not in unreadable_lines]
    checked.findings = sorted(dict.fromkeys([*texts.faults, *findings]), key=finding_order)
    checked.warnings = sorted(dict.fromkeys(checked.warnings), key=finding_order)[:MAX_FINDINGS]
    return checked


def request_deadline(size_bytes: int) -> Deadline:
    """Deadline for reading and checking a request of this size.

    It counts processor time, so that a busy host does not reject DAGs.
    """
    limit_s = _CHECK_S + _CHECK_S_PER_MB * (size_bytes // 10**6)
    return Deadline(time.thread_time, min(limit_s, conf().max_check_s))


def _abilities(owner: User | None) -> Abilities:
    """Abilities of placements: what this portal's settings and storages allow, for an owner."""
    if owner is None:
        return abilities(is_here=False)
    return abilities(spaces=words_for_space(), storages=names_of_storages())


def _check_deadline(limit_s: float | None) -> Deadline:
    allowed_s = conf().max_check_s
    return Deadline(time.monotonic, allowed_s if limit_s is None else min(limit_s, allowed_s))


def dag_size_limits() -> SizeLimits:
    """Limits on the size of a DAG, from the settings."""
    limits = conf()
    return SizeLimits(
        max_text_bytes=limits.max_dag_text_bytes,
        max_files=limits.max_dag_files,
        max_splice_depth=limits.max_splice_depth,
        max_nodes=limits.max_dag_nodes,
        max_arcs=limits.max_dag_arcs,
    )


class _Texts:
    """Texts of the files of a submission; files that are no text are faults."""

    def __init__(self, files: Mapping[str, BinaryIO]) -> None:
        self.faults: list[Finding] = []
        self._files = files

    def of_dag(self, path: str) -> str | None:
        """Text of a DAG file, empty for a faulty one; None if there is no such file."""
        return self._text(path, conf().max_dag_text_bytes)

    def _text(self, path: str, limit_bytes: int) -> str | None:
        stream = self._files.get(path)
        if stream is None:
            return None
        text, faults = read_text(stream, file=path, limit_bytes=limit_bytes)
        self.faults += faults
        return text


def read_text(
    stream: BinaryIO, *, file: str, limit_bytes: int = MAX_TEXT_BYTES
) -> tuple[str, list[Finding]]:
    """The stream as UTF-8 text, and its faults as text. The stream is rewound.

    Comments may hold any bytes; elsewhere bytes that are no text are faults of their lines. They
    are replaced in the text, so that the rest of it can be read.
    """
    stream.seek(0)
    content = stream.read(limit_bytes + 1)
    stream.seek(0)
    if len(content) > limit_bytes:
        return "", [Finding(f"the file is larger than {limit_bytes} bytes", file=file)]
    content = content.removeprefix(BOM_UTF8)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode(errors="replace")
    else:
        if "\0" not in text:
            return text, []
    faults = [
        Finding(fault, file=file, line=at)
        for at, line in enumerate(content.split(b"\n"), start=1)
        if (fault := _fault_of_line(line))
    ]
    return text.replace("\0", "\ufffd"), faults[:MAX_FINDINGS]


def _fault_of_line(line: bytes) -> str:
    if b"\0" in line:
        return "the line contains a zero byte"
    if line.lstrip(b" \t\r").startswith((b"#", b"//")):
        return ""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        byte = line[error.start]
        return f"the line is not UTF-8 text: byte {error.start + 1} of it is {byte:#04x}"
    return ""


def _read_sources(
    checked: CheckedDag,
    files: Mapping[str, BinaryIO],
    deadline: Deadline,
    *,
    allow_missing_files: bool,
    able: Abilities | None,
) -> bool:
    """Read the descriptions of the nodes; a missing or unreadable one is reported once.

    False when the deadline has passed.
    """
    missing: set[tuple[str, bool]] = set()
    requests: dict[str, int] = {}
    for node in checked.dag.nodes.values():
        source = node.source
        if source in checked.submit_files or not source:
            continue
        if deadline.is_over:
            _add_deadline_fault(checked, node, deadline)
            return False
        if source not in files and source not in checked.dag.descriptions:
            is_fault = _is_required_now(node) and not allow_missing_files
            if not node.is_noop and not node.is_done and (source, is_fault) not in missing:
                missing.add((source, is_fault))
                _add_missing_file(checked, node, is_fault=is_fault)
        elif node.kind not in _SOURCE_NAMES:
            submit_file = _read_submit_file(checked.dag, source, files)
            checked.submit_files[source] = submit_file
            checked.findings += submit_file.findings
        elif node.kind is NodeKind.DATA and _is_to_check(requests, node):
            found = _check_requests(checked, node, files, able)
            checked.findings += found.faults
            checked.warnings += found.warnings
    return True


def _is_to_check(requests: dict[str, int], node: NodeSpec) -> bool:
    """Whether the requests of a node are looked at: one text once, with VARS for many nodes.

    `requests` counts how often each text was. What others say is told when they are submitted.
    """
    count = requests.setdefault(node.source, 0)
    requests[node.source] += 1
    return count == 0 or (bool(node.variables) and count < MOST_CHECKED)


def _add_deadline_fault(checked: CheckedDag, node: NodeSpec, deadline: Deadline) -> None:
    """Add the fault that the deadline has passed, unless parsing the DAG files has added it."""
    if not checked.dag.findings:
        count = len(checked.submit_files)
        reached = f"{count} descriptions were read before that of {node.name}"
        message = f"{deadline_message(deadline)}: {reached}"
        checked.findings.append(Finding(message, *node.location))


def _is_required_now(node: NodeSpec) -> bool:
    """False where something may make the file before the node is submitted."""
    return node.kind is not NodeKind.SUBDAG and ScriptKind.PRE not in (node.scripts or {})


def _add_missing_file(checked: CheckedDag, node: NodeSpec, *, is_fault: bool) -> None:
    source_name = _SOURCE_NAMES.get(node.kind, "submit file")
    message = f"{source_name} {node.source} of node {node.name} is missing"
    findings = checked.findings if is_fault else checked.warnings
    if len(findings) < MAX_FINDINGS:
        location, command = node.location, node.kind.upper()
        findings.append(Finding(message, file=location.file, line=location.line, command=command))


def _source_text(
    dag: DagSpec, source: str, files: Mapping[str, BinaryIO]
) -> tuple[str, SourceLocation, list[Finding]]:
    """Text of a description, its location, and its faults as a text."""
    inline = dag.descriptions.get(source)
    if inline is not None:
        return inline.text, SourceLocation(inline.location.file, inline.location.line + 1), []
    text, faults = read_text(files[source], file=source)
    return text, SourceLocation(source, 1), faults


def _read_submit_file(dag: DagSpec, source: str, files: Mapping[str, BinaryIO]) -> SubmitFile:
    text, location, faults = _source_text(dag, source, files)
    if faults:
        return SubmitFile(findings=faults, file=location.file)
    return parse_submit_file(text, file=location.file, first_line=location.line)


def _check_requests(
    checked: CheckedDag, node: NodeSpec, files: Mapping[str, BinaryIO], able: Abilities | None
) -> Findings:
    """Faults and warnings about the requests of a node; notes the names that they write."""
    text, location, faults = _source_text(checked.dag, node.source, files)
    if faults:
        return Findings(faults)

    def placed(findings: Sequence[Finding]) -> list[Finding]:
        return [replace(each, line=location.line - 1 + (each.line or 1)) for each in findings]

    try:
        text = checked_text(text, _node_values(node))
        specs = parse_requests(text, directory=node.directory, file=location.file)
    except InvalidInput as error:
        return Findings(placed(error.findings))
    checked.placed.update(placed_by(specs))
    checked.allocations.note(specs, placed, file=location.file)
    if able is None:
        return Findings()
    found = check_requests(specs, able, file=location.file)
    return Findings(placed(found.faults), placed(found.warnings))


def _node_values(node: NodeSpec) -> NodeValues:
    return NodeValues(node.name, *texts_of(node.variables, as_written=True))


def _check_nodes(
    checked: CheckedDag,
    files: Mapping[str, BinaryIO],
    owner: User | None,
    deadline: Deadline,
    *,
    allow_missing_files: bool,
) -> None:
    """Add faults and warnings about the nodes, as far as they are known before the match."""
    group = checked.description.group
    found = check_nodes(
        checked.dag,
        checked.submit_files,
        uploaded=files.keys(),
        owner_name=owner.get_username() if owner else "",
        group_name=group.name if group else "",
        cpu_segments_s=task_queue_policy().cpu_segments_s if owner else CPU_SEGMENTS_S,
        offered=current_vocabulary() if owner else None,
        allow_missing_files=allow_missing_files,
        knows_all_makers=knows_all_makers(checked.dag),
        is_late=checked.description.binding is Binding.JOB,
        deadline=deadline,
    )
    checked.findings += found.faults
    checked.warnings += found.warnings
    checked.nodes_by_needs = found.nodes_by_needs
    checked.nodes_by_inputs = found.nodes_by_inputs
    if owner is not None and uses_references(checked.submit_files.values()):
        of_sites = advertised_names()
        findings = unknown_references(
            checked.dag,
            checked.submit_files,
            of_dag=checked.description.attributes,
            of_sites=of_sites,
        )
        # Without any site nothing is known about their attributes.
        checked.warnings += findings if of_sites else []
