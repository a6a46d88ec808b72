"""Copies of workspaces in which scripts run, kept from one run to the next.

A copy belongs to one slot, so one script at a time works in it. Before a run it is brought up to
date, which copies what is new; after the run it is looked through for what the script changed. A
copy whose last run did not come to its end in the records is thrown away.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from wms.core.errors import InvalidInput, PilotageError
from wms.dags.scripts.conf import ScriptConf
from wms.dags.scripts.publishing import Change, Changes
from wms.dags.scripts.slots import Slot, entries_of, make_folder, remove_tree
from wms.jobs.blobs import open_blob, store_stream
from wms.jobs.models import Blob, WorkspaceFile
from wms.jobs.paths import checked_path

#: Copies that a slot keeps for the next run of their DAGs, and for how long.
MOST_COPIES: Final = 20
LONGEST_KEPT_S: Final = 86_400
#: A script that leaves more entries than this below its workspace has failed.
MOST_ENTRIES: Final = 1_000_000
_MOST_NOTES = 20
_CHUNK_BYTES = 1024 * 1024
#: In a submit directory people make their scripts executable; a stored file has no such mark.
_FILE_MODE = 0o755

Pulse = Callable[[], None]


class TooMuch(PilotageError):
    """The workspace, or what a script left in it, is larger than allowed."""


class Known(NamedTuple):
    """A file as it was left in the copy: its content, and what would tell of a change."""

    sha256: str
    size_bytes: int
    changed_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a script left: its changes, and what of it cannot be kept."""

    changes: Changes
    notes: tuple[str, ...]


class WorkspaceCopy:
    """The copy of one workspace in one slot."""

    def __init__(self, slot: Slot, workspace_id: int, conf: ScriptConf) -> None:
        self._slot, self._workspace_id, self._conf = slot, workspace_id, conf
        self._folder = slot.folder / f"workspace-{workspace_id}"
        self._known: dict[str, Known] = {}
        self._notes: list[str] = []
        self._has_found = False

    @property
    def files(self) -> Path:
        """The folder that the script sees."""
        return self._folder / "files"

    @property
    def _index(self) -> Path:
        return self._folder / "index.json"

    @property
    def _mark(self) -> Path:
        """Stands from the start of a script to the record of its end."""
        return self._folder / "in-use"

    def refresh(self, directory: str, *, pulse: Pulse) -> None:
        """Bring the copy up to date, with this directory in it. Raises TooMuch."""
        self._open()
        rows = WorkspaceFile.objects.filter(workspace_id=self._workspace_id).order_by()
        wanted = dict(rows.values_list("path", "blob_id"))
        present = {path: known.sha256 for path, known in self._known.items()}
        new = dict(wanted.items() - present.items())
        self._check_size(wanted, new)
        for path in present.keys() - wanted.keys():
            self._remove(path)
        for path, sha256 in sorted(new.items()):
            self._place(path, sha256)
            pulse()
        self._make_folders(directory)
        if wanted != present:
            self._save()
        self._mark.touch()

    def settle(self) -> None:
        """The end of the run is on record, and with it what was found: keep the copy."""
        if self._has_found:
            self._save()
        self._mark.unlink()

    def _open(self) -> None:
        make_folder(self._folder)
        if self._mark.exists() or not self._index.exists():
            remove_tree(self._folder)
            make_folder(self._folder)
        else:
            content = json.loads(self._index.read_text(encoding="utf-8"))
            self._known = {path: Known(*each) for path, each in content.items()}
        if not self.files.exists():
            self.files.mkdir(mode=_FILE_MODE)
            self._slot.give(self.files)
        os.utime(self._folder)

    def _check_size(self, wanted: Mapping[str, str], new: Mapping[str, str]) -> None:
        sizes = Blob.objects.in_bulk(list(set(new.values())))
        size_bytes = sum(sizes[sha256].size_bytes for sha256 in new.values())
        size_bytes += sum(self._known[path].size_bytes for path in wanted.keys() - new.keys())
        if size_bytes > self._conf.workspace_bytes:
            raise TooMuch(
                f"The files of the workspace have {size_bytes} bytes, and scripts are given "
                f"at most {self._conf.workspace_bytes}."
            )

    def _place(self, path: str, sha256: str) -> None:
        self._known.pop(path, None)
        if not self._make_folders(posixpath.dirname(path)) or (self.files / path).is_dir():
            self._note(path, "is the name of a file and of a directory: one of them is left out")
            return
        incoming = self._folder / "incoming"
        with open_blob(sha256) as source, incoming.open("wb") as target:
            while chunk := source.read(_CHUNK_BYTES):
                target.write(chunk)
            os.fchmod(target.fileno(), _FILE_MODE)
        self._slot.give(incoming)
        os.replace(incoming, self.files / path)
        self._known[path] = _known(sha256, os.lstat(self.files / path))

    def _make_folders(self, directory: str) -> bool:
        """Make the folders on the way to a directory of the workspace; False if a file is there."""
        place = self.files
        for name in filter(None, directory.split("/")):
            place = place / name
            if place.is_dir():
                continue
            if place.exists():
                return False
            place.mkdir(mode=_FILE_MODE)
            self._slot.give(place)
        return True

    def _remove(self, path: str) -> None:
        (self.files / path).unlink(missing_ok=True)
        del self._known[path]

    def _save(self) -> None:
        new = self._index.with_suffix(".new")
        new.write_text(json.dumps(self._known), encoding="utf-8")
        os.replace(new, self._index)

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
        begin = len(str(self.files)) + 1
        for count, entry in enumerate(entries_of(self.files)):
            pulse()
            if count > MOST_ENTRIES:
                raise TooMuch(f"The script left more than {MOST_ENTRIES} files and directories.")
            if entry.is_dir(follow_symlinks=False):
                continue
            path = entry.path[begin:]
            status = entry.stat(follow_symlinks=False)
            if not self._is_changed(path, status):
                seen.add(path)
                continue
            if not self._may_keep(path, status):
                os.unlink(entry.path)
                continue
            seen.add(path)
            change = self._change(path, status, left_bytes)
            if change is not None:
                files[path] = change
                left_bytes -= status.st_size
            if len(files) > self._conf.new_files:
                raise TooMuch(f"The script left more than {self._conf.new_files} new files.")
        removed = {path: self._known.pop(path).sha256 for path in self._known.keys() - seen}
        self._has_found = self._has_found or bool(removed)
        return Found(Changes(files=files, removed=removed), tuple(self._notes))

    def _is_changed(self, path: str, status: os.stat_result) -> bool:
        known = self._known.get(path)
        return known is None or known[1:] != _marks(status)

    def _may_keep(self, path: str, status: os.stat_result) -> bool:
        if not stat.S_ISREG(status.st_mode):
            self._note(path, "is neither a file nor a directory: it is not kept")
            return False
        if self._slot.uid is not None and status.st_uid != self._slot.uid:
            self._note(path, "belongs to another account: it is not kept")
            return False
        try:
            is_plain = checked_path(path) == path
        except InvalidInput as error:
            self._note(path, f"cannot be kept: {error.findings[0].message}")
            return False
        return is_plain

    def _change(self, path: str, status: os.stat_result, left_bytes: int) -> Change | None:
        known = self._known.get(path)
        self._has_found = True
        if status.st_size > left_bytes:
            raise TooMuch(f"The script left more than {self._conf.new_bytes} bytes of new files.")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        os.chmod(self.files / path, _FILE_MODE)
        with open(os.open(self.files / path, flags), "rb") as stream:
            blob = store_stream(stream, limit_bytes=left_bytes)
            self._known[path] = _known(blob.pk, os.fstat(stream.fileno()))
        if known is not None and known.sha256 == blob.pk:
            return None
        return Change(blob.pk, known.sha256 if known else "")


def _known(sha256: str, status: os.stat_result) -> Known:
    return Known(sha256, *_marks(status))


def _marks(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_ctime_ns, status.st_ino


def forget_old_copies(slot: Slot, *, but: int) -> None:
    """Remove the copies of a slot that were not used for long, and those beyond a number."""
    limit = time.time() - LONGEST_KEPT_S
    folders = [each for each in slot.folder.glob("workspace-*") if each.name != f"workspace-{but}"]
    used = sorted(((each.stat().st_mtime, each) for each in folders), reverse=True)
    for place, (used_at, folder) in enumerate(used):
        if place >= MOST_COPIES - 1 or used_at < limit:
            with contextlib.suppress(FileNotFoundError):
                remove_tree(folder)
