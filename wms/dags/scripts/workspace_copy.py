"""Copies of workspaces in which scripts run, kept from one run to the next.

A slot has one copy, so one script at a time works in it, and none sees that of another workspace:
all scripts of a slot share an account. Before a run new files are copied into it; after the run the
changes of the script are collected, within limits; what cannot be kept is deleted, with a note. A
copy that was changed in between, or whose last run has no recorded end, is thrown away.
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
    WorkspaceTooLarge,
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
MAX_ENTRIES: Final = 1_000_000
_MOST_NOTES = 20
_CHUNK_BYTES = 1024 * 1024
#: In a submit directory people make their scripts executable; a stored file has no such mark.
_FILE_MODE = 0o755
_PRIVATE = 0o700
# Not waiting: it may have been a pipe.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Heartbeat = Callable[[], None]


class IndexedFile(NamedTuple):
    """A file in the index of the copy: its content, and the status that reveals changes."""

    sha256: str
    size_bytes: int
    modified_ns: int
    changed_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class CollectedChanges:
    """Changes that a script made, and notes about files that cannot be kept."""

    changes: Changes
    notes: tuple[str, ...]


class WorkspaceCopy:
    """Copy of a workspace in a slot; it replaces that of another workspace."""

    def __init__(self, slot: Slot, workspace_id: int, conf: ScriptConf) -> None:
        self._slot, self._workspace_id, self._conf = slot, workspace_id, conf
        self._indexed: dict[str, IndexedFile] = {}
        self._notes: list[str] = []
        self._has_changes = False

    @property
    def files(self) -> Path:
        """Folder that the script sees."""
        return self._slot.files

    def refresh(self, directory: str, *, heartbeat: Heartbeat) -> None:
        """Bring the copy up to date, with this directory in it. Raises WorkspaceTooLarge."""
        rows = WorkspaceFile.objects.filter(workspace_id=self._workspace_id).order_by()
        current = dict(rows.values_list("path", "blob_id"))
        if not self._is_unchanged(heartbeat):
            self._reset()
        present = {path: indexed.sha256 for path, indexed in self._indexed.items()}
        new = dict(current.items() - present.items())
        self._check_size(current, new)
        with opened(self.files) as top:
            for path in present.keys() - current.keys():
                self._remove(top, path)
            for path, sha256 in sorted(new.items()):
                self._write_file(top, path, sha256)
                heartbeat()
            with self._folder(top, directory):
                pass
        if current != present:
            self._save()
        self._slot.mark.touch()

    def confirm(self) -> None:
        """Keep the copy, as the end of the run is recorded with its changes."""
        if self._has_changes:
            self._save()
        self._slot.mark.unlink()

    def _is_unchanged(self, heartbeat: Heartbeat) -> bool:
        """Whether it is a copy of this workspace, unchanged since it was indexed."""
        if self._slot.mark.exists() or not self._slot.index.exists():
            return False
        try:
            index = json.loads(self._slot.index.read_text(encoding="utf-8"))
        except ValueError:
            # The host went down before it was written out.
            return False
        if index["workspace"] != self._workspace_id:
            return False
        self._indexed = {path: IndexedFile(*each) for path, each in index["files"].items()}
        return self._matches_index(heartbeat)

    def _matches_index(self, heartbeat: Heartbeat) -> bool:
        seen = 0
        try:
            with opened(self.files) as top:
                for entry in entries_of(top):
                    heartbeat()
                    if entry.is_folder:
                        continue
                    if not entry.is_plain_file or self._is_changed(entry.path, entry.status):
                        return False
                    seen += 1
        except (OSError, WorkspaceTooLarge):
            return False
        return seen == len(self._indexed)

    def _reset(self) -> None:
        """Replace the copy by a new empty folder, which no process can have opened before."""
        self._indexed = {}
        # First: what stands there without an index is never taken for a copy.
        self._slot.index.unlink(missing_ok=True)
        remove_tree(self.files)
        self.files.mkdir(mode=_PRIVATE)
        self._slot.give_to_account(self.files)
        self._slot.mark.unlink(missing_ok=True)
        self._save()

    def _check_size(self, current: Mapping[str, str], new: Mapping[str, str]) -> None:
        sizes = Blob.objects.in_bulk(list(set(new.values())))
        size_bytes = sum(sizes[sha256].size_bytes for sha256 in new.values())
        size_bytes += sum(self._indexed[path].size_bytes for path in current.keys() - new.keys())
        if size_bytes > self._conf.workspace_bytes:
            raise WorkspaceTooLarge(
                f"The files of the workspace have {size_bytes} bytes, and scripts are given "
                f"at most {self._conf.workspace_bytes}."
            )

    def _write_file(self, top: int, path: str, sha256: str) -> None:
        self._indexed.pop(path, None)
        directory, name = posixpath.split(path)
        with self._folder(top, directory) as folder:
            if folder is None or _is_folder(name, folder):
                what = "is the name of a file and of a directory: one of them is left out"
                self._add_note(path, what)
                return
            # It is written where no script comes, and put into its place when it is whole.
            incoming = self._slot.folder / "incoming"
            with open_blob(sha256) as source, incoming.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK_BYTES)
                os.fchmod(target.fileno(), _FILE_MODE)
            self._slot.give_to_account(incoming)
            os.replace(incoming, name, dst_dir_fd=folder)
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        self._indexed[path] = _indexed(sha256, status)

    @contextmanager
    def _folder(self, top: int, directory: str) -> Iterator[int | None]:
        """A directory, opened, created where it is missing; None if a file is in the way."""
        folder = os.dup(top)
        try:
            for name in filter(None, directory.split("/")):
                below = self._subfolder(folder, name)
                if below is None:
                    yield None
                    return
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)

    def _subfolder(self, folder: int, name: str) -> int | None:
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
        del self._indexed[path]

    def _save(self) -> None:
        content = {"workspace": self._workspace_id, "files": self._indexed}
        new = self._slot.index.with_suffix(".new")
        new.write_text(json.dumps(content), encoding="utf-8")
        os.replace(new, self._slot.index)

    def _add_note(self, path: str, what: str) -> None:
        if len(self._notes) < _MOST_NOTES:
            self._notes.append(f"{path!a} {what}")

    def collect(self, *, heartbeat: Heartbeat) -> CollectedChanges:
        """Store the files that the script created or changed; the changes, removed files included.

        Entries that are neither files nor directories are deleted. Raises WorkspaceTooLarge.
        """
        files: dict[str, Change] = {}
        seen: set[str] = set()
        left_bytes = self._conf.new_bytes
        with opened(self.files) as top:
            for count, entry in enumerate(entries_of(top)):
                heartbeat()
                if count > MAX_ENTRIES:
                    raise WorkspaceTooLarge(
                        f"There are more than {MAX_ENTRIES} files and directories."
                    )
                if entry.is_folder or not self._is_kept(entry):
                    continue
                seen.add(entry.path)
                if not self._is_changed(entry.path, entry.status):
                    continue
                change = self._store_change(entry, left_bytes)
                if change is not None:
                    files[entry.path] = change
                    left_bytes -= entry.status.st_size
                if len(files) > self._conf.new_files:
                    raise WorkspaceTooLarge(
                        f"The script left more than {self._conf.new_files} new files."
                    )
        removed = {path: self._indexed.pop(path).sha256 for path in self._indexed.keys() - seen}
        self._has_changes = self._has_changes or bool(removed)
        return CollectedChanges(Changes(files=files, removed=removed), tuple(self._notes))

    def _is_kept(self, entry: Entry) -> bool:
        """Whether a file may be in a workspace; it is deleted if not."""
        is_kept = not self._is_changed(entry.path, entry.status) or self._may_keep(entry)
        if not is_kept:
            os.unlink(entry.name, dir_fd=entry.folder)
        return is_kept

    def _is_changed(self, path: str, status: os.stat_result) -> bool:
        indexed = self._indexed.get(path)
        return indexed is None or indexed[1:] != _fingerprint(status)

    def _may_keep(self, entry: Entry) -> bool:
        path = entry.path
        if not entry.is_plain_file:
            self._add_note(path, "is neither a file nor a directory: it is not kept")
            return False
        if self._slot.uid is not None and entry.status.st_uid != self._slot.uid:
            self._add_note(path, "belongs to another account: it is not kept")
            return False
        try:
            is_plain = checked_path(path) == path
        except InvalidInput as error:
            self._add_note(path, f"cannot be kept: {error.findings[0].message}")
            return False
        return is_plain

    def _store_change(self, entry: Entry, left_bytes: int) -> Change | None:
        indexed = self._indexed.get(entry.path)
        self._has_changes = True
        if entry.status.st_size > left_bytes:
            raise WorkspaceTooLarge(
                f"The script left more than {self._conf.new_bytes} bytes of new files."
            )
        with open(open_anyway(entry.name, _FILE, at=entry.folder), "rb") as stream:
            os.fchmod(stream.fileno(), _FILE_MODE)
            blob = store_stream(stream, limit_bytes=left_bytes)
            self._indexed[entry.path] = _indexed(blob.pk, os.fstat(stream.fileno()))
        if indexed is not None and indexed.sha256 == blob.pk:
            return None
        return Change(blob.pk, indexed.sha256 if indexed else "")


def _indexed(sha256: str, status: os.stat_result) -> IndexedFile:
    return IndexedFile(sha256, *_fingerprint(status))


def _fingerprint(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
