"""What a case does not list and the harness supplies: submit files, and programs."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wms.dags.language.origin import Origin
from wms.dags.language.parser import parse_dag
from wms.dags.states import NodeKind

#: Programs that are there wherever they are looked for; they do what the behaviour says.
PROGRAMS = frozenset({"job.sh", "pre.sh", "post.sh", "hold.sh"})
_PROGRAM = b"#!/bin/sh\n"
_SUBMIT_FILE = b"executable = job.sh\narguments = $(RETRY)\nqueue\n"
_DEEPEST = 10


@dataclass(frozen=True, slots=True)
class Supplied:
    """The contents of all files of a case, and which of them are read when nodes are submitted."""

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
    return Supplied(found, (named.submit_files | named.requests) & found.keys())


class _Named:
    """The submit files that DAG files name, and where their nodes run; inner DAGs included."""

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self.submit_files: set[str] = set()
        self.requests: set[str] = set()
        self.directories = {""}
        self._files = files

    def look(self, dag_files: Sequence[str], directory: str, depth: int) -> None:
        """Take in what these DAG files name."""
        spec = parse_dag(list(dag_files), self._files.get, origin=Origin(directory))
        for node in spec.nodes.values():
            self.directories.add(node.directory)
            if node.kind is NodeKind.SUBDAG and depth:
                self.look([node.source], node.directory, depth - 1)
            elif node.source and node.source not in spec.descriptions:
                named = self.requests if node.kind is NodeKind.DATA else self.submit_files
                named.add(node.source)
