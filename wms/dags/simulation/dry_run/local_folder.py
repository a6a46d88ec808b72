"""Local folder of a DAG file, read as the workspace that a submission would make of it.

Files that do not exist yet get placeholders and warnings; missing scripts get warnings.
"""

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
from wms.dags.language.spec import DagSpec, Expansion, NodeSpec
from wms.dags.states import NodeKind, ScriptKind

#: Limit of files whose content is read; of others and of large ones only the name is known.
_MAX_FILES_READ = 2000
_MAX_FILES = 50_000
_MAX_FILE_BYTES = 1024 * 1024
_MAX_DEPTH = 10
_EMPTY_DAG = b"# not there yet\n"
_PLACEHOLDER_SUBMIT_FILE = b"executable = /bin/true\nqueue\n"


@dataclass
class LocalFolder:
    """Files below a directory; links that lead outside are not followed.

    `files` are contents by path, None where only the name is known. A file that a node or script
    is going to write has a placeholder and a warning; missing programs have warnings, too.
    """

    root: Path
    #: Whether programs by absolute names are those of this host; else they are taken to be there.
    is_of_this_host: bool = True
    files: dict[str, bytes | None] = field(default_factory=dict)
    warnings: list[Finding] = field(default_factory=list)
    #: Files that were read as text.
    texts: dict[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """Text of a file, None without such a file."""
        if self.files.get(path) is None:
            content = self._read(path, conf().max_dag_text_bytes)
            if content is None:
                return None
            self.files[path] = content
        self.texts[path] = (self.files[path] or b"").decode("utf-8-sig", errors="replace")
        return self.texts[path]

    def _read(self, path: str, max_bytes: int) -> bytes | None:
        file = (self.root / path).resolve()
        if not file.is_relative_to(self.root) or not file.is_file():
            return None
        with file.open("rb") as stream:
            return stream.read(max_bytes)

    def warn(self, message: str, node: NodeSpec) -> None:
        """Add a warning at the line of a node."""
        self.warnings.append(Finding(message, file=node.location.file, line=node.location.line))


def read_local_folder(
    root: Path, dag_files: list[str], origin: Origin = TOP, *, is_of_this_host: bool = True
) -> LocalFolder:
    """Local folder with the files that a submission would send. Raises InvalidInput."""
    folder = LocalFolder(root.resolve(), is_of_this_host=is_of_this_host)
    for number, path in enumerate(_paths(folder.root)):
        if number == _MAX_FILES:
            raise InvalidInput.of(f"there are more than {_MAX_FILES} files below {root}")
        is_read = (
            number < _MAX_FILES_READ and (folder.root / path).stat().st_size <= _MAX_FILE_BYTES
        )
        folder.files[path] = folder._read(path, _MAX_FILE_BYTES) if is_read else None
    _read_dag(folder, dag_files, origin, _MAX_DEPTH)
    return folder


def _paths(root: Path) -> Iterator[str]:
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(directory, name)
            if file.is_file() and file.resolve().is_relative_to(root):
                yield os.path.relpath(file, root)


def _read_dag(
    folder: LocalFolder,
    dag_files: list[str],
    origin: Origin,
    depth: int,
    *,
    is_fragment: bool = False,
) -> None:
    spec = parse_dag(dag_files, folder.text, origin=origin, is_fragment=is_fragment)
    for node in spec.nodes.values():
        _warn_of_missing_scripts(folder, node)
        if isinstance(node.grows, Expansion) and depth:
            _read_fragment(folder, node, node.grows.path, origin, depth)
        if node.source in spec.descriptions or not node.source:
            continue
        is_there = folder.text(node.source) is not None
        if not is_there:
            _add_placeholder(folder, node, spec)
        elif node.kind is NodeKind.SUBDAG and depth:
            _read_dag(folder, [node.source], replace(origin, directory=node.directory), depth - 1)


def _read_fragment(
    folder: LocalFolder, node: NodeSpec, path: str, origin: Origin, depth: int
) -> None:
    if folder.text(path) is None:
        folder.files[path] = _EMPTY_DAG
        folder.warn(f"{path} is not there yet: taken as a fragment without nodes", node)
    else:
        around = replace(origin, directory=node.directory)
        _read_dag(folder, [path], around, depth - 1, is_fragment=True)


def _add_placeholder(folder: LocalFolder, node: NodeSpec, spec: DagSpec) -> None:
    """Add a placeholder for a file that a parent or a PRE script may be going to write."""
    has_pre = ScriptKind.PRE in (node.scripts or {})
    if node.kind is NodeKind.SUBDAG:
        folder.files[node.source] = _EMPTY_DAG
        folder.warn(f"{node.source} is not there yet: taken as a DAG without nodes", node)
    elif has_pre and node.kind is not NodeKind.DATA and not node.is_noop:
        folder.files[node.source] = _PLACEHOLDER_SUBMIT_FILE
        folder.warn(f"{node.source} is not there yet: taken as a description of one job", node)


def _warn_of_missing_scripts(folder: LocalFolder, node: NodeSpec) -> None:
    for kind, script in (node.scripts or {}).items():
        if not _program_exists(folder, node.directory, script.executable):
            folder.warnings.append(
                Finding(
                    f"{kind.upper()} script of {node.name}: {script.executable} is not there",
                    file=script.location.file,
                    line=script.location.line,
                    command="SCRIPT",
                )
            )


def _program_exists(folder: LocalFolder, directory: str, executable: str) -> bool:
    if executable.startswith("/"):
        return not folder.is_of_this_host or os.access(executable, os.X_OK)
    path = os.path.normpath(os.path.join(directory, executable))
    if path in folder.files or "/" in executable:
        return path in folder.files
    return not folder.is_of_this_host or shutil.which(executable) is not None


def contents(files: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """Contents to be stored: empty ones for files that were not read."""
    return {path: content or b"" for path, content in files.items()}
