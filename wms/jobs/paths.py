"""Names of files in a workspace: relative, plain, and never outside of it."""

from __future__ import annotations

import posixpath
import re

from wms.core.errors import InvalidInput

MAX_PATH_LENGTH = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def checked_path(path: str, *, field: str = "path") -> str:
    """The normalised relative path. Raises InvalidInput for one that could leave its directory."""
    if not path or len(path) > MAX_PATH_LENGTH:
        raise InvalidInput.of(f"a file name has 1 to {MAX_PATH_LENGTH} characters", field=field)
    if _CONTROL.search(path) or "\\" in path:
        raise InvalidInput.of(f"{path!r} contains a control character or a backslash", field=field)
    normal = posixpath.normpath(path)
    if path.startswith("/") or normal == "." or normal.split("/")[0] == "..":
        raise InvalidInput.of(f"{path!r} leads outside of the workspace", field=field)
    return normal
