"""Reader of an element's settings in a queue: a value of the right type, or `BadSettings`.

Unknown settings are refused, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from wms.elements.protocol import BadSettings

Settings = Mapping[str, object]

_PLAIN = re.compile(r"[^\x00-\x1f\x7f]+")


class SettingsReader:
    """Gives settings with their types; each error names the place, as `ssh.port`.

    Only `known` keys may be there.
    """

    def __init__(self, settings: Settings, known: Collection[str], *, place: str = "") -> None:
        self._settings = settings
        self._place = place
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise self.bad(unknown[0], f"unknown setting; there are {', '.join(sorted(known))}")

    def bad(self, key: str, reason: str) -> BadSettings:
        """Return the error for this key."""
        return BadSettings(f"{self._place}{key}", reason)

    def has(self, key: str) -> bool:
        return key in self._settings

    def text(
        self, key: str, default: str | None = None, *, pattern: str = ".+", what: str = "a text"
    ) -> str:
        """Return a text without control characters that the whole pattern fits."""
        value = self._value(key, default, what)
        if value == default:
            return str(value)
        if isinstance(value, str) and _PLAIN.fullmatch(value) and re.fullmatch(pattern, value):
            return value
        raise self.bad(key, f"needs {what}")

    def absolute_path(self, key: str, default: str | None = None) -> Path:
        """Return an absolute path; whether anything is there is not looked at."""
        what = "an absolute path"
        value = self._value(key, default, what)
        plain = isinstance(value, str | Path) and _PLAIN.fullmatch(str(value))
        if plain and Path(str(value)).is_absolute():
            return Path(str(value))
        raise self.bad(key, f"needs {what}")

    def optional_path(self, key: str) -> Path | None:
        """Return an absolute path, or None where the key is not there."""
        return self.absolute_path(key) if self.has(key) else None

    def number(self, key: str, default: int | None = None, *, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        what = f"a whole number from {low} to {high}"
        value = self._value(key, default, what)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise self.bad(key, f"needs {what}")

    def texts(self, key: str, *, pattern: str, what: str) -> tuple[str, ...]:
        """Return a list of texts, empty where the key is not there."""
        value = self._settings.get(key, [])
        if not isinstance(value, list | tuple):
            raise self.bad(key, f"needs a list, each {what}")
        for each in value:
            if not (isinstance(each, str) and _PLAIN.fullmatch(each) and re.search(pattern, each)):
                raise self.bad(key, f"{each!r} is not {what}")
        return tuple(value)

    def pairs(
        self, key: str, names: re.Pattern[str], values: re.Pattern[str], *, what: str
    ) -> dict[str, str]:
        """Return an object whose names and texts fit these patterns, empty where there is none."""
        found = self._settings.get(key, {})
        if not isinstance(found, Mapping):
            raise self.bad(key, f"needs {what}")
        for name, value in found.items():
            if (
                not isinstance(value, str)
                or not names.fullmatch(name)
                or not values.fullmatch(value)
            ):
                raise self.bad(f"{key}.{name}", f"needs {what}")
        return dict(found)

    def group(self, key: str, known: Collection[str]) -> SettingsReader | None:
        """Return a reader of the object under this key, None where it is not there."""
        if not self.has(key):
            return None
        value = self._settings[key]
        if not isinstance(value, Mapping):
            raise self.bad(key, f"needs an object with {', '.join(sorted(known))}")
        return SettingsReader(value, known, place=f"{self._place}{key}.")

    def _value(self, key: str, default: object, what: str) -> object:
        value = self._settings.get(key, default)
        if value is None:
            raise self.bad(key, f"is missing; it needs {what}")
        return value
