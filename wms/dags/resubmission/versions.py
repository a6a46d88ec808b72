"""A DAG before or after an edit: its nodes and descriptions, which are read and not checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from matching.negotiation.deadline import Deadline
from wms.core.conf import conf
from wms.dags.language.origin import TOP, Origin
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import DagSpec
from wms.dags.states import NodeKind
from wms.dags.submission.checking import dag_size_limits, read_text
from wms.jobs.description.submit_file import SubmitFile, parse_submit_file

_WITHOUT_DESCRIPTION = frozenset({NodeKind.SUBDAG, NodeKind.DATA})


@dataclass(frozen=True, slots=True)
class Version:
    """Nodes of a DAG, and their submit descriptions by source, as far as they are there."""

    dag: DagSpec
    submit_files: Mapping[str, SubmitFile]


def read_version(
    names: Sequence[str],
    files: Mapping[str, BinaryIO],
    *,
    origin: Origin = TOP,
    deadline: Deadline | None = None,
) -> Version:
    """The version that these files are, faults or not. The streams are rewound."""

    def text_of(path: str) -> str | None:
        stream, most = files.get(path), conf().max_dag_text_bytes
        return read_text(stream, file=path, limit_bytes=most)[0] if stream is not None else None

    dag = parse_dag(names, text_of, limits=dag_size_limits(), origin=origin, deadline=deadline)
    submit_files: dict[str, SubmitFile] = {}
    for node in dag.nodes.values():
        source = node.source
        if source in submit_files or node.kind in _WITHOUT_DESCRIPTION:
            continue
        if source in dag.descriptions:
            submit_files[source] = parse_submit_file(dag.descriptions[source].text, file=source)
        elif source in files:
            text, _ = read_text(files[source], file=source)
            submit_files[source] = parse_submit_file(text, file=source)
    return Version(dag, submit_files)
