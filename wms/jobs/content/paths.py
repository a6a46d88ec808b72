"""Validation of paths in a workspace: relative, plain, never outside of it, and never too long.

This is the one rule for all that gets a path there: what is uploaded, what the files of a job and
of a DAG are called once directories and macros are filled in, and what scripts and engines write.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final

from wms.core.errors import InvalidInput

#: The longest path, in bytes of UTF-8. It fits an index of PostgreSQL and, with every byte written
#: as `%xx`, the first line of a request; below the directory of a job it is far from what Linux
#: takes (4096).
MAX_PATH_BYTES: Final = 1024
#: The longest name of a file or directory: that of Linux.
MAX_NAME_BYTES: Final = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHOWN = 80


def checked_path(path: str, *, field: str = "path") -> str:
    """The normalised relative path. Raises InvalidInput for one that no workspace can have."""
    if fault := _fault(path):
        raise InvalidInput.of(fault, field=field)
    return posixpath.normpath(path)


def path_in(directory: str, name: str, *, field: str = "path") -> str:
    """Path of the file `name` in a directory of the workspace. Raises InvalidInput."""
    return checked_path(posixpath.join(directory, name) if name else "", field=field)


def _fault(path: str) -> str:
    if not path:
        return "the name of a file is empty"
    if _CONTROL.search(path) or "\\" in path:
        return f"{_shown(path)} contains a control character or a backslash"
    normal = posixpath.normpath(path)
    if path.startswith("/") or normal == "." or normal.split("/")[0] == "..":
        return f"{_shown(path)} leads outside of the workspace"
    try:
        encoded = normal.encode()
    except UnicodeEncodeError:
        return f"{_shown(path)} is no text in UTF-8"
    if len(encoded) > MAX_PATH_BYTES:
        return (
            f"the path {_shown(path)} has {len(encoded)} bytes; in a workspace it has at most "
            f"{MAX_PATH_BYTES}"
        )
    longest = max(encoded.split(b"/"), key=len)
    if len(longest) > MAX_NAME_BYTES:
        return (
            f"{_shown(longest.decode())} has {len(longest)} bytes; the name of a file or a "
            f"directory has at most {MAX_NAME_BYTES}"
        )
    return ""


def _shown(path: str) -> str:
    return f"{path[:_SHOWN]!r}..." if len(path) > _SHOWN else repr(path)
