"""Settings of data placement: reachable folders and hosts, limits of time and size, the feeder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

#: As far as a low queue is counted; and a day.
_MOST_BELOW: Final = 100_000
_LONGEST_S: Final = 86400


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


@dataclass(frozen=True, slots=True)
class FeederConf:
    """Settings of the feeder, the program that is run when the queue is low."""

    #: The queue is low with fewer requests that wait or run.
    below: int
    program: Path
    #: Its content is handed to the program; None: it gets no token.
    token_file: Path | None
    pause: timedelta
    limit_s: float
    portal_url: str


def feeder_conf() -> FeederConf | None:
    """The settings in force now; None without a feeder. Raises ImproperlyConfigured."""
    everything: dict[str, Any] = settings.PILOTAGE
    raw = everything["PLACEMENT"]
    if not raw["FEED_BELOW"] and not raw["FEED_PROGRAM"]:
        return None
    if not raw["FEED_BELOW"] or not raw["FEED_PROGRAM"]:
        raise ImproperlyConfigured(
            "PILOTAGE_PLACEMENT_FEED_BELOW and PILOTAGE_PLACEMENT_FEED_PROGRAM go together: set "
            "both or neither."
        )
    return FeederConf(
        below=_whole("FEED_BELOW", raw["FEED_BELOW"]),
        program=_absolute("FEED_PROGRAM", raw["FEED_PROGRAM"]),
        token_file=(
            _absolute("FEED_TOKEN_FILE", raw["FEED_TOKEN_FILE"]) if raw["FEED_TOKEN_FILE"] else None
        ),
        pause=timedelta(seconds=_up_to_a_day("FEED_PAUSE_S", raw["FEED_PAUSE_S"])),
        limit_s=_up_to_a_day("FEED_LIMIT_S", raw["FEED_LIMIT_S"]),
        portal_url=everything["PUBLIC_URL"],
    )


def _whole(name: str, value: float) -> int:
    if not float(value).is_integer() or value > _MOST_BELOW:
        raise ImproperlyConfigured(
            f"PILOTAGE_PLACEMENT_{name} must be a whole number up to {_MOST_BELOW}, not {value:g}."
        )
    return int(value)


def _absolute(name: str, value: str) -> Path:
    if not Path(value).is_absolute():
        raise ImproperlyConfigured(
            f"PILOTAGE_PLACEMENT_{name} must be an absolute path, not {value!r}."
        )
    return Path(value)


def _up_to_a_day(name: str, value: float) -> float:
    if not value <= _LONGEST_S:
        raise ImproperlyConfigured(
            f"PILOTAGE_PLACEMENT_{name} must be at most {_LONGEST_S} seconds, not {value:g}."
        )
    return float(value)
