"""Modules that are there now: the portal's own, installed ones, programs, and plugins of HTCondor.

A program for exactly this pair of schemes goes before all others, then a plugin that the settings
name for a scheme: somebody wanted them. Else the portal's own modules go before installed ones,
these before programs whose other end is a file, and these before plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from wms.placement.conf import PlacementConf, placement_conf
from wms.placement.modules.built_in import READERS, REMOVERS, WRITERS
from wms.placement.modules.installed import installed_modules
from wms.placement.modules.plugins import find_plugins
from wms.placement.modules.programs import Programs, find_programs
from wms.placement.modules.streaming import Reader, Worker, Writer

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Modules:
    """Readers, writers, removers and stagers of files by scheme; `direct` by pair of schemes."""

    readers: Mapping[str, Reader]
    writers: Mapping[str, Writer]
    removers: Mapping[str, Worker]
    stagers: Mapping[str, Worker]
    direct: Mapping[tuple[str, str], Worker]
    #: Modules that cannot be used, and why, by their names.
    unusable: Mapping[str, str]
    _programs: Programs
    _preferred: frozenset[str]

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The pairs of schemes of transfers."""
        return frozenset(product(self.readers, self.writers)) | self.direct.keys()

    @property
    def schemes(self) -> set[str]:
        """All schemes that some module knows."""
        known = {*self.readers, *self.writers, *self.removers, *self.stagers}
        return known.union(*self.direct)

    def has_own(self, pair: tuple[str, str]) -> bool:
        """Whether the portal's own modules serve both schemes."""
        return pair[0] in READERS and pair[1] in WRITERS and not self._preferred & {*pair}

    def ends(self, pair: tuple[str, str]) -> tuple[Reader, Writer]:
        """Reader and writer of a transfer between a pair of known schemes."""
        source, target = pair
        read, write = self.readers[source], self.writers[target]
        if target == "file":
            read = self._programs.readers.get(source, read)
        elif source == "file":
            write = self._programs.writers.get(target, write)
        return read, write


def found_modules(conf: PlacementConf | None = None) -> Modules:
    """The modules by the settings, as they are now."""
    conf = conf or placement_conf()
    programs, plugins = find_programs(conf.modules), find_plugins(conf.plugins)
    installed = installed_modules()
    first = plugins.preferred
    return Modules(
        readers={
            **_merged(plugins.readers, programs.readers, installed.readers, READERS),
            **{each: plugins.readers[each] for each in first},
        },
        writers={
            **_merged(plugins.writers, programs.writers, installed.writers, WRITERS),
            **{each: plugins.writers[each] for each in first},
        },
        removers=_merged(installed.removers, REMOVERS, programs.removers),
        stagers=programs.stagers,
        direct=programs.direct,
        unusable=_merged(installed.unusable, plugins.unusable, programs.unusable),
        _programs=programs,
        _preferred=first,
    )


def _merged(*tables: Mapping[str, _Value]) -> dict[str, _Value]:
    """One table; of several values the last one counts."""
    merged: dict[str, _Value] = {}
    for each in tables:
        merged.update(each)
    return merged
