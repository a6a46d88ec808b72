"""Misspelt commands of a submit description, told where the command that was meant is missing."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from wms.jobs.description.commands import KNOWN
from wms.jobs.description.renderer_inputs import CannotRender
from wms.jobs.description.submit_file import SubmitFile

_EXECUTABLE = "executable"
#: As alike as `exec` is; nothing else can have been meant where none is named.
_CLOSE = 0.5


def told(error: CannotRender, description: SubmitFile) -> tuple[str, Sequence[str]]:
    """Message of a fault, and the commands whose line it has.

    Where no executable is named, that is the command which looks most like it.
    """
    names = error.names
    if names[:1] != (_EXECUTABLE,) or any(name in description.lines for name in names):
        return str(error), names
    texts = " ".join([*description.commands.values(), *description.attributes.values()]).lower()
    unknown = [
        name for name in description.commands if name not in KNOWN and f"$({name}" not in texts
    ]
    close = difflib.get_close_matches(_EXECUTABLE, unknown, 1, _CLOSE)
    if not close:
        return str(error), names
    return f"{error}; did you mean {_EXECUTABLE} by {close[0][:80]}?", close
