"""Directory of an embedded server's Unix socket: its own, or a short one for too long a path."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from portal.embedded.private import write_private

#: A socket's path has 108 bytes with its end; its name in the folder gets some of them.
FOLDER_LIMIT_BYTES = 90


def socket_folder(folder: Path) -> Path:
    """`folder` itself where its path is short enough, else a short private one, kept for it."""
    if _is_short(folder):
        return folder
    note = folder / "socket.folder"
    if note.is_file() and _is_ours(kept := Path(note.read_text(encoding="utf-8").strip())):
        return kept
    made = Path(tempfile.mkdtemp(prefix="pilotage-", dir=_short_parent()))
    write_private(note, f"{made}\n")
    return made


def _short_parent() -> Path:
    """The first folder for temporary files that is short enough; only its owner may enter what
    `mkdtemp` makes there."""
    for place in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if place and _is_short(Path(place, "pilotage-12345678")) and os.access(place, os.W_OK):
            return Path(place)
    raise FileNotFoundError("no folder for temporary files is short enough for a socket")


def _is_short(folder: Path) -> bool:
    return len(os.fsencode(folder)) <= FOLDER_LIMIT_BYTES


def _is_ours(folder: Path) -> bool:
    """Whether it is still the private folder that it was: others may have taken its name since."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    mode = stat.S_IMODE(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and mode == 0o700 and found.st_uid == os.geteuid()
