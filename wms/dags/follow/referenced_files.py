"""Mapping of uploaded files by path that keeps the content of those that are read.

So only the files that the DAG files of a followed DAG refer to are stored.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from wms.core.conf import conf
from wms.core.errors import InvalidInput


class ReferencedFiles(Mapping[str, BinaryIO]):
    """Files by path; each one that is read is kept in `contents`."""

    def __init__(self, files: Mapping[str, BinaryIO]) -> None:
        self.contents: dict[str, bytes] = {}
        self._files = files

    def __getitem__(self, path: str) -> BinaryIO:
        if path not in self.contents:
            with self._files[path] as stream:
                stream.seek(0)
                # One that is too large is a fault to whoever reads it.
                self.contents[path] = stream.read(conf().max_dag_text_bytes + 1)
        return io.BytesIO(self.contents[path])

    def keep(self, path: str) -> None:
        """Read a file into `contents`, if it exists. Raises InvalidInput if it is too large."""
        limit_bytes = conf().max_dag_text_bytes
        if path in self._files and len(self[path].read()) > limit_bytes:
            raise InvalidInput.of(f"the file is larger than {limit_bytes} bytes", file=path)

    def __contains__(self, path: object) -> bool:
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)
