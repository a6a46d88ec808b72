"""Files that DAG files and submit descriptions name, found on this host, with their names there.

DAGMan looks names up in the directory in which `condor_submit_dag` is called, and so it is here: by
default it is the folder of the first DAG file. What lies beside it is sent with the folder around
both.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UsageError
from .bodies import Archive
from .dag_scan import DagText, Node, read_dag
from .submit_scan import UNKNOWN, Description, Macros, Queue, read_description

_MOST_FILES = 10_000
_MOST_DEPTH = 50
#: Larger ones are empty where only their names count.
_SMALL_BYTES = 1024 * 1024
_RESCUE = re.compile(r"\.rescue\d{3}\Z")


@dataclass(frozen=True)
class DagFiles:
    """Content of a submission: files by their names, the DAG files' names, and where it begins.

    `root` is the absolute path of the top, empty where nothing is named by one. `texts` are those
    that have to be read to learn what the DAG is. `notices` are told to the person.
    """

    dags: Sequence[str]
    files: dict[str, Path]
    directory: str
    root: str
    uses_dag_dir: bool
    texts: Collection[str]
    notices: Sequence[str]

    def here(self, name: str) -> str:
        """Path of a file on this host, from where one is; the name itself if it is none of them."""
        return os.path.relpath(self.files[name]) if name in self.files else name

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(path.stat().st_size for path in self.files.values())

    def archive(self, *, is_whole: bool, without: Collection[str] = ()) -> Archive:
        """Archive of them; large ones by their names only unless it `is_whole`."""
        named = [] if is_whole else [name for name in self.files if self._counts_by_name(name)]
        packed = {name: path for name, path in self.files.items() if name not in without}
        return Archive(packed, only_named=frozenset(named))

    def _counts_by_name(self, name: str) -> bool:
        return name not in self.texts and self.files[name].stat().st_size > _SMALL_BYTES


@dataclass(frozen=True)
class JobFiles:
    """Files of a submission of jobs, beside its description, which may be a file itself."""

    files: dict[str, Path]
    notices: Sequence[str]
    description: Path | None = None

    @property
    def name(self) -> str:
        """Name that the description is sent by; empty where it is no file."""
        return self.description.name if self.description is not None else ""

    def here(self, name: str) -> str:
        """Path of a file on this host, from where one is; the name itself if it is none of them."""
        if self.description is not None and name == self.name:
            return os.path.relpath(self.description)
        return os.path.relpath(self.files[name]) if name in self.files else name


@dataclass
class _Search:
    """Files found so far by their absolute paths; links are not followed in their names."""

    directory: Path
    root: Path | None = None
    uses_dag_dir: bool = False
    files: dict[Path, None] = field(default_factory=dict)
    texts: set[Path] = field(default_factory=set)
    #: Absolute names of programs: they may lie in what is sent.
    programs: set[Path] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    _read: dict[Path, Description] = field(default_factory=dict)
    _seen: set[tuple[Path, Path]] = field(default_factory=set)
    #: Descriptions that name the same files for every node, by the nodes' directories.
    _fixed: set[tuple[Path, str]] = field(default_factory=set)

    def dag(self, path: Path, directory: Path, depth: int = 0) -> None:
        """Add a DAG file and what it names, looked up from the directory."""
        base = path.parent if self.uses_dag_dir else directory
        if (path, base) in self._seen or depth > _MOST_DEPTH or not self.text(path):
            return
        self._seen.add((path, base))
        included: set[Path] = set()

        def include(name: str) -> str:
            found = _normal(base / name)
            is_new = found not in included and self.text(found)
            included.add(found)
            return _text_of(found) if is_new else ""

        self._named(read_dag(_text_of(path), include), base, depth)

    def _named(self, found: DagText, base: Path, depth: int) -> None:
        for name, folder in (*found.inner, *found.spliced):
            # The file of a splice or an inner DAG is looked up in its own directory.
            inside = base / folder
            self.dag(_normal(inside / name), _normal(inside), depth + 1)
        for name, folder in found.data:
            self.text(_normal(base / folder / name))
        for name, node in found.scripts:
            for folder in found.directories_of(node):
                self.program(name, base / folder)
        for name in found.others:
            self.text(_normal(base / name))
        for node_of_it in found.nodes.values():
            self._node(node_of_it, found, base)

    def _node(self, node: Node, found: DagText, base: Path) -> None:
        folder = _normal(base / node.directory)
        description = node.inline or found.descriptions.get(node.source)
        if description is None:
            path = _normal(folder / node.source)
            if not self.text(path):
                return
            description = self._description(path)
        macros = {**node.variables, "job": node.name, "node": node.name}
        if (folder, node.source) not in self._fixed or not description.is_fixed:
            self.description(description, folder, macros)
        if not node.inline and description.is_fixed:
            self._fixed.add((folder, node.source))

    def _description(self, path: Path) -> Description:
        if path not in self._read:
            self._read[path] = read_description(_text_of(path))
        return self._read[path]

    def description(self, description: Description, folder: Path, macros: Macros) -> None:
        """Add the files that a description names for the jobs of its queue statements."""
        for values in self._rows(description.queues, folder):
            for name, is_program in description.names({**macros, **values}):
                if os.path.normpath(name).startswith(".."):
                    # The portal refuses it, wherever it lies, and tells so.
                    continue
                if is_program:
                    self.program(name, folder)
                else:
                    self.input(name, folder)
            if description.is_fixed:
                break

    def _rows(self, queues: Sequence[Queue], folder: Path) -> Iterable[Macros]:
        found: list[Macros] = []
        for queue in queues:
            lines: Iterable[str] = queue.rows
            if queue.file and self.text(_normal(folder / queue.file)):
                lines = _text_of(_normal(folder / queue.file)).splitlines()
            for pattern in queue.patterns:
                names = [os.path.relpath(each, folder) for each in self._matching(pattern, folder)]
                lines = [*lines, *names]
                for name in names:
                    self.input(name, folder)
            found += list(queue.values(line for line in lines if line.strip()))
        return found or [{}]

    def text(self, path: Path) -> bool:
        """Add a file that is read to learn what the DAG is; False if it is not there."""
        if not path.is_file():
            return False
        self.texts.add(path)
        self.add(path)
        return True

    def program(self, name: str, folder: Path) -> None:
        """Add a program; an absolute one is of the place where it runs, unless it is sent too."""
        if name.startswith("/"):
            self.programs.add(_normal(Path(name)))
        else:
            self.input(name, folder)

    def input(self, name: str, folder: Path) -> None:
        """Add a file, all files of a folder, or all that fit where a macro is not known yet."""
        if "://" in name:
            return
        if UNKNOWN not in name:
            self.add_all(_normal(folder / name))
            return
        if not name.replace(UNKNOWN, "").strip("./"):
            self.notices.append(
                f"which files are meant by `{name}` is known only when jobs are made: "
                "name them by --file"
            )
            return
        for path in self._matching(name, folder):
            self.add_all(path)

    def _matching(self, pattern: str, folder: Path) -> list[Path]:
        found = glob.glob(os.path.join(glob.escape(str(folder)), pattern))
        return [_normal(Path(path)) for path in sorted(found)]

    def add_all(self, path: Path) -> None:
        """Add a file, or the files of a folder."""
        if path.is_dir():
            for inside, folders, names in os.walk(path):
                folders.sort()
                for name in sorted(names):
                    self.add(Path(inside, name))
        elif path.is_file():
            self.add(path)

    def add(self, path: Path) -> None:
        """Add a file that is there. Raises UsageError for too many."""
        self.files[path] = None
        if len(self.files) > _MOST_FILES:
            raise UsageError(f"More than {_MOST_FILES} files are named, which no portal takes.")


def dag_files(
    dags: Sequence[os.PathLike[str] | str],
    *,
    more: Iterable[os.PathLike[str] | str] = (),
    directory: os.PathLike[str] | str | None = None,
    root: os.PathLike[str] | str | None = None,
    uses_dag_dir: bool = False,
    is_afresh: bool = False,
) -> DagFiles:
    """Files that DAG files name, and `more`. Raises UsageError.

    Files that are not there are left out: the portal tells of each with its line.
    """
    paths = [_existing(Path(each)) for each in dags]
    base = _normal(Path(directory)) if directory is not None else paths[0].parent
    search = _Search(base, uses_dag_dir=uses_dag_dir)
    for path in paths:
        search.dag(path, base)
        if not is_afresh:
            _add_rescues(search, path)
    for each in more:
        search.add_all(_existing(Path(each), may_be_folder=True))
    top = _normal(Path(root)) if root is not None else _top_of(search.files, base)
    _check_inside(search.files, top)
    is_rooted = root is not None or top != base
    if is_rooted:
        for program in sorted(search.programs):
            if _is_below(program, top) and program.is_file():
                search.add(program)
    names = {path: path.relative_to(top).as_posix() for path in search.files}
    return DagFiles(
        dags=[names[path] for path in paths],
        files={name: path for path, name in names.items()},
        directory="" if uses_dag_dir and directory is None else _below(base, top),
        root=str(top) if is_rooted else "",
        uses_dag_dir=uses_dag_dir,
        texts={names[path] for path in search.texts},
        notices=search.notices,
    )


def job_files(
    description: str,
    folder: Path,
    more: Iterable[os.PathLike[str] | str] = (),
    *,
    file: Path | None = None,
) -> JobFiles:
    """Files that a submit description in this folder names, and `more`. Raises UsageError.

    `file` is the one that the description was read from.
    """
    base = _normal(folder)
    search = _Search(base)
    search.description(read_description(description), base, {})
    for each in more:
        search.add_all(_existing(Path(each), may_be_folder=True))
    _check_inside(search.files, base)
    files = {path.relative_to(base).as_posix(): path for path in search.files}
    return JobFiles(files, search.notices, file)


def _add_rescues(search: _Search, dag: Path) -> None:
    for path in sorted(dag.parent.glob(glob.escape(dag.name) + ".rescue[0-9][0-9][0-9]")):
        search.text(path)
        search.notices.append(f"{path.name} is sent too: without --afresh the run goes on from it")


def _top_of(files: Iterable[Path], base: Path) -> Path:
    outside = [path for path in files if not _is_below(path, base)]
    if not outside:
        return base
    top = Path(os.path.commonpath([base, *outside]))
    if top == Path(top.anchor):
        raise UsageError(
            f"{outside[0]} is not below {base}, and no folder but {top} has both: say by --root "
            "which folder is meant."
        )
    return top


def _check_inside(files: Iterable[Path], top: Path) -> None:
    for path in files:
        if not _is_below(path, top):
            raise UsageError(f"{path} is not below {top}, the folder that is sent.")


def _is_below(path: Path, top: Path) -> bool:
    return top in path.parents


def _below(base: Path, top: Path) -> str:
    if base != top and not _is_below(base, top):
        raise UsageError(f"{base} is not below {top}, the folder that is sent.")
    return "" if base == top else base.relative_to(top).as_posix()


def _existing(path: Path, *, may_be_folder: bool = False) -> Path:
    if not path.exists():
        raise UsageError(f"{path} is not there.")
    if path.is_dir() and not may_be_folder:
        raise UsageError(f"{path} is a folder, no file.")
    return _normal(path)


def _normal(path: Path) -> Path:
    """Absolute path without `..`; links stay as they are named."""
    return Path(os.path.normpath(Path.cwd() / path))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
