"""Copies of workspaces in which scripts run, kept from one run to the next.

A slot has one copy, so one script at a time works in it, and none sees that of another workspace:
all scripts of a slot share an account. Before a run it is brought up to date, which copies what is
new; after the run it is looked through for what the script changed. A copy that is not as it was
left, or whose last run did not come to its end in the records, is thrown away.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from wms.core.errors import InvalidInput
from wms.dags.scripts.conf import ScriptConf
from wms.dags.scripts.publishing import Change, Changes
from wms.dags.scripts.slots import Slot
from wms.dags.scripts.trees import (
    Entry,
    TooMuch,
    entries_of,
    open_anyway,
    open_folder,
    opened,
    remove_tree,
)
from wms.jobs.content.blobs import open_blob, store_stream
from wms.jobs.content.paths import checked_path
from wms.jobs.models import Blob, WorkspaceFile

#: A script that leaves more entries than this below its workspace has failed.
MOST_ENTRIES: Final = 1_000_000
_MOST_NOTES = 20
_CHUNK_BYTES = 1024 * 1024
#: In a submit directory people make their scripts executable; a stored file has no such mark.
_FILE_MODE = 0o755
_PRIVATE = 0o700
# Not waiting: it may have been a pipe.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Pulse = Callable[[], None]


class Known(NamedTuple):
    """A file as it was left in the copy: its content, and what would tell of a change."""

    sha256: str
    size_bytes: int
    modified_ns: int
    changed_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a script left: its changes, and what of it cannot be kept."""

    changes: Changes
    notes: tuple[str, ...]


class WorkspaceCopy:
    """The copy of a workspace in a slot, which takes the place of that of another workspace."""

    def __init__(self, slot: Slot, workspace_id: int, conf: ScriptConf) -> None:
        self._slot, self._workspace_id, self._conf = slot, workspace_id, conf
        self._known: dict[str, Known] = {}
        self._notes: list[str] = []
        self._has_found = False

    @property
    def files(self) -> Path:
        """The folder that the script sees."""
        return self._slot.files

    def refresh(self, directory: str, *, pulse: Pulse) -> None:
        """Bring the copy up to date, with this directory in it. Raises TooMuch."""
        rows = WorkspaceFile.objects.filter(workspace_id=self._workspace_id).order_by()
        wanted = dict(rows.values_list("path", "blob_id"))
        if not self._is_as_left(pulse):
            self._begin_afresh()
        present = {path: known.sha256 for path, known in self._known.items()}
        new = dict(wanted.items() - present.items())
        self._check_size(wanted, new)
        with opened(self.files) as top:
            for path in present.keys() - wanted.keys():
                self._remove(top, path)
            for path, sha256 in sorted(new.items()):
                self._place(top, path, sha256)
                pulse()
            with self._folder(top, directory):
                pass
        if wanted != present:
            self._save()
        self._slot.mark.touch()

    def settle(self) -> None:
        """The end of the run is on record, and with it what was found: keep the copy."""
        if self._has_found:
            self._save()
        self._slot.mark.unlink()

    def _is_as_left(self, pulse: Pulse) -> bool:
        """True for a copy of this workspace in which nothing was touched since it was indexed."""
        if self._slot.mark.exists() or not self._slot.index.exists():
            return False
        try:
            index = json.loads(self._slot.index.read_text(encoding="utf-8"))
        except ValueError:
            # The host went down before it was written out.
            return False
        if index["workspace"] != self._workspace_id:
            return False
        self._known = {path: Known(*each) for path, each in index["files"].items()}
        return self._is_as_indexed(pulse)

    def _is_as_indexed(self, pulse: Pulse) -> bool:
        seen = 0
        try:
            with opened(self.files) as top:
                for entry in entries_of(top):
                    pulse()
                    if entry.is_folder:
                        continue
                    if not entry.is_plain_file or self._is_changed(entry.path, entry.status):
                        return False
                    seen += 1
        except (OSError, TooMuch):
            return False
        return seen == len(self._known)

    def _begin_afresh(self) -> None:
        """An empty folder, which no process can have been in before."""
        self._known = {}
        # First: what stands there without an index is never taken for a copy.
        self._slot.index.unlink(missing_ok=True)
        remove_tree(self.files)
        self.files.mkdir(mode=_PRIVATE)
        self._slot.give(self.files)
        self._slot.mark.unlink(missing_ok=True)
        self._save()

    def _check_size(self, wanted: Mapping[str, str], new: Mapping[str, str]) -> None:
        sizes = Blob.objects.in_bulk(list(set(new.values())))
        size_bytes = sum(sizes[sha256].size_bytes for sha256 in new.values())
        size_bytes += sum(self._known[path].size_bytes for path in wanted.keys() - new.keys())
        if size_bytes > self._conf.workspace_bytes:
            raise TooMuch(
                f"The files of the workspace have {size_bytes} bytes, and scripts are given "
                f"at most {self._conf.workspace_bytes}."
            )

    def _place(self, top: int, path: str, sha256: str) -> None:
        self._known.pop(path, None)
        directory, name = posixpath.split(path)
        with self._folder(top, directory) as folder:
            if folder is None or _is_folder(name, folder):
                what = "is the name of a file and of a directory: one of them is left out"
                self._note(path, what)
                return
            # It is written where no script comes, and put into its place when it is whole.
            incoming = self._slot.folder / "incoming"
            with open_blob(sha256) as source, incoming.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK_BYTES)
                os.fchmod(target.fileno(), _FILE_MODE)
            self._slot.give(incoming)
            os.replace(incoming, name, dst_dir_fd=folder)
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        self._known[path] = _known(sha256, status)

    @contextmanager
    def _folder(self, top: int, directory: str) -> Iterator[int | None]:
        """A directory, opened, made where it is missing; None if a file is in the way."""
        folder = os.dup(top)
        try:
            for name in filter(None, directory.split("/")):
                below = self._step(folder, name)
                if below is None:
                    yield None
                    return
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)

    def _step(self, folder: int, name: str) -> int | None:
        try:
            os.mkdir(name, _FILE_MODE, dir_fd=folder)
        except FileExistsError:
            if not _is_folder(name, folder):
                return None
            return open_folder(name, at=folder)
        below = open_folder(name, at=folder)
        if self._slot.uid is not None:
            os.fchown(below, self._slot.uid, self._slot.uid)
        return below

    def _remove(self, top: int, path: str) -> None:
        directory, name = posixpath.split(path)
        with self._folder(top, directory) as folder, contextlib.suppress(FileNotFoundError):
            if folder is not None:
                os.unlink(name, dir_fd=folder)
        del self._known[path]

    def _save(self) -> None:
        content = {"workspace": self._workspace_id, "files": self._known}
        new = self._slot.index.with_suffix(".new")
        new.write_text(json.dumps(content), encoding="utf-8")
        os.replace(new, self._slot.index)

    def _note(self, path: str, what: str) -> None:
        if len(self._notes) < _MOST_NOTES:
            self._notes.append(f"{path!a} {what}")

    def collect(self, *, pulse: Pulse) -> Found:
        """Store what the script created or changed, and tell what it removed.

        What is neither a file nor a directory is taken away. Raises TooMuch.
        """
        files: dict[str, Change] = {}
        seen: set[str] = set()
        left_bytes = self._conf.new_bytes
        with opened(self.files) as top:
            for count, entry in enumerate(entries_of(top)):
                pulse()
                if count > MOST_ENTRIES:
                    raise TooMuch(f"There are more than {MOST_ENTRIES} files and directories.")
                if entry.is_folder or not self._is_kept(entry):
                    continue
                seen.add(entry.path)
                if not self._is_changed(entry.path, entry.status):
                    continue
                change = self._change(entry, left_bytes)
                if change is not None:
                    files[entry.path] = change
                    left_bytes -= entry.status.st_size
                if len(files) > self._conf.new_files:
                    raise TooMuch(f"The script left more than {self._conf.new_files} new files.")
        removed = {path: self._known.pop(path).sha256 for path in self._known.keys() - seen}
        self._has_found = self._has_found or bool(removed)
        return Found(Changes(files=files, removed=removed), tuple(self._notes))

    def _is_kept(self, entry: Entry) -> bool:
        """Whether a file is one that a workspace has; it is removed if not."""
        is_kept = not self._is_changed(entry.path, entry.status) or self._may_keep(entry)
        if not is_kept:
            os.unlink(entry.name, dir_fd=entry.folder)
        return is_kept

    def _is_changed(self, path: str, status: os.stat_result) -> bool:
        known = self._known.get(path)
        return known is None or known[1:] != _marks(status)

    def _may_keep(self, entry: Entry) -> bool:
        path = entry.path
        if not entry.is_plain_file:
            self._note(path, "is neither a file nor a directory: it is not kept")
            return False
        if self._slot.uid is not None and entry.status.st_uid != self._slot.uid:
            self._note(path, "belongs to another account: it is not kept")
            return False
        try:
            is_plain = checked_path(path) == path
        except InvalidInput as error:
            self._note(path, f"cannot be kept: {error.findings[0].message}")
            return False
        return is_plain

    def _change(self, entry: Entry, left_bytes: int) -> Change | None:
        known = self._known.get(entry.path)
        self._has_found = True
        if entry.status.st_size > left_bytes:
            raise TooMuch(f"The script left more than {self._conf.new_bytes} bytes of new files.")
        with open(open_anyway(entry.name, _FILE, at=entry.folder), "rb") as stream:
            os.fchmod(stream.fileno(), _FILE_MODE)
            blob = store_stream(stream, limit_bytes=left_bytes)
            self._known[entry.path] = _known(blob.pk, os.fstat(stream.fileno()))
        if known is not None and known.sha256 == blob.pk:
            return None
        return Change(blob.pk, known.sha256 if known else "")


def _known(sha256: str, status: os.stat_result) -> Known:
    return Known(sha256, *_marks(status))


def _marks(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
