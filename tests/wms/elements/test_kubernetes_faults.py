"""Pilots in Kubernetes when the API server, or the line to it, fails."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.batch_systems.kubernetes import Kubernetes
from tests.batch_systems.kubernetes import start as start_cluster
from tests.batch_systems.proxy import BadLine, LineFault
from tests.wms.elements.contract import FOREVER, submit, unique_name, wait_for
from tests.wms.elements.faulty import Fault, FaultyRunner
from tests.wms.elements.kubernetes_clusters import Make, maker
from wms.elements.protocol import BatchState, Unreachable
from wms.elements.runner import LocalRunner

pytestmark = [pytest.mark.slow, pytest.mark.batch]

NEVER_S = 60.0


@pytest.fixture(scope="module")
def own_make(own_kubernetes: Kubernetes) -> Make:
    return maker(own_kubernetes, "lines")


@pytest.fixture(scope="module")
def living(own_make: Make) -> Iterator[list[str]]:
    """Two pilots that run in the own kubernetes."""
    element = own_make()
    pilots = submit(element, FOREVER, count=2)
    for pilot in pilots:
        wait_for(element, pilot, BatchState.RUNNING)
    yield pilots
    element.cancel(pilots)


@pytest.mark.parametrize("cut_after_bytes", [0, 3000])
@pytest.mark.parametrize("fault", list(LineFault))
def test_a_bad_line_to_the_api_server_tells_nothing_of_a_living_pilot(
    own_kubernetes: Kubernetes,
    own_make: Make,
    living: list[str],
    fault: LineFault,
    cut_after_bytes: int,
) -> None:
    with BadLine(own_kubernetes.port) as line:
        far = own_make(url=f"https://localhost:{line.port}", timeout_s=1)
        line.fault, line.cut_after_bytes = fault, cut_after_bytes
        began = time.monotonic()

        # So many that their answers do not come through, either.
        nobody = [f"nobody-{index}" for index in range(50)]
        for method, ids in ((far.status, living), (far.forget, living), (far.cancel, nobody)):
            with pytest.raises(Unreachable):
                method(ids)
        with pytest.raises(Unreachable):
            far.capacity()

        assert time.monotonic() - began < NEVER_S
    states = own_make().status(living)
    assert {found.state for found in states.values()} == {BatchState.RUNNING}


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.PARTIAL, Fault.EMPTY])
def test_a_submission_whose_answer_was_lost_is_found_by_the_name_of_its_batch(
    make_kubernetes: Make, fault: Fault
) -> None:
    name = unique_name()

    with pytest.raises(Unreachable):
        submit(make_kubernetes(FaultyRunner(LocalRunner(), fault)), FOREVER, count=3, name=name)

    assert make_kubernetes().adopt(name) == [f"{name}-{index}" for index in range(3)]


def test_a_list_that_changed_too_much_while_it_was_read_tells_nothing(
    own_kubernetes: Kubernetes,
    own_make: Make,
    living: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if own_kubernetes.is_real:
        pytest.skip("a real API server lets its pages end after minutes")
    monkeypatch.setattr("wms.elements.kubernetes.PAGE", 1)
    own_kubernetes.api.get("/fake/compact")

    with pytest.raises(Unreachable, match="410"):
        own_make().status(living)


def test_an_api_server_that_was_down_comes_back_with_the_same_pilots(
    own_kubernetes: Kubernetes, own_make: Make, living: list[str]
) -> None:
    element = own_make()

    own_kubernetes.kill()
    for call in (element.capacity, lambda: element.status(living), lambda: submit(element, "")):
        with pytest.raises(Unreachable):
            call()
    start_cluster(own_kubernetes.folder)

    states = element.status(living)
    assert {found.state for found in states.values()} == {BatchState.RUNNING}
