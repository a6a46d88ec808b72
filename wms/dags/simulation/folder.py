"""The folder of a DAG file on disk, as the workspace that a submission would make of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.dags.language.origin import TOP, Origin
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import DagSpec, NodeSpec
from wms.dags.states import NodeKind, ScriptKind

#: Of so many files the content is read, unless they are large; the others are known by name.
_MOST_READ = 2000
_MOST_NAMES = 50_000
_LARGEST_BYTES = 1024 * 1024
_DEEPEST = 10
_WITHOUT_NODES = b"# not there yet\n"
_SOME_JOB = b"executable = /bin/true\nqueue\n"


@dataclass
class Folder:
    """The files below a directory; links that lead outside are not followed.

    `files` are contents by path, None where only the name is known. What is not there yet, since a
    node is to make it, is stood in for; `warnings` tell of that, and of what is missing.
    """

    root: Path
    files: dict[str, bytes | None] = field(default_factory=dict)
    warnings: list[Finding] = field(default_factory=list)
    #: Those that were read as text.
    texts: dict[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """The text of a file; None when it is not there."""
        if self.files.get(path) is None:
            content = self._read(path, conf().max_dag_text_bytes)
            if content is None:
                return None
            self.files[path] = content
        self.texts[path] = (self.files[path] or b"").decode("utf-8-sig", errors="replace")
        return self.texts[path]

    def _read(self, path: str, most_bytes: int) -> bytes | None:
        place = (self.root / path).resolve()
        if not place.is_relative_to(self.root) or not place.is_file():
            return None
        with place.open("rb") as stream:
            return stream.read(most_bytes)

    def warn(self, message: str, node: NodeSpec) -> None:
        """Tell of something at the line of a node."""
        self.warnings.append(Finding(message, file=node.location.file, line=node.location.line))


def read_folder(root: Path, dag_files: list[str], origin: Origin = TOP) -> Folder:
    """Read what a submission of these DAG files would send. Raises InvalidInput."""
    folder = Folder(root.resolve())
    for number, path in enumerate(_paths(folder.root)):
        if number == _MOST_NAMES:
            raise InvalidInput.of(f"there are more than {_MOST_NAMES} files below {root}")
        is_read = number < _MOST_READ and (folder.root / path).stat().st_size <= _LARGEST_BYTES
        folder.files[path] = folder._read(path, _LARGEST_BYTES) if is_read else None
    _read_dag(folder, dag_files, origin, _DEEPEST)
    return folder


def _paths(root: Path) -> Iterator[str]:
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            place = Path(directory, name)
            if place.is_file() and place.resolve().is_relative_to(root):
                yield os.path.relpath(place, root)


def _read_dag(folder: Folder, dag_files: list[str], origin: Origin, depth: int) -> None:
    spec = parse_dag(dag_files, folder.text, origin=origin)
    for node in spec.nodes.values():
        _warn_of_scripts(folder, node)
        if node.source in spec.descriptions or not node.source:
            continue
        is_there = folder.text(node.source) is not None
        if not is_there:
            _stand_in(folder, node, spec)
        elif node.kind is NodeKind.SUBDAG and depth:
            _read_dag(folder, [node.source], replace(origin, directory=node.directory), depth - 1)


def _stand_in(folder: Folder, node: NodeSpec, spec: DagSpec) -> None:
    """Put something in the place of a file that a parent or a PRE script may be going to write."""
    has_pre = ScriptKind.PRE in (node.scripts or {})
    if node.kind is NodeKind.SUBDAG:
        folder.files[node.source] = _WITHOUT_NODES
        folder.warn(f"{node.source} is not there yet: taken as a DAG without nodes", node)
    elif has_pre and node.kind is not NodeKind.DATA and not node.is_noop:
        folder.files[node.source] = _SOME_JOB
        folder.warn(f"{node.source} is not there yet: taken as a description of one job", node)


def _warn_of_scripts(folder: Folder, node: NodeSpec) -> None:
    for kind, script in (node.scripts or {}).items():
        if not _is_there(folder, node.directory, script.executable):
            folder.warnings.append(
                Finding(
                    f"{kind.upper()} script of {node.name}: {script.executable} is not there",
                    file=script.location.file,
                    line=script.location.line,
                    command="SCRIPT",
                )
            )


def _is_there(folder: Folder, directory: str, executable: str) -> bool:
    if executable.startswith("/"):
        return os.access(executable, os.X_OK)
    path = os.path.normpath(os.path.join(directory, executable))
    return path in folder.files or ("/" not in executable and shutil.which(executable) is not None)


def contents(files: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """The contents as they are stored: empty ones in the place of those that were not read."""
    return {path: content or b"" for path, content in files.items()}
