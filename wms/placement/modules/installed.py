"""Modules of other packages that are installed beside the portal, found by their entry points.

An entry point of the group `pilotage.placement_modules` has a scheme as its name and leads to a
module, or another object, with some of the functions of `local_files`: `opened`, `write` and
`remove`; and, where addresses need not tell the port, `PORT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import structlog

from wms.placement.addresses import SCHEME
from wms.placement.modules.streaming import Reader, Worker, Writer

log = structlog.get_logger(__name__)

GROUP: Final = "pilotage.placement_modules"
#: Not of a module: these never are another host's.
_RESERVED: Final = frozenset({"file", "lfn"})


@dataclass(frozen=True, slots=True)
class InstalledModules:
    """Functions of installed modules by scheme; `unusable` are those that are not used, and why."""

    readers: Mapping[str, Reader]
    writers: Mapping[str, Writer]
    removers: Mapping[str, Worker]
    ports: Mapping[str, int]
    unusable: Mapping[str, str]


@cache
def installed_modules() -> InstalledModules:
    """Modules that are installed, as long as this process lives."""
    found: dict[str, Any] = {}
    unusable: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda each: (each.name, each.value)):
        module, why = _loaded(point, is_there=point.name in found)
        if why:
            told = f"the module {point.value} for {point.name} {why}"
            unusable[point.name] = told
            log.warning("placement_module_unusable", module=point.value, reason=why)
        else:
            found[point.name] = module
    return InstalledModules(
        readers=_functions(found, "opened"),
        writers=_functions(found, "write"),
        removers=_functions(found, "remove"),
        ports={name: each.PORT for name, each in found.items() if hasattr(each, "PORT")},
        unusable=unusable,
    )


def _loaded(point: EntryPoint, *, is_there: bool) -> tuple[Any, str]:
    """Module that an entry point leads to, and why it cannot be used."""
    if not SCHEME.fullmatch(point.name) or point.name in _RESERVED:
        return None, f"is not used: {point.name!r} is no scheme that a module may serve"
    if is_there:
        return None, "is not used: there is another one for this scheme"
    try:
        module = point.load()
    except Exception as error:  # noqa: BLE001 - code of others may do anything at its import
        return None, f"cannot be imported: {type(error).__name__}: {error}"
    if not any(callable(getattr(module, name, None)) for name in ("opened", "write", "remove")):
        return None, "has none of the functions opened, write and remove"
    if not isinstance(getattr(module, "PORT", 0), int):
        return None, "has a PORT that is no number"
    return module, ""


def _functions(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {scheme: getattr(each, name) for scheme, each in found.items() if hasattr(each, name)}
