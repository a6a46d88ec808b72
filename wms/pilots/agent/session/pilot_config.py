"""Configuration of one pilot, read from the batch script and its manifest, whose hash is verified.

It has server, credential, node checks, and the settings of the pilot's lifetime.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..checks.runner import Check

MANIFEST = "manifest.json"
FILES = "files"


class BadManifest(Exception):
    """The manifest on the disk is not the one of the submission."""


@dataclass(frozen=True)
class LifetimeSettings:
    """Division of a pilot's time, in seconds; `tail_limit_s` of 0: the queue's idle limit."""

    stop_margin_s: float = 0.0
    retire_spread_s: float = 0.0
    job_max_s: float = 0.0
    tail_limit_s: float = 0.0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LifetimeSettings:
        """Read the settings of a manifest; those that a newer server may add are left out."""
        return cls(**{name: float(data[name]) for name in cls.__dataclass_fields__ if name in data})


@dataclass(frozen=True)
class PilotConfig:
    """Configuration from the batch script. `used_s`: since its start, before this program ran.

    A test pilot `runs_all_checks`, whichever of them fails.
    """

    server_url: str
    pilot: str
    secret: str = field(repr=False)
    work_dir: Path
    checks: tuple[Check, ...] = ()
    settings: LifetimeSettings = LifetimeSettings()
    used_s: float = 0.0
    runs_all_checks: bool = False

    @property
    def files(self) -> Path:
        """Folder of the files that the manifest lists besides this program, named by hash."""
        return self.work_dir / FILES


def read_config(given: Mapping[str, Any]) -> PilotConfig:
    """Read the configuration and the manifest in its work directory. Raises BadManifest."""
    work_dir = Path(given["work_dir"])
    manifest = _read_manifest(work_dir / MANIFEST, given["manifest_sha256"])
    try:
        checks = tuple(Check.from_json(each) for each in manifest["checks"])
        settings = LifetimeSettings.from_json(manifest["settings"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadManifest(f"the manifest cannot be understood: {error!r}") from error
    return PilotConfig(
        server_url=given["server"],
        pilot=given["pilot"],
        secret=given["secret"],
        work_dir=work_dir,
        checks=checks,
        settings=settings,
        used_s=float(given["used_s"]),
        runs_all_checks=manifest.get("runs_all_checks") is True,
    )


def _read_manifest(file: Path, sha256: str) -> dict[str, Any]:
    try:
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise BadManifest("the manifest was changed after it was fetched")
        manifest: dict[str, Any] = json.loads(content)
    except (OSError, ValueError) as error:
        raise BadManifest(f"the manifest cannot be read: {error}") from error
    return manifest
