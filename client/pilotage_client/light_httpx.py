"""Import of httpx without what only its own command line needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def httpx_without_its_command() -> Iterator[None]:
    """While httpx is loaded, its own command line is not there, as where click is not installed.

    It would bring rich and pygments along, which takes longer than all else of a call.
    """
    name = "httpx._main"
    is_hidden = "httpx" not in sys.modules
    modules: dict[str, Any] = sys.modules
    if is_hidden:
        modules[name] = None
    try:
        yield
    finally:
        if is_hidden:
            modules.pop(name, None)
