"""Files of this node that are sent or received: opened, copied in pieces, and hashed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, BinaryIO, cast

_CHUNK = 256 * 1024


class NodeFault(Exception):
    """This node cannot do its part (disk full, file unreadable)."""


def copied(source: Any, sink: BinaryIO | None) -> str:
    """Copy all of `source` in small pieces and return its SHA-256."""
    digest = hashlib.sha256()
    while True:
        piece = source.read(_CHUNK)
        if not piece:
            return digest.hexdigest()
        digest.update(piece)
        if sink is not None:
            _write(sink, piece)


def open_file(path: Path, mode: str) -> BinaryIO:
    """An opened file. Raises NodeFault."""
    try:
        return cast("BinaryIO", path.open(mode))
    except OSError as error:
        raise NodeFault(str(error)) from error


def _write(sink: BinaryIO, piece: bytes) -> None:
    try:
        sink.write(piece)
        sink.flush()
    except OSError as error:
        raise NodeFault(str(error)) from error
