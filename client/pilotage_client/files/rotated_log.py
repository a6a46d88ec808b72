"""Log that grows and is rotated, read as one sequence of bytes.

Files are known by how they begin, so renamed, copied and packed ones are found again: LOG, LOG.old,
LOG.1, LOG.2 and so on, the highest number the oldest, each of them with `.gz` too. What is known of
them is kept in a state file, so that the sequence goes on after this program was killed. Uses the
standard library only.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import LogLost, UsageError
from .log_files import PACKED, LogFiles

_HEAD_BYTES = 4096


@dataclass
class Segment:
    """A file of the sequence: where it begins in the log, how it begins, its size when seen."""

    start: int
    head: str
    head_bytes: int
    size: int


class RotatedLog:
    """The files of a log, oldest first, as one sequence of bytes.

    `facts` are kept in the state file with what is known of the files.
    """

    def __init__(self, log: Path, state: Path) -> None:
        self._log, self._state = log, state
        self._content = LogFiles()
        self.facts: dict[str, Any] = {}
        self._segments: list[Segment] = []
        self._paths: list[Path | None] = []
        self._rotated_size: int | None = None
        if state.exists():
            try:
                kept = json.loads(state.read_text(encoding="utf-8"))
                self.facts = kept["facts"]
                self._segments = [Segment(**each) for each in kept["segments"]]
            except (ValueError, KeyError, TypeError):
                raise UsageError(f"{state} is no state of a followed log.") from None

    def keep(self) -> None:
        """Write the state file, whole or not at all."""
        kept = {"facts": self.facts, "segments": [asdict(each) for each in self._segments]}
        fresh = self._state.with_name(self._state.name + ".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._state)

    def look(self, offset: int) -> None:
        """Find the files and what is new of them; what is before `offset` is forgotten.

        Raises LogLost when bytes from there on are gone.
        """
        before = [asdict(each) for each in self._segments]
        files = self._files()
        if not self._segments:
            self._begin(files, offset)
        self._paths = [self._found(each, files) for each in self._segments]
        self._go_on(files)
        self._forget(offset)
        if before != [asdict(each) for each in self._segments]:
            self.keep()

    def read(self, offset: int, limit: int) -> bytes:
        """Bytes from `offset` on, as many as there are, at most `limit`.

        Raises LogLost, and OSError.
        """
        content = b""
        for segment, path in zip(self._segments, self._paths):
            at = offset + len(content) - segment.start
            if not 0 <= at < segment.size or len(content) >= limit:
                continue
            if path is None:
                raise LogLost(f"a rotated part of {self._log} is gone, from byte {offset} of it on")
            try:
                content += self._content.read(
                    path, at, min(segment.size - at, limit - len(content))
                )
            except FileNotFoundError:
                # Renamed or packed this moment: the next look finds it.
                break
        return content

    def _files(self) -> list[Path]:
        """The files that there are, the oldest first; packed ones where the plain one is gone."""
        numbered = re.compile(re.escape(self._log.name) + r"\.(\d{1,4})(?:\.gz)?")
        numbers = {
            int(match[1])
            for path in self._log.parent.iterdir()
            if (match := numbered.fullmatch(path.name))
        }
        names = [*(f".{number}" for number in sorted(numbers, reverse=True)), ".old", ""]
        files: list[Path] = []
        for name in names:
            plain = self._log.with_name(self._log.name + name)
            packed = plain.with_name(plain.name + PACKED)
            files += [path for path in (plain, packed) if self._content.size(path)][:1]
        return files

    def _begin(self, files: list[Path], offset: int) -> None:
        if offset and len(files) > 1:
            raise LogLost(
                f"{self._log} was rotated, and without {self._state} nobody knows where byte "
                f"{offset} of it is"
            )
        for path in files:
            self._append(path)

    def _append(self, path: Path) -> None:
        start = self._segments[-1].start + self._segments[-1].size if self._segments else 0
        size = self._content.size(path)
        head_bytes = min(size, _HEAD_BYTES)
        head = self._content.head(path, head_bytes)
        self._segments.append(Segment(start, head, head_bytes, size))
        self._paths.append(path)

    def _go_on(self, files: list[Path]) -> None:
        """Take in how the newest known file has grown, and then the files after it."""
        if not self._segments:
            return
        newest, path = self._segments[-1], self._paths[-1]
        if path is None:
            raise LogLost(f"{self._log} is another file than before, and the old one is gone")
        newest.size = self._content.size(path)
        if newest.head_bytes < _HEAD_BYTES:
            newest.head_bytes = min(newest.size, _HEAD_BYTES)
            newest.head = self._content.head(path, newest.head_bytes)
        following = files[files.index(path) + 1 :]
        if not following:
            self._rotated_size = None
            return
        # Who writes may have the renamed file open for a moment more.
        if self._rotated_size != newest.size:
            self._rotated_size = newest.size
            return
        self._rotated_size = None
        for each in following:
            self._append(each)

    def _forget(self, offset: int) -> None:
        while len(self._segments) > 1 and self._segments[1].start <= offset:
            del self._segments[0], self._paths[0]

    def _found(self, segment: Segment, files: list[Path]) -> Path | None:
        for path in reversed(files):
            is_long_enough = self._content.size(path) >= segment.size
            if is_long_enough and self._content.head(path, segment.head_bytes) == segment.head:
                return path
        return None
