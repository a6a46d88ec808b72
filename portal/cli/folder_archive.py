"""Archive of a folder with DAG files, as it is sent to a portal elsewhere.

What is large and no text is in it by its name only: nobody reads it to learn what a DAG is. Uses
the standard library only.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path

_SMALL_BYTES = 1024 * 1024
_LARGE_BYTES = 16 * 1024 * 1024
_LOOKED_AT_BYTES = 8192


def pack_folder(
    archive: Path, root: Path, names: Collection[str], *, without: Collection[Path] = ()
) -> list[str]:
    """Pack the files of a folder, the DAG files `names` whole; those that are named only.

    Links that lead outside and folders that begin with a dot are left out.
    """
    only_named = []
    with tarfile.open(archive, "w:gz") as packed:
        for name, path in _files(root.resolve()):
            if path in without:
                continue
            is_sent = name in names or _is_sent(path)
            content = path.read_bytes() if is_sent else b""
            if not is_sent:
                only_named.append(name)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return only_named


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(directory, name).resolve()
            if path.is_relative_to(root) and path.is_file():
                yield os.path.relpath(Path(directory, name), root), path


def _is_sent(path: Path) -> bool:
    size_bytes = path.stat().st_size
    if size_bytes <= _SMALL_BYTES:
        return True
    with path.open("rb") as file:
        return size_bytes <= _LARGE_BYTES and b"\0" not in file.read(_LOOKED_AT_BYTES)
