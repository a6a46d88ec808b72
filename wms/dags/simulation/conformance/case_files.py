"""Files of a conformance case, completed with default submit files and programs it leaves out."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wms.dags.language.origin import Origin
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import Expansion
from wms.dags.states import NodeKind

#: Programs that exist in every directory; they end as the behaviour says.
SUPPLIED_PROGRAMS = frozenset({"job.sh", "pre.sh", "post.sh", "hold.sh"})
_PROGRAM = b"#!/bin/sh\n"
_SUBMIT_FILE = b"executable = job.sh\narguments = $(RETRY)\nqueue\n"
_MAX_DEPTH = 10


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """Contents of all files of a case, and the paths of its submit files and placement requests."""

    contents: dict[str, bytes]
    descriptions: set[str]


def complete_case_files(dag_files: Sequence[str], files: Mapping[str, str | None]) -> CaseFiles:
    """Files that the case lists, and default ones for others; a file listed as None is missing."""
    named = _NamedFiles(files)
    named.read(dag_files, "", _MAX_DEPTH)
    contents = {
        posixpath.join(directory, program): _PROGRAM
        for directory in named.directories
        for program in SUPPLIED_PROGRAMS
    }
    contents |= dict.fromkeys(named.submit_files, _SUBMIT_FILE)
    for path, text in files.items():
        contents.pop(path, None)
        if text is not None:
            contents[path] = text.encode()
    return CaseFiles(contents, (named.submit_files | named.requests) & contents.keys())


class _NamedFiles:
    """Submit files, placement requests and node directories named by DAG files and inner DAGs."""

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self.submit_files: set[str] = set()
        self.requests: set[str] = set()
        self.directories = {""}
        self._files = files

    def read(self, dag_files: Sequence[str], directory: str, depth: int) -> None:
        """Add what these DAG files name."""
        spec = parse_dag(list(dag_files), self._files.get, origin=Origin(directory))
        for node in spec.nodes.values():
            self.directories.add(node.directory)
            if isinstance(node.grows, Expansion) and depth:
                self.read([node.grows.path], node.directory, depth - 1)
            if node.kind is NodeKind.SUBDAG and depth:
                self.read([node.source], node.directory, depth - 1)
            elif node.source and node.source not in spec.descriptions:
                named = self.requests if node.kind is NodeKind.DATA else self.submit_files
                named.add(node.source)
