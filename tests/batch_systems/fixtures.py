"""Fixtures `slurm`, `own_slurm` and `sshd`: a test without the service is skipped with the reason.

`fence_programs` installs bubblewrap and sudo where that is possible, and skips nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from tests.batch_systems.packages import ensure_programs
from tests.batch_systems.services import Unavailable, shared
from tests.batch_systems.slurm import Slurm
from tests.batch_systems.sshd import Sshd


def _shared_or_skip(name: str) -> object:
    try:
        return shared(name)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def slurm() -> Slurm:
    """A Slurm that all tests of a run share."""
    found = _shared_or_skip("slurm")
    assert isinstance(found, Slurm)
    return found


@pytest.fixture(scope="session")
def own_slurm() -> Slurm:
    """A Slurm of this test process alone, whose controller it may stop."""
    found = _shared_or_skip(f"slurm-{os.environ.get('PYTEST_XDIST_WORKER', 'own')}")
    assert isinstance(found, Slurm)
    return found


@pytest.fixture(scope="session")
def sshd() -> Sshd:
    """An sshd that all tests of a run share."""
    found = _shared_or_skip("sshd")
    assert isinstance(found, Sshd)
    return found


@pytest.fixture(scope="session")
def fence_programs(processes: None) -> None:
    """The programs of fences, where they can be installed; what works then, a test finds out."""
    with suppress(Unavailable):
        ensure_programs({"bubblewrap": "bwrap", "sudo": "sudo"})
