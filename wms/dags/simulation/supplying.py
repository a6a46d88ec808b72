"""What a case does not list and the harness supplies: submit files, and programs."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import NodeSpec
from wms.dags.states import NodeKind

#: Programs that are there wherever they are looked for; they do what the behaviour says.
PROGRAMS = frozenset({"job.sh", "pre.sh", "post.sh", "hold.sh"})
_PROGRAM = b"#!/bin/sh\n"
_SUBMIT_FILE = b"executable = job.sh\narguments = $(RETRY)\nqueue\n"
_DEEPEST = 10


@dataclass(frozen=True, slots=True)
class Supplied:
    """The contents of all files of a case, and which of them are submit descriptions."""

    contents: dict[str, bytes]
    descriptions: set[str]


def supplied_files(dag_files: Sequence[str], files: Mapping[str, str | None]) -> Supplied:
    """The files of a case as bytes, with those that it does not list; None there: not supplied."""
    named = _Named(files)
    named.look(dag_files, "", _DEEPEST)
    found = {
        posixpath.join(directory, program): _PROGRAM
        for directory in named.directories
        for program in PROGRAMS
    }
    found |= dict.fromkeys(named.submit_files, _SUBMIT_FILE)
    for path, text in files.items():
        found.pop(path, None)
        if text is not None:
            found[path] = text.encode()
    return Supplied(found, named.submit_files & found.keys())


class _Named:
    """The submit files that DAG files name, and where their nodes run; inner DAGs included."""

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self.submit_files: set[str] = set()
        self.directories = {""}
        self._files = files

    def look(self, dag_files: Sequence[str], directory: str, depth: int) -> None:
        """Take in what these DAG files name."""
        spec = parse_dag(list(dag_files), self._files.get, directory=directory)
        for node in spec.nodes.values():
            self.directories.add(node.directory)
            if node.kind is NodeKind.SUBDAG and depth:
                self.look([node.source], node.directory, depth - 1)
            elif _has_submit_file(node) and node.source not in spec.descriptions:
                self.submit_files.add(node.source)


def _has_submit_file(node: NodeSpec) -> bool:
    return node.kind not in (NodeKind.SUBDAG, NodeKind.DATA) and bool(node.source)
