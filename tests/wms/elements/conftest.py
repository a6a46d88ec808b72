"""Fixtures `make_slurm` and `make_kubernetes`: adapters whose pilots end with a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.batch_systems.slurm import Slurm
from tests.wms.elements.kubernetes_clusters import (  # noqa: F401 - fixtures of two modules
    kubernetes,
    make_kubernetes,
    namespace,
    own_kubernetes,
)
from wms.elements.runner import CommandRunner
from wms.elements.slurm import SlurmElement, slurm_element

pytest.register_assert_rewrite("tests.wms.elements.contract")


@pytest.fixture
def make_slurm(slurm: Slurm, tmp_path: Path) -> Iterator[Callable[..., SlurmElement]]:
    """Makes adapters to a Slurm that others use too; the pilots of the test end with it."""
    with slurm_elements(slurm, tmp_path / "logs") as make:
        yield make


@contextmanager
def slurm_elements(slurm: Slurm, logs: Path) -> Iterator[Callable[..., SlurmElement]]:
    """Give a maker of adapters with further settings, all over `runner` if there is one."""

    def make(runner: CommandRunner | None = None, **settings: object) -> SlurmElement:
        values = {"log_directory": str(logs), "slurm_conf": str(slurm.configuration), **settings}
        element = slurm_element(values)
        return SlurmElement(element.settings, runner) if runner else element

    yield make
    jobs = slurm.run("squeue", "-h", "-t", "PD,R,CF", "-O", "ArrayJobID:16,STDOUT:256").split("\n")
    ours = {line.split()[0] for line in jobs if f" {logs}/" in line}
    if ours:
        slurm.run("scancel", "--quiet", *ours)
