"""Settings of data placement: reachable folders and hosts, limits of time, size and space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from wms.placement.amounts import bytes_of


@dataclass(frozen=True, slots=True)
class PlacementConf:
    """Settings of transfers: reachable folders, spaces, limits and times."""

    #: Folders of this host that files may be copied from and to.
    roots: tuple[Path, ...]
    #: Bytes that may be allocated, by host.
    spaces: Mapping[str, int]
    limit_s: float
    #: So long nothing may come or go.
    stall_s: float
    file_bytes: int
    #: Networks, addresses and names that are reached although they are not public.
    allowed: tuple[str, ...]
    #: The store of `s3:` addresses; empty for none.
    s3_url: str
    s3_region: str
    longest_lease_s: int


def placement_conf() -> PlacementConf:
    """The settings in force now. Raises ImproperlyConfigured."""
    everything: dict[str, Any] = settings.PILOTAGE
    raw = everything["PLACEMENT"]
    return PlacementConf(
        roots=tuple(Path(root) for root in raw["ROOTS"]),
        spaces=dict(map(_space, raw["SPACES"])),
        limit_s=float(raw["LIMIT_S"]),
        stall_s=float(raw["STALL_S"]),
        allowed=tuple(raw["ALLOWED"]),
        s3_url=raw["S3_URL"],
        s3_region=raw["S3_REGION"],
        file_bytes=int(raw["FILE_BYTES"]),
        longest_lease_s=int(raw["LONGEST_LEASE_S"]),
    )


def _space(word: str) -> tuple[str, int]:
    host, _, size = word.partition("=")
    try:
        return host.strip().lower(), bytes_of(size)
    except ValueError as error:
        raise ImproperlyConfigured(f"PILOTAGE_PLACEMENT_SPACES: {word!r}: {error}.") from None
