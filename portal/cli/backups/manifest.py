"""Manifest of a backup: what it has, of when, of which installation, and what is kept apart.

A folder without one is no backup: it is written last, before the folder gets its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

from portal.embedded.private import write_private

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DUMP: Final = "database.dump"
CONTENTS: Final = "contents"
#: Lines of what the database names, a SHA-256 and a size each, as files of `CONTENTS`.
NAMED: Final = "named-contents.txt"
#: Lines of all other files of `CONTENTS`, as `sha256sum` reads them.
OTHERS: Final = "other-contents.sha256"
SECRETS: Final = "secrets"
#: Stands in a folder that is no whole backup: one that is made, or removed.
UNFINISHED: Final = "unfinished"
#: Stands in a backup that a check has found spoilt: no other one shares its files.
SPOILT: Final = "spoilt"
_CHUNK_BYTES = 1024 * 1024


class BackupFault(Exception):
    """A backup cannot be taken, is none, or is damaged; the text says why and how to mend it."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file of a backup: its path there, its size, and its SHA-256."""

    path: str
    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, folder: Path, path: str) -> Self:
        """The facts of a file as it is now."""
        file = folder / path
        return cls(path, file.stat().st_size, sha256_of(file))


@dataclass(frozen=True, slots=True)
class Manifest:
    """Account of a backup, as the JSON of its file has it."""

    taken_at: str
    version: str
    installation_id: str
    address: str
    server_version: int
    migrations: dict[str, list[str]]
    #: `folder`, whose contents are in the backup, or `bucket`, which is only named.
    store_kind: str
    store_name: str
    files: list[FileFacts]
    contents: int = 0
    contents_bytes: int = 0
    #: Of them, those that share a file with the backup before.
    linked: int = 0
    other_contents: int = 0
    #: Contents that the database names and the store had not.
    missing: list[str] = field(default_factory=list)
    #: Keys and tokens that are in the backup, and marks of all keys, by which they are known again.
    secrets: list[str] = field(default_factory=list)
    key_marks: dict[str, list[str]] = field(default_factory=dict)
    finished_at: str = ""
    format: int = FORMAT

    @property
    def snapshot_at(self) -> datetime:
        """The time of the state of the database."""
        return datetime.fromisoformat(self.taken_at)

    @property
    def has_contents(self) -> bool:
        """Whether the contents of files are in the backup."""
        return self.store_kind == "folder"

    def write(self, folder: Path) -> None:
        """Write it into the folder of the backup."""
        write_private(folder / MANIFEST, json.dumps(asdict(self), indent=1) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup. Raises BackupFault."""
    path = folder / MANIFEST
    try:
        raw: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BackupFault(f"{folder} is no backup: it has no {MANIFEST}.") from None
    except (OSError, ValueError) as error:
        raise BackupFault(f"{path} cannot be read: {error}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise BackupFault(
            f"{path} is not of the format {FORMAT}: use the release that has written it."
        )
    try:
        known = {each.name for each in fields(Manifest)}
        given = {name: value for name, value in raw.items() if name in known}
        found = Manifest(**given | {"files": [FileFacts(**each) for each in raw["files"]]})
        _ = found.snapshot_at
    except (KeyError, TypeError, ValueError) as error:
        raise BackupFault(f"{path} lacks what a manifest has: {error}") from None
    return found


def sha256_of(path: Path, tell: Callable[[int], None] = lambda size_bytes: None) -> str:
    """SHA-256 of a file; `tell` is called with the size of each piece."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            tell(len(chunk))
    return digest.hexdigest()


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, in order."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())
