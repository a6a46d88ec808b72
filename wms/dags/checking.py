"""Checking a submitted DAG as a whole, before anything of it is stored."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from matching.needs import CPU_SEGMENTS_S
from matching.patience import Patience
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.dags.description import Description, read_description
from wms.dags.language.bounds import MAX_FINDINGS, Bounds
from wms.dags.language.faults import in_order, too_late
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import DagSpec, NodeSpec, Place
from wms.dags.node_checks import check_nodes
from wms.dags.states import NodeKind, ScriptKind
from wms.dags.submitfile import SubmitFile, parse_submit_file
from wms.placement.requests import parse_request
from wms.sites.words import offered_words
from wms.taskqueues.policies import task_queue_policy

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
    directory: str = "",
    description_text: str = "",
    description_name: str = "",
    allow_missing_files: bool = False,
    limit_s: float | None = None,
) -> CheckedDag:
    """Parse and check everything that `owner` submitted; all faults are found at once.

    `files` has the DAG files `names` too, all by their paths. Without an owner nothing is asked of
    the database. With `allow_missing_files`, it is a warning that descriptions,
    executables or inputs are not there. It is a fault that the check takes longer than the
    settings allow, or `limit_s`.
    """
    texts = _Texts(files)
    patience = _patience(limit_s)
    dag = parse_dag(
        names, texts.of_dag, bounds=dag_bounds(), directory=directory, patience=patience
    )
    checked = CheckedDag(dag, findings=[*dag.findings, *texts.faults], warnings=[*dag.warnings])
    is_read = _read_sources(checked, files, patience, allow_missing_files=allow_missing_files)
    if description_text and owner is not None:
        checked.description, faults = read_description(
            description_text, file=description_name, owner=owner
        )
        checked.findings += faults
    if is_read and not dag.findings:
        _check_nodes(checked, files, owner, patience, allow_missing_files=allow_missing_files)
    checked.findings = sorted(dict.fromkeys(checked.findings), key=in_order)
    checked.warnings = sorted(dict.fromkeys(checked.warnings), key=in_order)[:MAX_FINDINGS]
    return checked


def _patience(limit_s: float | None) -> Patience:
    allowed_s = conf().max_check_s
    return Patience(time.monotonic, allowed_s if limit_s is None else min(limit_s, allowed_s))


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
        text, fault = read_text(stream, limit_bytes=limit_bytes)
        if fault:
            self.faults.append(Finding(fault, file=path))
        return text


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


def _read_sources(
    checked: CheckedDag,
    files: Mapping[str, BinaryIO],
    patience: Patience,
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


def _tell_late(checked: CheckedDag, node: NodeSpec, patience: Patience) -> None:
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


def _text_of(dag: DagSpec, source: str, files: Mapping[str, BinaryIO]) -> tuple[str, Place, str]:
    """The text of a description, where it begins, and the fault if it cannot be read."""
    inline = dag.descriptions.get(source)
    if inline is not None:
        return inline.text, Place(inline.place.file, inline.place.line + 1), ""
    text, fault = read_text(files[source])
    return text, Place(source, 1), fault


def _read_submit_file(dag: DagSpec, source: str, files: Mapping[str, BinaryIO]) -> SubmitFile:
    text, place, fault = _text_of(dag, source, files)
    if fault:
        return SubmitFile(findings=[Finding(fault, file=place.file)], file=place.file)
    return parse_submit_file(text, file=place.file, first_line=place.line)


def _request_faults(
    dag: DagSpec, node: NodeSpec, files: Mapping[str, BinaryIO]
) -> Sequence[Finding]:
    text, place, fault = _text_of(dag, node.source, files)
    if fault:
        return [Finding(fault, file=place.file)]
    try:
        parse_request(text, directory=node.directory, file=place.file)
    except InvalidInput as error:
        return [replace(each, line=place.line - 1 + (each.line or 1)) for each in error.findings]
    return []


def _check_nodes(
    checked: CheckedDag,
    files: Mapping[str, BinaryIO],
    owner: User | None,
    patience: Patience,
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
        words=offered_words() if owner else None,
        allow_missing_files=allow_missing_files,
        patience=patience,
    )
    checked.findings += faults
    checked.warnings += warnings
