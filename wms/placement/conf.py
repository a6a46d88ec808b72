"""Settings of data placement: reachable folders and hosts, limits of time and size."""

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
    #: So long nothing may come or go.
    stall_s: float
    file_bytes: int
    #: Networks, addresses and names that are reached although they are not public.
    allowed: tuple[str, ...]
    #: Keys of the hosts that `sftp:` and `scp:` addresses may name; None: none may.
    known_hosts: Path | None
    #: The store of `s3:` addresses; empty for none.
    s3_url: str
    s3_region: str
    longest_lease_s: int
    #: So many attempts of one user run at once; 0: no limit.
    per_user: int
    #: The folder of programs that move files; None: there are none.
    modules: Path | None = None
    #: File-transfer plugins of HTCondor; those with a scheme go before all others for it.
    plugins: tuple[tuple[str, Path], ...] = ()


def placement_conf() -> PlacementConf:
    """The settings in force now."""
    everything: dict[str, Any] = settings.PILOTAGE
    raw = everything["PLACEMENT"]
    return PlacementConf(
        roots=tuple(Path(root) for root in raw["ROOTS"]),
        limit_s=float(raw["LIMIT_S"]),
        stall_s=float(raw["STALL_S"]),
        allowed=tuple(raw["ALLOWED"]),
        known_hosts=Path(raw["KNOWN_HOSTS"]) if raw["KNOWN_HOSTS"] else None,
        s3_url=raw["S3_URL"],
        s3_region=raw["S3_REGION"],
        file_bytes=int(raw["FILE_BYTES"]),
        longest_lease_s=int(raw["LONGEST_LEASE_S"]),
        per_user=int(raw["PER_USER"]),
        modules=Path(raw["MODULES"]) if raw["MODULES"] else None,
        plugins=tuple(map(_plugin, raw["PLUGINS"])),
    )


def _plugin(word: str) -> tuple[str, Path]:
    """The scheme, if one is given, and the path: `/path` or `scheme=/path`."""
    scheme, equals, path = word.partition("=")
    return (scheme.strip().lower(), Path(path.strip())) if equals else ("", Path(word))
