"""Version of the product that runs: of the installed package, else of the source beside it."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[2] / "pyproject.toml"


@cache
def product_version() -> str:
    """The version; empty where neither tells it."""
    try:
        return version("pilotage")
    except PackageNotFoundError:
        if not _SOURCE.is_file():
            return ""
    project: dict[str, str] = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))["project"]
    return project["version"]
