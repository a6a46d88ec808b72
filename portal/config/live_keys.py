"""The secret key in its files: followed by programs that run, and changed there.

Every request and every task begins with a look whether the files are others now, so that a key is
changed without a start of any program. What cannot be read leaves the keys as they are.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import structlog
from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from portal.embedded.private import write_private
from wms.core.errors import Conflict

log = structlog.get_logger(__name__)

_KEY_BYTES = 48
_lock = Lock()
_seen: tuple[object, ...] = ()


def follow_files() -> None:
    """Take the keys from their files anew where these have changed since the last look."""
    global _seen
    seen = tuple(map(_state, _files()))
    if seen == _seen:
        return
    with _lock:
        if seen == _seen:
            return
        _take_over()
        # As it was before they were read: whoever changes them meanwhile is seen next time.
        _seen = seen


@sensitive_variables()
def _take_over() -> None:
    key_file, former_file = _files()
    key, former = settings.SECRET_KEY, list(settings.SECRET_KEY_FALLBACKS)
    try:
        if key_file is not None:
            key = key_file.read_text(encoding="utf-8").strip()
        if former_file is not None:
            former = former_file.read_text(encoding="utf-8").split() if former_file.exists() else []
    except (OSError, ValueError) as error:
        log.error("secret_key_not_read", error=type(error).__name__)
        return
    if not key:
        log.error("secret_key_not_read", error="the file is empty")
        return
    if (key, former) == (settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS):
        return
    # Other threads work: at no moment a key is missing that counts before or after.
    settings.SECRET_KEY_FALLBACKS = [*former, settings.SECRET_KEY, key]
    settings.SECRET_KEY = key
    settings.SECRET_KEY_FALLBACKS = former
    log.info("secret_key_changed", former=len(former))


@sensitive_variables()
def add_secret_key() -> None:
    """Put a fresh secret key first; the one before joins the former ones. Raises Conflict."""
    key_file, former_file = _written_files()
    # Somebody else may have put one there since this program looked.
    follow_files()
    new, old = secrets.token_urlsafe(_KEY_BYTES), settings.SECRET_KEY
    former = list(settings.SECRET_KEY_FALLBACKS)
    # Every program knows the new key before any signs with it.
    _write(former_file, [new, old, *former])
    _write(key_file, [new])
    _write(former_file, [old, *former])
    follow_files()


def drop_former_keys() -> None:
    """Leave only the first secret key. Raises Conflict where the keys are in no files."""
    _, former_file = _written_files()
    _write(former_file, [])
    follow_files()


def _files() -> tuple[Path | None, Path | None]:
    return settings.SECRET_KEY_FILES["SECRET_KEY"], settings.SECRET_KEY_FILES["FALLBACKS"]


def _written_files() -> tuple[Path, Path]:
    key_file, former_file = _files()
    if key_file is None or former_file is None:
        raise Conflict(
            "The keys are in PILOTAGE_SECRET_KEY and PILOTAGE_SECRET_KEY_FALLBACKS: change them "
            "there. Only those of files are written."
        )
    return key_file, former_file


@sensitive_variables()
def _write(path: Path, keys: Sequence[str]) -> None:
    try:
        write_private(path, "".join(f"{key}\n" for key in keys))
    except OSError as error:
        raise Conflict(f"{path} cannot be written: {type(error).__name__}") from None


def _state(path: Path | None) -> object:
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
