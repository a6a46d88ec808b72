"""Which kinds of batch system there are, and how a queue's settings become an adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from wms.elements.local import LocalElement
from wms.elements.protocol import BadSettings, Element

Settings = Mapping[str, object]


def element_for(kind: str, settings: Settings) -> Element:
    """Return the adapter of this kind; raise `BadSettings` if the settings do not fit it.

    Nothing is contacted, so this also serves to check settings before they are stored.
    """
    if kind not in ELEMENTS:
        raise BadSettings("kind", f"{kind!r} is unknown; there are {', '.join(sorted(ELEMENTS))}")
    return ELEMENTS[kind](settings)


def _local(settings: Settings) -> Element:
    _refuse_unknown(settings, {"directory", "slots"})
    directory = settings.get("directory")
    if not isinstance(directory, str | Path) or not Path(directory).is_absolute():
        raise BadSettings("directory", "needs an absolute path, one for each queue")
    slots = settings.get("slots", 1)
    if not isinstance(slots, int) or isinstance(slots, bool) or not 1 <= slots <= 10_000:
        raise BadSettings("slots", "needs a whole number from 1 to 10000")
    return LocalElement(Path(directory), slots=slots)


def _refuse_unknown(settings: Settings, known: set[str]) -> None:
    unknown = sorted(set(settings) - known)
    if unknown:
        raise BadSettings(unknown[0], f"unknown setting; there are {', '.join(sorted(known))}")


#: A new adapter: copy `local.py`, pass the contract tests, add its line here.
ELEMENTS: dict[str, Callable[[Settings], Element]] = {"local": _local}
