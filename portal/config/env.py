"""Reader of typed settings from the environment, from files that it names, or from run files.

`manage.py up` writes the latter. A value that is missing or of no use raises ImproperlyConfigured.
"""

from __future__ import annotations

import json
import os
import re
from base64 import urlsafe_b64decode
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

_SEALING_BYTES = 32


def text(name: str, default: str | None = None, *, run_file: Path | None = None) -> str:
    """The value of NAME, of the file that NAME_FILE names, of `run_file`, or the default.

    Raises ImproperlyConfigured when there is none of them, so that a missing secret stops the
    start instead of weakening it.
    """
    if name in os.environ:
        return os.environ[name]
    if f"{name}_FILE" in os.environ:
        return Path(os.environ[f"{name}_FILE"]).read_text(encoding="utf-8").strip()
    if run_file is not None and run_file.is_file():
        return run_file.read_text(encoding="utf-8").strip()
    if default is None:
        missing = f", and there is no {run_file}" if run_file is not None else ""
        raise ImproperlyConfigured(
            f"{name} is not set{missing}. Start the servers with `manage.py up`, or set {name} "
            f"(or {name}_FILE) in the environment."
        )
    return default


def file_of(name: str, run_file: Path) -> Path | None:
    """The file that the value of NAME is read from, which need not be there; None for NAME."""
    if name in os.environ:
        return None
    return Path(os.environ.get(f"{name}_FILE") or run_file)


def text_or_file(name: str, run_file: Path) -> tuple[str, str]:
    """The value of NAME, or the path of what NAME_FILE names, or of `run_file`; the other is empty.

    For what is read anew at each use.
    """
    if os.environ.get(name):
        return os.environ[name], ""
    return "", os.environ.get(f"{name}_FILE") or str(run_file)


def check_sealing_keys(name: str) -> None:
    """Refuse a value of NAME that has another word than 32 bytes in URL-safe base64."""
    for word in os.environ.get(name, "").replace(",", " ").split():
        try:
            is_key = len(urlsafe_b64decode(word + "=" * (-len(word) % 4))) == _SEALING_BYTES
        except ValueError:
            is_key = False
        if not is_key:
            # Never the value itself: it may be a key with one character too many.
            raise ImproperlyConfigured(
                f"{name} must be keys of 32 random bytes in URL-safe base64."
            )


def flag(name: str, default: bool = False) -> bool:
    """NAME as a truth value: 1, true, yes, on or 0, false, no, off."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.")


def number(name: str, default: float) -> float:
    """NAME as a number greater than zero."""
    value = os.environ.get(name)
    if value is None:
        return default
    try:
        result = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {value!r}.") from None
    if result <= 0:
        raise ImproperlyConfigured(f"{name} must be greater than zero, not {value!r}.")
    return result


def words(name: str, default: str = "") -> list[str]:
    """NAME as a comma-separated list without empty entries."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def numbers(name: str, default: str) -> list[float]:
    """NAME as a comma-separated list of numbers, none below zero."""
    try:
        values = [float(word) for word in words(name, default)]
    except ValueError:
        values = [-1.0]
    if not all(0 <= value < float("inf") for value in values):
        raise ImproperlyConfigured(f"{name} must be numbers from 0, separated by commas.")
    return values


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """NAME as a comma-separated list of networks, `10.1.0.0/16`, or addresses; empty by default."""
    try:
        return [ip_network(word) for word in words(name)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be networks or addresses: {error}.") from None


def json_object(name: str) -> dict[str, Any]:
    """NAME as a JSON object; empty by default."""
    try:
        value = json.loads(os.environ.get(name, "").strip() or "{}")
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a JSON object: {error}.") from None
    if not isinstance(value, dict):
        raise ImproperlyConfigured(f"{name} must be a JSON object.")
    return value


def choice(name: str, default: str, *choices: str) -> str:
    """NAME as one of a few words."""
    value = os.environ.get(name, "").strip() or default
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


def is_set(name: str) -> bool:
    """Whether NAME has a value."""
    return bool(os.environ.get(name, "").strip())


def rate(name: str, default: str) -> tuple[int, int] | None:
    """NAME as so many in so many seconds, `1200/60`; None for `off`."""
    value = os.environ.get(name, "").strip() or default
    if value == "off":
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,4})", value)
    if found is None:
        raise ImproperlyConfigured(
            f"{name} must be requests per seconds, such as 1200/60, or off; not {value!r}."
        )
    return int(found[1]), int(found[2])
