"""Batch systems that are slow, fail or lie, behind the real adapters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.batch_systems.slurm import Slurm
from tests.batch_systems.sshd import Sshd
from tests.wms.elements.conftest import slurm_elements
from tests.wms.elements.contract import FOREVER, submit, unique_name, wait_for
from tests.wms.elements.faulty import ALIEN_IDS, Fault, FaultyElement, FaultyRunner
from tests.wms.elements.test_ssh import make_runner
from wms.elements.host import HostElement
from wms.elements.host_cleanup import end_host_pilots
from wms.elements.protocol import BatchState, Element, ElementError, Refused, Unreachable
from wms.elements.runner import CommandRunner, LocalRunner
from wms.elements.slurm import SlurmElement

pytestmark = pytest.mark.process

#: Makes an adapter over this runner, each time to the same batch system.
Make = Callable[..., Element]
NEVER_S = 60.0


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    base = tmp_path_factory.mktemp("host")

    def make(runner: CommandRunner, timeout_s: int = 20) -> Element:
        return HostElement(base, slots=20, runner=runner, timeout_s=timeout_s)

    yield make
    end_host_pilots(base, grace_s=0.5)


@pytest.fixture(scope="module")
def slurm_here(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    with slurm_elements(slurm, tmp_path_factory.mktemp("slurm")) as make:
        yield make


@pytest.fixture(scope="module")
def slurm_by_ssh(slurm_here: Make, sshd: Sshd) -> Make:
    def make(runner: FaultyRunner, timeout_s: int = 20) -> Element:
        runner.inner = make_runner(sshd.settings())
        return slurm_here(runner, timeout_s=timeout_s)

    return make


@pytest.fixture(scope="module", params=["host", "slurm_here", "slurm_by_ssh"])
def make(request: pytest.FixtureRequest) -> Make:
    return request.getfixturevalue(request.param)


@pytest.fixture
def runner() -> FaultyRunner:
    return FaultyRunner(LocalRunner())


@pytest.fixture(scope="module")
def living(make: Make) -> list[str]:
    """Two pilots that run."""
    element = make(FaultyRunner(LocalRunner()))
    pilots = submit(element, FOREVER, count=2)
    for pilot in pilots:
        wait_for(element, pilot, BatchState.RUNNING)
    return pilots


@pytest.mark.parametrize(
    "fault", [Fault.TIMEOUT, Fault.LOST, Fault.EMPTY, Fault.TRUNCATED, Fault.PARTIAL]
)
def test_an_answer_that_does_not_come_or_is_not_whole_tells_nothing_of_a_living_pilot(
    make: Make, runner: FaultyRunner, living: list[str], fault: Fault
) -> None:
    runner.fault = fault

    with pytest.raises(Unreachable):
        make(runner).status(living)
    with pytest.raises(Unreachable):
        make(runner).capacity()

    runner.fault = None
    states = make(runner).status(living)
    assert {found.state for found in states.values()} == {BatchState.RUNNING}


def test_a_refusal_is_told_in_the_words_of_the_batch_system(
    make: Make, runner: FaultyRunner, living: list[str]
) -> None:
    runner.fault = Fault.REFUSED

    with pytest.raises(Refused, match="may not"):
        make(runner).status(living)
    with pytest.raises(Refused, match="may not"):
        submit(make(runner), "true")


def test_a_slow_answer_is_waited_for_no_longer_than_the_limit_of_the_queue(
    make: Make, runner: FaultyRunner, living: list[str]
) -> None:
    runner.fault, runner.delay_s = Fault.SLOW, NEVER_S
    element = make(runner, timeout_s=1)
    began = time.monotonic()

    with pytest.raises(Unreachable):
        element.status(living)
    with pytest.raises(Unreachable):
        submit(element, "true")

    assert time.monotonic() - began < NEVER_S / 2


def test_a_submission_whose_answer_was_lost_is_found_by_the_name_of_its_batch(
    make: Make, runner: FaultyRunner
) -> None:
    name = unique_name()
    runner.fault, runner.word = Fault.LOST, name

    with pytest.raises(Unreachable):
        submit(make(runner), FOREVER, count=2, name=name)

    runner.fault = None
    found = make(runner).adopt(name)
    assert len(found) == 2
    for pilot in found:
        wait_for(make(runner), pilot, BatchState.RUNNING)


@pytest.mark.parametrize("fault", [Fault.TRUNCATED, Fault.PARTIAL, Fault.EMPTY])
def test_a_submission_whose_answer_is_cut_is_never_taken_for_a_smaller_one(
    make: Make, runner: FaultyRunner, fault: Fault
) -> None:
    name = unique_name()
    runner.fault, runner.word = fault, name

    with pytest.raises(Unreachable):
        submit(make(runner), "true", count=2, name=name)

    runner.fault = None
    assert len(make(runner).adopt(name)) == 2


def test_a_lie_that_there_is_nothing_makes_pilots_unknown_and_never_ended(
    make_slurm: Callable[..., SlurmElement], tmp_path: Path
) -> None:
    element = make_slurm()
    [pilot] = submit(element, FOREVER)
    wait_for(element, pilot, BatchState.RUNNING)
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    (tmp_path / "squeue").chmod(0o700)

    liar = make_slurm(path=f"{tmp_path}:/usr/bin:/bin")

    assert liar.status([pilot])[pilot].state == BatchState.MISSING
    assert element.status([pilot])[pilot].state == BatchState.RUNNING


def test_pilots_that_nobody_asked_for_are_not_in_the_answer(
    make: Make, runner: FaultyRunner, living: list[str]
) -> None:
    element = make(runner)

    states = element.status([living[0], "31337_0", "somebody-else.0"])

    assert states.keys() == {living[0], "31337_0", "somebody-else.0"}
    assert states["31337_0"].state == BatchState.MISSING


@pytest.mark.parametrize("fault", list(Fault))
def test_no_injected_fault_ends_a_living_pilot(
    make: Make, runner: FaultyRunner, living: list[str], fault: Fault
) -> None:
    faulty = FaultyElement(make(runner))
    faulty.status(living)
    faulty.fault = fault

    try:
        states = faulty.status(living)
    except ElementError:
        states = {}

    found = {each.state for each in states.values()}
    assert found <= {BatchState.RUNNING, BatchState.MISSING}
    assert states.keys() - set(living) <= set(ALIEN_IDS)
    assert {each.state for each in make(runner).status(living).values()} == {BatchState.RUNNING}
