"""Disk usage of a payload's folders, counted in slices so that no count blocks for long."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Most files and folders that are counted; a limit above it is this one.
MOST_FILES = 1_000_000
#: Longest slice of a count; the next one goes on where it was.
SLICE_S = 0.5

_BLOCK_BYTES = 512
#: Least size of an entry of a folder, so that very many empty files count too.
_LEAST_ENTRY_BYTES = 512
_ENTRIES_BETWEEN_CLOCKS = 256

#: Sizes of entries on disk in bytes, one after the other.
Entries = Iterator[int]


class TooDeep(Exception):
    """Folders are nested deeper than a path can name: what is in them cannot be counted."""


@dataclass(frozen=True)
class DiskUsage:
    """Files and folders counted, and the space that they take on disk."""

    files: int = 0
    mb: float = 0.0
    is_too_deep: bool = False


class DiskUsageCounter:
    """Counts again and again; its result is that of the last whole count, or more already."""

    def __init__(self, entries: Callable[[], Entries], most_files: float | None) -> None:
        """`entries` begins a count; none goes on beyond `most_files`."""
        self._entries = entries
        self._most = min(MOST_FILES, MOST_FILES if most_files is None else most_files)
        self._under_way: Entries | None = None
        self._files = 0
        self._bytes = 0
        self._whole = DiskUsage()

    def count(self, clock: Callable[[], float], limit_s: float = SLICE_S) -> DiskUsage:
        """Go on counting for at most so long."""
        if self._under_way is None:
            self._under_way, self._files, self._bytes = self._entries(), 0, 0
        try:
            is_whole = self._count_until(self._under_way, clock, clock() + limit_s)
        except TooDeep:
            return DiskUsage(self._files, self._bytes / 2**20, is_too_deep=True)
        usage = DiskUsage(self._files, self._bytes / 2**20)
        if is_whole:
            self._under_way, self._whole = None, usage
            return usage
        return DiskUsage(max(usage.files, self._whole.files), max(usage.mb, self._whole.mb))

    @property
    def is_whole(self) -> bool:
        """Tell whether the last count came to its end."""
        return self._under_way is None

    def _count_until(self, entries: Entries, clock: Callable[[], float], until: float) -> bool:
        """Tell whether that was all, or enough."""
        for size in entries:
            self._files += 1
            self._bytes += size
            if self._files > self._most:
                return True
            if self._files % _ENTRIES_BETWEEN_CLOCKS == 0 and clock() >= until:
                return False
        return True


def entries_below(folders: Sequence[Path]) -> Entries:
    """Sizes of all entries in folders; links are not followed. Raises TooDeep."""
    unseen = [os.fspath(each) for each in folders]
    while unseen:
        try:
            inside = os.scandir(unseen.pop())
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise TooDeep from error
            continue
        with inside:
            for entry in inside:
                if entry.is_dir(follow_symlinks=False):
                    unseen.append(entry.path)
                yield _entry_bytes(entry)


def _entry_bytes(entry: os.DirEntry[str]) -> int:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return _LEAST_ENTRY_BYTES
    return max(status.st_blocks * _BLOCK_BYTES, _LEAST_ENTRY_BYTES)
