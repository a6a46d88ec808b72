"""Imports of packages without what they would load and nothing here uses: a third of each start."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

#: For each package what it takes along where it is installed, as an option: structlog takes rich
#: for tracebacks in colours, redis-py takes the SDK of OpenTelemetry for metrics of its own.
_OPTIONS: Final = {"structlog": "rich", "redis": "opentelemetry"}


def import_without_options() -> None:
    """Import the packages whose options are not wanted; these can be imported afterwards."""
    for package, option in _OPTIONS.items():
        if option in sys.modules:
            continue
        # The import system takes None for a module that is not there.
        sys.modules[option] = None  # type: ignore[assignment]
        try:
            import_module(package)
        finally:
            del sys.modules[option]
