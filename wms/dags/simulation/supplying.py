"""What a case does not list and the harness supplies: submit files, and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import NodeSpec
from wms.dags.states import NodeKind

#: Programs that are there wherever they are looked for; they do what the behaviour says.
PROGRAMS = frozenset({"job.sh", "pre.sh", "post.sh", "hold.sh"})
_PROGRAM = b"#!/bin/sh\n"
_SUBMIT_FILE = b"executable = job.sh\narguments = $(RETRY)\nqueue\n"
_DEEPEST = 10


def supplied_files(dag_files: Sequence[str], files: Mapping[str, str | None]) -> dict[str, bytes]:
    """The files of a case as bytes, with those that it does not list; None there: not supplied."""
    found = dict.fromkeys(PROGRAMS, _PROGRAM)
    for source in _submit_files(dag_files, files, "", _DEEPEST):
        found[source] = _SUBMIT_FILE
    for path, text in files.items():
        found.pop(path, None)
        if text is not None:
            found[path] = text.encode()
    return found


def _submit_files(
    dag_files: Sequence[str], files: Mapping[str, str | None], directory: str, depth: int
) -> set[str]:
    """The submit files that the DAG files name, those of inner DAGs included."""
    spec = parse_dag(list(dag_files), files.get, directory=directory)
    found = {
        node.source
        for node in spec.nodes.values()
        if _has_submit_file(node) and node.source not in spec.descriptions
    }
    for node in spec.nodes.values():
        if node.kind is NodeKind.SUBDAG and depth:
            found |= _submit_files([node.source], files, node.directory, depth - 1)
    return found


def _has_submit_file(node: NodeSpec) -> bool:
    return node.kind not in (NodeKind.SUBDAG, NodeKind.DATA) and bool(node.source)
