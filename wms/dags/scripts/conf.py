"""Settings of the script service, with their types and units: fences, network, limits, folder.

Scripts are the PRE, POST and HOLD scripts of nodes. The folder on this host is for their copies of
workspaces.
"""

from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

#: Fences, the best first; `none` is no fence.
FENCES: Final = ("bwrap", "account", "none")


@dataclass(frozen=True, slots=True)
class ScriptConf:
    """Settings of scripts; their meaning is in docs/reference/settings.md."""

    folder: Path
    fences: tuple[str, ...]
    bwrap: str
    has_network: bool
    readable: tuple[str, ...]
    #: Folders that no script may see, wherever they lie.
    hidden: tuple[str, ...]
    first_uid: int
    wall_s: float
    cpu_s: int
    memory_mb: int
    processes: int
    file_bytes: int
    output_bytes: int
    new_files: int
    new_bytes: int
    workspace_bytes: int


def script_conf() -> ScriptConf:
    """Settings in force now."""
    everything: dict[str, Any] = settings.PILOTAGE
    raw = everything["SCRIPTS"]
    fences = tuple(raw["FENCES"])
    for word in fences:
        if word not in FENCES:
            raise ImproperlyConfigured(
                f"PILOTAGE_SCRIPTS_FENCES: {word!r} is none of {', '.join(FENCES)}."
            )
    return ScriptConf(
        folder=Path(raw["DIR"]) if raw["DIR"] else _folder(Path(raw["VAR"])),
        fences=fences,
        bwrap=str(raw["BWRAP"]),
        has_network=bool(raw["NETWORK"]),
        readable=tuple(raw["READABLE"]),
        hidden=(str(raw["VAR"]),),
        first_uid=int(raw["FIRST_UID"]),
        wall_s=float(raw["WALL_S"]),
        cpu_s=int(raw["CPU_S"]),
        memory_mb=int(raw["MEMORY_MB"]),
        processes=int(raw["PROCESSES"]),
        file_bytes=int(raw["FILE_BYTES"]),
        output_bytes=int(raw["OUTPUT_BYTES"]),
        new_files=int(raw["NEW_FILES"]),
        new_bytes=int(raw["NEW_BYTES"]),
        workspace_bytes=int(raw["WORKSPACE_BYTES"]),
    )


def _folder(var: Path) -> Path:
    """Folder for copies of workspaces on this host.

    Accounts other than root cannot enter root's folders, and scripts of a portal that root started
    run as such accounts.
    """
    if os.geteuid() == 0:
        mark = hashlib.sha256(os.fsencode(var)).hexdigest()[:8]
        return Path("/var/tmp", f"pilotage-scripts-{mark}")
    return var / "scripts" / socket.gethostname()
