"""Keys of credentials, changed while the portal runs: their file, and secrets sealed anew."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from wms.core.actors import Actor
from wms.core.database.locks import wait_for_locks
from wms.core.errors import Conflict
from wms.core.key_rotation import Kept, KeyKind, Renewal, Renewed, register_kept, renew_all
from wms.pilots.credentials.sealing import (
    NoKey,
    is_sealed_by_first,
    key_file,
    new_key,
    read_keys,
    reseal,
)
from wms.pilots.credentials.services import SEALING_LOCK


def register_sealed(what: str, model: type[Any]) -> None:
    """Let the secrets in a model's column `sealed` be sealed anew; a row's text names it."""
    rows = model._default_manager.all
    kept = Kept(what, KeyKind.CREDENTIALS, rows, ("sealed",), _renew, SEALING_LOCK)
    register_kept(kept)


@sensitive_variables()
def _renew(rows: Sequence[Any]) -> Renewal:
    changed, lost = [], []
    for row in rows:
        try:
            if not is_sealed_by_first(row.sealed):
                row.sealed = reseal(row.sealed)
                changed.append(row)
        except NoKey:
            lost.append(str(row))
    return Renewal(changed, lost)


@transaction.atomic
def add_key() -> None:
    """Put a fresh key before those in the key file. Raises NoKey, or Conflict without a file."""
    wait_for_locks([SEALING_LOCK])
    path = _file()
    keys = read_keys() if path.is_file() and path.stat().st_size else []
    _write(path, [new_key(), *keys])


@transaction.atomic
@sensitive_variables("old")
def drop_old_keys(*, actor: Actor) -> list[Renewed]:
    """Seal every secret with the first key, then take all others out of the key file.

    Raises NoKey, and Conflict when a credential is not opened by any key: nothing is taken then.
    """
    # Nobody seals meanwhile: what is sealed by an old key now is sealed anew here.
    wait_for_locks([SEALING_LOCK])
    path, (_, *old) = _file(), read_keys()
    results = renew_all({KeyKind.CREDENTIALS}, actor=actor)
    lost = [name for each in results for name in each.lost]
    if lost:
        raise Conflict(
            f"No key opens {', '.join(lost)}: set the secret anew, or delete it, before "
            "old keys are dropped."
        )
    # Whoever seals meanwhile does so with the first key, or with one that was added since.
    transaction.on_commit(lambda: _write(path, [key for key in read_keys() if key not in old]))
    return results


def _file() -> Path:
    path = key_file()
    if path is None:
        raise Conflict(
            "The keys are in PILOTAGE_CREDENTIAL_KEYS: change them there. Only those of a file are "
            "written."
        )
    return path


@sensitive_variables("keys", "text")
def _write(path: Path, keys: list[str]) -> None:
    """Replace the file at once, so that every reader finds either the old or the new keys."""
    text = "".join(f"{key}\n" for key in keys)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)
