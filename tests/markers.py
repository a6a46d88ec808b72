"""Pytest markers for what a test needs (a browser, a batch system, processes), and their guard.

`make test-fast` runs the tests without these markers. The fixtures that a test takes tell most of
them; a test that starts a process by itself says so by `pytest.mark.process`, and fails without it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

#: The fixtures that bring what a marker names.
_FIXTURES = {
    "browser": {"page", "browser"},
    "batch": {"slurm", "own_slurm", "sshd", "condor", "arc", "kubernetes", "own_kubernetes"},
    "process": {"processes"},
}
#: Tests with one of these may start processes.
_MAY_START = ("browser", "batch", "process", "scenario", "apart")


def mark(item: pytest.Item) -> None:
    """Give a test the markers of what its fixtures bring."""
    taken = set(getattr(item, "fixturenames", ()))
    for marker, fixtures in _FIXTURES.items():
        if taken & fixtures:
            item.add_marker(getattr(pytest.mark, marker))


@pytest.fixture(scope="session")
def processes() -> None:
    """Taken by the fixtures that start processes."""


@pytest.fixture(autouse=True)
def _no_process_unless_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let a test that starts a process fail, if it has no marker that says so."""
    if any(map(request.node.get_closest_marker, _MAY_START)):
        yield
        return
    start = subprocess.Popen.__init__

    def refuse(self: Any, args: Any, *_: Any, **__: Any) -> None:
        pytest.fail(f"a test without the marker `process` starts {str(args)[:200]}")

    subprocess.Popen.__init__ = refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        subprocess.Popen.__init__ = start  # type: ignore[method-assign]
