"""Secrets of an installation that its database cannot do without: which, where, and their marks.

A mark tells a key from another one and nothing of it: keys are long and random.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portal.cli.backups.manifest import SECRETS, BackupFault
from portal.config import env
from portal.embedded.private import make_private_folder, write_private

_MARK_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True)
class SecretFile:
    """A secret of the settings: its variable, the name of its file, and what is lost without it."""

    variable: str
    name: str
    needed_for: str


#: Without these what is in the database cannot be read, or counts no more.
KEYS: Final = (
    SecretFile(
        "PILOTAGE_CREDENTIAL_KEYS", "credential_keys",
        "credentials of frontends and of transfers, which only they open",
    ),
    SecretFile(
        "PILOTAGE_SECRET_KEY", "secret_key",
        "sessions, tokens of running attempts and signatures of webhooks",
    ),
    SecretFile(
        "PILOTAGE_SECRET_KEY_FALLBACKS", "secret_key_fallbacks", "what former secret keys signed",
    ),
)  # fmt: skip
_TOKEN_FOLDERS: Final = {
    "PILOTAGE_FRONTEND_TOKENS_DIR": "frontend-tokens",
    "PILOTAGE_FACTORY_TOKENS_DIR": "factory-tokens",
}


def key_marks(run: Path) -> dict[str, list[str]]:
    """Marks of the keys that are in force, by the names of their files."""
    return {
        key.name: [_mark(word) for word in text.replace(",", " ").split()]
        for key in KEYS
        if (text := env.text(key.variable, "", run_file=run / key.name))
    }


def _mark(word: str) -> str:
    return hashlib.sha256(f"which key is this:{word}".encode()).hexdigest()[:_MARK_CHARACTERS]


def copy_secrets(folder: Path, var: Path) -> list[str]:
    """Write the keys and tokens that are in force into a backup; their paths there."""
    target = make_private_folder(folder / SECRETS)
    for key in KEYS:
        if text := env.text(key.variable, "", run_file=var / "run" / key.name):
            write_private(target / key.name, text + "\n")
    for variable, name in _TOKEN_FOLDERS.items():
        source = Path(os.environ.get(variable) or var / name)
        for file in sorted(source.glob("*")) if source.is_dir() else ():
            if file.is_file():
                make_private_folder(target / name)
                write_private(target / name / file.name, file.read_text(encoding="utf-8"))
    return [str(path.relative_to(folder)) for path in sorted(target.rglob("*")) if path.is_file()]


def put_back(folder: Path, var: Path) -> None:
    """Put the secrets of a backup where an installation has them; what is there stays."""
    source = folder / SECRETS
    for key in KEYS:
        if is_put_back(key, folder=folder, run=var / "run"):
            _put(source / key.name, var / "run" / key.name)
    for variable, name in _TOKEN_FOLDERS.items():
        target = Path(os.environ.get(variable) or var / name)
        for file in sorted((source / name).glob("*")):
            if not (target / file.name).exists():
                _put(file, target / file.name)


def is_put_back(key: SecretFile, *, folder: Path, run: Path) -> bool:
    """Whether a key of the settings will be that of the backup."""
    is_given = key.variable in os.environ or (run / key.name).exists()
    return not is_given and (folder / SECRETS / key.name).is_file()


def _put(source: Path, target: Path) -> None:
    make_private_folder(target.parent)
    write_private(target, source.read_text(encoding="utf-8"))


def require_keys(marks: Mapping[str, list[str]], *, folder: Path, run: Path) -> None:
    """Make sure that the keys of a backup will be there. Raises BackupFault with those that lack.

    They are in the backup, in the settings, or in files that somebody has put back before.
    """
    # A key that was the first one then may be a former one now.
    found = {mark for each in key_marks(run).values() for mark in each}
    for key in KEYS:
        if is_put_back(key, folder=folder, run=run):
            continue
        if missing := set(marks.get(key.name, ())) - found:
            raise BackupFault(
                f"{len(missing)} of the keys in {key.name} that the backup needs are not here: "
                f"without them are lost {key.needed_for}. Put the file that was kept apart to "
                f"{run / key.name}, or set {key.variable}; --without-keys goes on without them."
            )
