"""Private folders and files of the owner alone, written atomically; secrets kept in such files."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def make_private_folder(path: Path) -> Path:
    """Create `path` (and its parents) with mode 0700, or set that mode if it exists."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Put `text` into `path` with mode 0600 by rename: a reader sees the old or the new content."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    temporary.rename(path)


def kept_secret(path: Path, length_bytes: int = 24) -> str:
    """The secret in `path`; a new random one is made and kept there when the file is missing."""
    if not path.is_file():
        write_private(path, secrets.token_urlsafe(length_bytes) + "\n")
    return path.read_text(encoding="utf-8").strip()
