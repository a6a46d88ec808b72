"""Files of a directory by their relative paths, for commands that read DAG files from disk."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from django.core.management.base import CommandError

from wms.core.conf import conf

_FAILED = 2


class DirectoryFiles(Mapping[str, BinaryIO]):
    """The files of a directory by their relative paths; those that lead outside are not there."""

    def __init__(self, directory: Path) -> None:
        self._given = directory
        try:
            self._root = directory.resolve(strict=True)
        except OSError as error:
            raise CommandError(f"{directory}: {error.strerror}", returncode=_FAILED) from None

    def name_of(self, file: Path) -> str:
        """The relative path of a DAG file. Raises CommandError for one that is not there."""
        name = os.path.relpath(file, self._given)
        if name not in self:
            reason = "is no file" if not file.exists() else f"is not below {self._given}"
            raise CommandError(f"{file} {reason}", returncode=_FAILED)
        return name

    def path_of(self, name: str) -> Path | None:
        """The file of this name on disk; None where there is none."""
        try:
            path = (self._root / name).resolve(strict=True)
        except (OSError, ValueError):
            return None
        return path if path.is_relative_to(self._root) and path.is_file() else None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.path_of(name) is not None

    def __getitem__(self, name: str) -> BinaryIO:
        path = self.path_of(name)
        if path is None:
            raise KeyError(name)
        try:
            with path.open("rb") as file:
                return io.BytesIO(file.read(conf().max_dag_text_bytes + 1))
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}", returncode=_FAILED) from None

    def __iter__(self) -> Iterator[str]:
        for directory, _, names in os.walk(self._root):
            for name in names:
                yield os.path.relpath(Path(directory, name), self._root)

    def __len__(self) -> int:
        return sum(1 for _ in self)
