"""Sealing of secrets at rest: Fernet, with one of several keys that are read at every use.

The first key seals, each of them opens: so keys change while the portal runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from wms.core.errors import Conflict


class NoKey(Conflict):
    """There is no key that seals or opens credentials."""


def new_key() -> str:
    """A fresh random key."""
    return Fernet.generate_key().decode()


def key_file() -> Path | None:
    """The file that the keys are read from; None where they are in the environment, or nowhere."""
    named = str(settings.PILOTAGE["CREDENTIAL_KEYS_FILE"])
    return Path(named) if named and not settings.PILOTAGE["CREDENTIAL_KEYS"] else None


@sensitive_variables()
def read_keys() -> list[str]:
    """The keys that are in force now, the sealing one first. Raises NoKey."""
    path, text = key_file(), str(settings.PILOTAGE["CREDENTIAL_KEYS"])
    if path is not None:
        try:
            text = path.read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            raise NoKey(f"The keys of credentials cannot be read: {type(error).__name__}") from None
    keys = [word for word in text.replace(",", " ").split() if word]
    if not keys:
        raise NoKey("There is no key for credentials: PILOTAGE_CREDENTIAL_KEYS is not set.")
    return keys


@sensitive_variables()
def _fernet() -> MultiFernet:
    return _fernet_of(read_keys())


@sensitive_variables()
def _fernet_of(keys: Sequence[str]) -> MultiFernet:
    try:
        # As they are made, or without the signs that fill up the last group.
        return MultiFernet([Fernet(key + "=" * (-len(key) % 4)) for key in keys])
    except ValueError:
        # The library's own words would tell nothing more, and the cause would hold the key.
        raise NoKey("A key for credentials is none: 32 bytes in URL-safe base64.") from None


@sensitive_variables()
def seal(secret: str) -> str:
    """The secret, sealed with the first key. Raises NoKey."""
    return _fernet().encrypt(secret.encode()).decode()


@sensitive_variables()
def unseal(sealed: str) -> str:
    """The secret. Raises NoKey when none of the keys is that which sealed it."""
    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise NoKey("None of the keys for credentials is the one that sealed it.") from None


@sensitive_variables()
def is_sealed_by_first(sealed: str) -> bool:
    """Whether the first key opens it, so that no other is needed. Raises NoKey without any."""
    try:
        _fernet_of(read_keys()[:1]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


@sensitive_variables()
def check_keys() -> None:
    """Raise NoKey where there is no key, or one that is none."""
    _fernet()


@sensitive_variables()
def reseal(sealed: str) -> str:
    """The same secret, sealed with the first key. Raises NoKey as `unseal` does."""
    try:
        return _fernet().rotate(sealed.encode()).decode()
    except InvalidToken:
        raise NoKey("None of the keys for credentials is the one that sealed it.") from None
