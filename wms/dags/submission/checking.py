"""Checking a submitted DAG as a whole, before anything of it is stored."""

from __future__ import annotations

import time
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from matching.deadline import Deadline
from matching.needs import CPU_SEGMENTS_S
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.dags.description.submit_file import SubmitFile, parse_submit_file
from wms.dags.description.unknown_references import unknown_references, uses_references
from wms.dags.language.bounds import MAX_FINDINGS, Bounds
from wms.dags.language.faults import in_order, too_late
from wms.dags.language.origin import TOP, Origin
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import DagSpec, NodeSpec, Place
from wms.dags.states import NodeKind, ScriptKind
from wms.dags.submission.dag_description import Description, read_description
from wms.dags.submission.node_checks import check_nodes
from wms.placement.requests import parse_request
from wms.sites.vocabulary import advertised_names, current_vocabulary
from wms.taskqueues.task_queue_policy import task_queue_policy

#: A request may take so long, and so much longer for what it sends: a small one that takes long is
#: an attack or a mistake. A million nodes with as many arcs are 50 MB, and take half a minute.
_CHECK_S, _CHECK_S_PER_MB = 5.0, 2.0
#: Submit descriptions are text that people write; larger ones are a mistake.
MAX_TEXT_BYTES = 1024 * 1024
_WHAT = {NodeKind.SUBDAG: "DAG file", NodeKind.DATA: "placement request"}


@dataclass(slots=True)
class CheckedDag:
    """A DAG and its submit descriptions after parsing; `findings` is empty when all is well.

    `submit_files` by the sources of the nodes; one that was not uploaded is missing there.
    `warnings` tell what is accepted but may not be meant.
    """

    dag: DagSpec
    submit_files: dict[str, SubmitFile] = field(default_factory=dict)
    description: Description = field(default_factory=Description)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)


class FaultyDag(InvalidInput):
    """The DAG has faults; nothing was stored. What else was found in it is in `checked`."""

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
    limit_s: float | None = None,
    patience: Deadline | None = None,
) -> CheckedDag:
    """Parse and check everything that `owner` submitted; all faults are found at once.

    `files` has the DAG files `names` too, all by their paths; `origin` tells from where names in
    them are looked up. Without an owner nothing is asked of
    the database. With `allow_missing_files`, it is a warning that descriptions,
    executables or inputs are not there. It is a fault that the check takes longer than the
    settings allow, or `limit_s`, or `patience`.
    """
    texts = _Texts(files)
    patience = patience or _patience(limit_s)
    dag = parse_dag(names, texts.of_dag, bounds=dag_bounds(), origin=origin, patience=patience)
    checked = CheckedDag(dag, findings=[*dag.findings, *texts.faults], warnings=[*dag.warnings])
    is_read = _read_sources(checked, files, patience, allow_missing_files=allow_missing_files)
    if description_text and owner is not None:
        checked.description, faults = read_description(
            description_text, file=description_name, owner=owner
        )
        checked.findings += faults
    if is_read and not dag.findings and not texts.faults:
        _check_nodes(checked, files, owner, patience, allow_missing_files=allow_missing_files)
    # What else such a line means is not known.
    unread = {(each.file, each.line) for each in texts.faults}
    told = [each for each in checked.findings if (each.file, each.line) not in unread]
    checked.findings = sorted(dict.fromkeys([*texts.faults, *told]), key=in_order)
    checked.warnings = sorted(dict.fromkeys(checked.warnings), key=in_order)[:MAX_FINDINGS]
    return checked


def time_for(size_bytes: int) -> Deadline:
    """How long a request that sent so much may take for reading and checking it.

    It counts the processor's time: others who are busy too make no DAG too large.
    """
    limit_s = _CHECK_S + _CHECK_S_PER_MB * (size_bytes // 10**6)
    return Deadline(time.thread_time, min(limit_s, conf().max_check_s))


def _patience(limit_s: float | None) -> Deadline:
    allowed_s = conf().max_check_s
    return Deadline(time.monotonic, allowed_s if limit_s is None else min(limit_s, allowed_s))


def dag_bounds() -> Bounds:
    """How large a DAG may be, by the settings."""
    limits = conf()
    return Bounds(
        max_text_bytes=limits.max_dag_text_bytes,
        max_files=limits.max_dag_files,
        max_splice_depth=limits.max_splice_depth,
        max_nodes=limits.max_dag_nodes,
        max_arcs=limits.max_dag_arcs,
    )


class _Texts:
    """The texts of the files of a submission; those that are none are faults."""

    def __init__(self, files: Mapping[str, BinaryIO]) -> None:
        self.faults: list[Finding] = []
        self._files = files

    def of_dag(self, path: str) -> str | None:
        """The text of a DAG file, empty for one that is at fault; None if it is not there."""
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
    """The stream as UTF-8 text, and what is wrong with it. The stream is left at its start.

    Comments may hold any bytes; elsewhere those that are no text are faults of their lines. They
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
    patience: Deadline,
    *,
    allow_missing_files: bool,
) -> bool:
    """Read the descriptions of the nodes; what is not there or cannot be read is told once.

    False when there was not enough time.
    """
    missing: set[tuple[str, bool]] = set()
    requests: set[str] = set()
    for node in checked.dag.nodes.values():
        source = node.source
        if source in checked.submit_files or not source:
            continue
        if patience.is_over:
            _tell_late(checked, node, patience)
            return False
        if source not in files and source not in checked.dag.descriptions:
            is_fault = _must_be_there(node) and not allow_missing_files
            if not node.is_noop and not node.is_done and (source, is_fault) not in missing:
                missing.add((source, is_fault))
                _tell_missing(checked, node, is_fault=is_fault)
        elif node.kind not in _WHAT:
            submit_file = _read_submit_file(checked.dag, source, files)
            checked.submit_files[source] = submit_file
            checked.findings += submit_file.findings
        elif node.kind is NodeKind.DATA and source not in requests:
            requests.add(source)
            checked.findings += _request_faults(checked.dag, node, files)
    return True


def _tell_late(checked: CheckedDag, node: NodeSpec, patience: Deadline) -> None:
    """Tell how far the check came, unless reading the DAG files took all the time."""
    if not checked.dag.findings:
        count = len(checked.submit_files)
        message = f"{too_late(patience)}: {count} descriptions were read before that of {node.name}"
        checked.findings.append(Finding(message, *node.place))


def _must_be_there(node: NodeSpec) -> bool:
    """False where something may make the file before the node is submitted."""
    return node.kind is not NodeKind.SUBDAG and ScriptKind.PRE not in (node.scripts or {})


def _tell_missing(checked: CheckedDag, node: NodeSpec, *, is_fault: bool) -> None:
    what = _WHAT.get(node.kind, "submit file")
    message = f"{what} {node.source} of node {node.name} was not uploaded"
    told = checked.findings if is_fault else checked.warnings
    if len(told) < MAX_FINDINGS:
        place, command = node.place, node.kind.upper()
        told.append(Finding(message, file=place.file, line=place.line, command=command))


def _text_of(
    dag: DagSpec, source: str, files: Mapping[str, BinaryIO]
) -> tuple[str, Place, list[Finding]]:
    """The text of a description, where it begins, and what is wrong with it as a text."""
    inline = dag.descriptions.get(source)
    if inline is not None:
        return inline.text, Place(inline.place.file, inline.place.line + 1), []
    text, faults = read_text(files[source], file=source)
    return text, Place(source, 1), faults


def _read_submit_file(dag: DagSpec, source: str, files: Mapping[str, BinaryIO]) -> SubmitFile:
    text, place, faults = _text_of(dag, source, files)
    if faults:
        return SubmitFile(findings=faults, file=place.file)
    return parse_submit_file(text, file=place.file, first_line=place.line)


def _request_faults(
    dag: DagSpec, node: NodeSpec, files: Mapping[str, BinaryIO]
) -> Sequence[Finding]:
    text, place, faults = _text_of(dag, node.source, files)
    if faults:
        return faults
    try:
        parse_request(text, directory=node.directory, file=place.file)
    except InvalidInput as error:
        return [replace(each, line=place.line - 1 + (each.line or 1)) for each in error.findings]
    return []


def _check_nodes(
    checked: CheckedDag,
    files: Mapping[str, BinaryIO],
    owner: User | None,
    patience: Deadline,
    *,
    allow_missing_files: bool,
) -> None:
    """Find what is wrong with the nodes as far as can be known now, and what may not be meant."""
    group = checked.description.group
    faults, warnings = check_nodes(
        checked.dag,
        checked.submit_files,
        uploaded=files.keys(),
        owner_name=owner.get_username() if owner else "",
        group_name=group.name if group else "",
        cpu_segments_s=task_queue_policy().cpu_segments_s if owner else CPU_SEGMENTS_S,
        words=current_vocabulary() if owner else None,
        allow_missing_files=allow_missing_files,
        patience=patience,
    )
    checked.findings += faults
    checked.warnings += warnings
    if owner is not None and uses_references(checked.submit_files.values()):
        of_sites = advertised_names()
        told = unknown_references(
            checked.dag,
            checked.submit_files,
            of_dag=checked.description.attributes,
            of_sites=of_sites,
        )
        # Before the first site is there, nobody can tell.
        checked.warnings += told if of_sites else []
