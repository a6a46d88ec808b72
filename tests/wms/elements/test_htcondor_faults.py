"""An HTCondor pool that is down, slow or at the end of a bad line."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.batch_systems.condor import SCHEDD, Condor
from tests.batch_systems.condor import start as start_pool
from tests.batch_systems.proxy import BadLine, LineFault
from tests.wms.elements.contract import FOREVER, submit, unique_name, wait_for
from tests.wms.elements.faulty import Fault, FaultyRunner
from tests.wms.elements.test_htcondor import Make, maker, pool_or_skip
from wms.elements.htcondor_login import environment
from wms.elements.protocol import BatchState, ElementError, Unreachable
from wms.elements.runner import LocalRunner

pytestmark = [pytest.mark.slow, pytest.mark.apart]
NEVER_S = 60.0
LIMIT_S = 3


@pytest.fixture(scope="module")
def pool() -> Condor:
    return pool_or_skip()


@pytest.fixture
def make(pool: Condor) -> Make:
    return maker(pool)


@pytest.fixture
def line(pool: Condor) -> Iterator[BadLine]:
    """A line to the pool; the collector names the schedd `far@...` at its end."""
    with BadLine(pool.port) as line:
        ours = f'Name == "{SCHEDD}"'
        found = pool.run("condor_status", "-schedd", "-constraint", ours, "-af", "MyAddress")
        far = found.strip().replace(f":{pool.port}?", f":{line.port}?", 1)
        far = far.replace(f"127.0.0.1-{pool.port}", f"127.0.0.1-{line.port}")
        ad = (
            f'MyType = "Scheduler"\nName = "far@{SCHEDD}"\nMachine = "{SCHEDD}"\n'
            f'MyAddress = "{far}"\nCondorVersion = "$CondorVersion: 23.9.6 2024-01-01 $"\n'
        )
        (pool.folder / "tmp" / "far.ad").write_text(ad)
        pool.run("condor_advertise", "UPDATE_SCHEDD_AD", "/tmp/far.ad")
        yield line


@pytest.fixture
def living(make: Make) -> Iterator[list[str]]:
    element = make(schedd=SCHEDD)
    pilots = submit(element, FOREVER, count=2)
    for pilot in pilots:
        wait_for(element, pilot, BatchState.RUNNING)
    yield pilots
    element.cancel(pilots)


@pytest.mark.parametrize(
    ("fault", "cut_after_bytes"),
    [
        (LineFault.DOWN, 0),
        (LineFault.CUT, 0),
        (LineFault.CUT, 700),
        (LineFault.GARBLE, 0),
        (LineFault.GARBLE, 700),
        (LineFault.HANG, 0),
        (LineFault.HANG, 700),
    ],
)
def test_a_bad_line_to_the_schedd_tells_nothing_of_a_living_pilot(
    make: Make, line: BadLine, living: list[str], fault: LineFault, cut_after_bytes: int
) -> None:
    far = make(schedd=f"far@{SCHEDD}", timeout_s=LIMIT_S)
    line.fault, line.cut_after_bytes = fault, cut_after_bytes
    began = time.monotonic()

    for method in (far.status, far.cancel, far.forget):
        with pytest.raises(ElementError):
            method(living)

    assert time.monotonic() - began < NEVER_S
    line.fault = None
    states = far.status(living)
    assert {found.state for found in states.values()} == {BatchState.RUNNING}


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.PARTIAL, Fault.EMPTY])
def test_a_submission_whose_answer_was_lost_is_found_by_the_name_of_its_batch(
    make: Make, pool: Condor, fault: Fault
) -> None:
    runner, name = (
        FaultyRunner(LocalRunner(environment(pool.token_directory)), fault),
        unique_name(),
    )

    with pytest.raises(Unreachable):
        submit(make(runner, schedd=SCHEDD), FOREVER, count=3, name=name)

    element = make(schedd=SCHEDD)
    pilots = element.adopt(name)
    element.cancel(pilots)
    assert len(pilots) == 3


def test_a_pool_that_was_down_comes_back_with_the_same_pilots(make: Make, pool: Condor) -> None:
    element = make(schedd=SCHEDD)
    [waiting] = submit(make(schedd=SCHEDD, commands={"requirements": "false"}), "true")
    [running] = submit(element, FOREVER)
    wait_for(element, waiting, BatchState.QUEUED)
    wait_for(element, running, BatchState.RUNNING)

    pool.kill()
    for call in (element.capacity, lambda: element.status([running]), lambda: submit(element, "")):
        with pytest.raises(Unreachable):
            call()
    start_pool(pool.folder)

    states = element.status([waiting, running])
    assert states[waiting].state == BatchState.QUEUED
    # For some time the schedd looks for the node, which went down with the pool.
    assert states[running].state in {BatchState.RUNNING, BatchState.FAILED}
