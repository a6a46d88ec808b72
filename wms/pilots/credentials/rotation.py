"""Rotation of the keys of credentials, while the portal runs: each secret is sealed anew."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.locks import wait_for_locks
from wms.core.errors import Conflict
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.sealing import NoKey, key_file, new_key, read_keys, reseal
from wms.pilots.credentials.services import SEALING_LOCK


@dataclass(frozen=True, slots=True)
class Rotation:
    """Result of a rotation: credentials sealed anew, and names of those that no key opens."""

    resealed: int
    unopened: tuple[str, ...]


#: The models whose column `sealed` holds a secret; a row's text names it.
_SEALED_MODELS: list[type[Any]] = [Credential]


def register_sealed(model: type[Any]) -> None:
    """Let the secrets of another model be sealed anew with the others, under `SEALING_LOCK`."""
    _SEALED_MODELS.append(model)


@transaction.atomic
def add_key() -> None:
    """Put a fresh key before those in the key file. Raises NoKey, or Conflict without a file."""
    wait_for_locks([SEALING_LOCK])
    path = _file()
    keys = read_keys() if path.is_file() and path.stat().st_size else []
    _write(path, [new_key(), *keys])


@transaction.atomic
@sensitive_variables("sealed")
def reseal_all(*, actor: Actor) -> Rotation:
    """Seal every secret with the first key. Raises NoKey where there is none at all.

    A credential that no key opens is left as it is, and named.
    """
    wait_for_locks([SEALING_LOCK])
    read_keys()
    resealed, unopened = 0, []
    for model in _SEALED_MODELS:
        for row in model._default_manager.select_for_update(of=("self",)).order_by("pk"):
            try:
                sealed = reseal(row.sealed)
            except NoKey:
                unopened.append(str(row))
                continue
            model._default_manager.filter(pk=row.pk).update(sealed=sealed)
            resealed += 1
    facts = {"resealed": resealed, "unopened": unopened}
    record_action("rotate credential keys", target="credential keys", actor=actor, facts=facts)
    return Rotation(resealed, tuple(unopened))


@transaction.atomic
def drop_old_keys(*, actor: Actor) -> Rotation:
    """Seal every secret with the first key, then take all others out of the key file.

    Raises NoKey, and Conflict when a credential is not opened by any key: nothing is taken then.
    """
    result = reseal_all(actor=actor)
    if result.unopened:
        raise Conflict(
            f"No key opens {', '.join(result.unopened)}: set the secret anew, or delete it, before "
            "old keys are dropped."
        )
    # Whoever seals meanwhile does so with the first key, or with one that was added since.
    path, (_, *old) = _file(), read_keys()
    transaction.on_commit(lambda: _write(path, [key for key in read_keys() if key not in old]))
    return result


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
