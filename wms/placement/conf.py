"""Settings of data placement: host folders that transfers may reach, limits of time and size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings


@dataclass(frozen=True, slots=True)
class PlacementConf:
    """Settings of transfers: reachable folders, limits and times."""

    #: Folders of this host that files may be copied from and to.
    roots: tuple[Path, ...]
    limit_s: float
    file_bytes: int


def placement_conf() -> PlacementConf:
    """The settings in force now."""
    everything: dict[str, Any] = settings.PILOTAGE
    raw = everything["PLACEMENT"]
    return PlacementConf(
        roots=tuple(Path(root) for root in raw["ROOTS"]),
        limit_s=float(raw["LIMIT_S"]),
        file_bytes=int(raw["FILE_BYTES"]),
    )
