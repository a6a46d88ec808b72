"""Pilots in a real ARC CE: the contract, what is particular to ARC, and a CE that fails."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.batch_systems.arc import QUEUE, Arc
from tests.batch_systems.arc import start as start_ce
from tests.batch_systems.proxy import BadLine, LineFault
from tests.batch_systems.services import Unavailable, shared
from tests.wms.elements.contract import FOREVER, ElementContract, submit, unique_name, wait_for
from tests.wms.elements.faulty import Fault, FaultyRunner
from wms.elements.arc import ArcElement, arc_element
from wms.elements.protocol import BatchState, Element, Refused, Unreachable
from wms.elements.runner import CommandRunner, Completed, LocalRunner

pytestmark = [pytest.mark.slow, pytest.mark.apart]

NEVER_S = 60.0
UNKNOWN = "PaUNDmHeHpAoABFKDmABFKDmABFKDmABFKDm6FFKDmABFKDmTpI3dx"

Make = Callable[..., ArcElement]


def ce_or_skip(name: str) -> Arc:
    try:
        found = shared(name)
    except Unavailable as error:
        pytest.skip(str(error))
    assert isinstance(found, Arc)
    return found


@pytest.fixture(scope="module")
def ce() -> Arc:
    """A CE that all tests of a run share."""
    return ce_or_skip("arc")


@pytest.fixture(scope="module")
def own_ce() -> Arc:
    """A CE of this test process alone, which it may stop."""
    return ce_or_skip(f"arc-{os.environ.get('PYTEST_XDIST_WORKER', 'own')}")


class NotingElement(ArcElement):
    """Notes the pilots that it sends."""

    sent: ClassVar[list[str]] = []

    def submit(self, *args: Any, **options: Any) -> list[str]:
        pilots = super().submit(*args, **options)
        self.sent.extend(pilots)
        return pilots


def maker(ce: Arc) -> Make:
    def make(runner: CommandRunner | None = None, **settings: object) -> ArcElement:
        who = {
            "ca_path": str(ce.ca_file),
            "certificate_file": str(ce.certificate_file),
            "key_file": str(ce.key_file),
        }
        element = arc_element({"url": ce.url, "queue": QUEUE, "timeout_s": 30, **who, **settings})
        return NotingElement(element.settings, runner)

    return make


@pytest.fixture
def make(ce: Arc) -> Iterator[Make]:
    """Makes adapters to the CE; the pilots of a test end with it."""
    NotingElement.sent.clear()
    yield maker(ce)
    maker(ce)().cancel(NotingElement.sent)


class TestArc(ElementContract):
    limit_s = 90.0
    unknown_ids = (UNKNOWN, "nobody.0", "../../etc")

    @pytest.fixture
    def make_element(self, make: Make) -> Callable[[], Element]:
        return make


def test_a_refusal_of_the_ce_is_told_in_its_own_words(make: Make) -> None:
    with pytest.raises(Refused, match="nowhere"):
        submit(make(queue="nowhere"), "true", count=2)
    with pytest.raises(Refused, match="no queue nowhere"):
        make(queue="nowhere").capacity()


def test_a_ce_that_does_not_know_us_or_that_we_do_not_trust_takes_nothing(
    make: Make, own_ce: Arc, tmp_path: Path
) -> None:
    stranger = {
        "certificate_file": str(own_ce.certificate_file),
        "key_file": str(own_ce.key_file),
    }

    with pytest.raises((Refused, Unreachable)):
        submit(make(**stranger), "true")
    with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        submit(make(ca_path=str(own_ce.ca_file)), "true")
    with pytest.raises(Unreachable, match="No such file"):
        submit(make(certificate_file=str(tmp_path / "gone.pem")), "true")


def test_authorities_may_be_in_a_folder_and_certificate_and_key_in_one_file(
    make: Make, ce: Arc, tmp_path: Path
) -> None:
    both = tmp_path / "proxy.pem"
    both.touch(mode=0o600)
    both.write_bytes(ce.certificate_file.read_bytes() + ce.key_file.read_bytes())
    folder = ce.ca_file.parent / "certificates"
    element = arc_element({"url": ce.url, "ca_path": str(folder), "certificate_file": str(both)})

    assert element.status([UNKNOWN])[UNKNOWN].state == BatchState.MISSING


class WatchedRunner:
    """Notes which commands it runs."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 10.0) -> Completed:
        self.commands.append(argv)
        return LocalRunner().run(argv, stdin=stdin, timeout_s=timeout_s)


def test_the_secrets_of_a_script_are_in_no_command_and_in_no_description(
    make: Make, ce: Arc
) -> None:
    runner, secret = WatchedRunner(), secrets.token_hex(16)

    [pilot] = submit(make(runner), f"true {secret}")

    said = [path.read_bytes() for path in (ce.folder / "arc/control").glob(f"job.{pilot}.*")]
    said += [path.read_bytes() for path in (ce.folder / "arc/log").glob("*.log")]
    assert said
    assert secret not in str(runner.commands)
    assert not any(secret.encode() in each for each in said)


@pytest.fixture(scope="module")
def living(own_ce: Arc) -> list[str]:
    """Two pilots that run in the own CE."""
    element = maker(own_ce)()
    pilots = submit(element, FOREVER, count=2)
    for pilot in pilots:
        wait_for(element, pilot, BatchState.RUNNING, limit_s=90.0)
    return pilots


@pytest.mark.parametrize("cut_after_bytes", [0, 3000])
@pytest.mark.parametrize("fault", list(LineFault))
def test_a_bad_line_to_the_ce_tells_nothing_of_a_living_pilot(
    own_ce: Arc, living: list[str], fault: LineFault, cut_after_bytes: int
) -> None:
    with BadLine(own_ce.port) as line:
        far = maker(own_ce)(url=f"https://localhost:{line.port}/arex", timeout_s=2)
        line.fault, line.cut_after_bytes = fault, cut_after_bytes
        began = time.monotonic()

        # Of the words on a bad line some arrive: none that would end the pilots.
        for method, ids in ((far.status, living), (far.forget, living), (far.cancel, [UNKNOWN])):
            with pytest.raises(Unreachable):
                method(ids)

        assert time.monotonic() - began < NEVER_S
        line.fault = None
        states = far.status(living)
    assert {found.state for found in states.values()} == {BatchState.RUNNING}


def test_an_answer_that_does_not_name_every_pilot_is_no_answer(
    own_ce: Arc, living: list[str]
) -> None:
    class Forgetful:
        """Leaves the last job out of what the CE says."""

        def run(
            self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 10.0
        ) -> Completed:
            done = LocalRunner().run(argv, stdin=stdin, timeout_s=timeout_s)
            last = done.stdout.rfind(',{\\"status-code')
            return Completed(0, done.stdout[:last] + ']}"}]}', "") if last > 0 else done

    with pytest.raises(Unreachable, match="each pilot"):
        maker(own_ce)(Forgetful()).status(living)


def test_pilots_are_found_by_their_batch_before_the_ce_has_looked_at_them(make: Make) -> None:
    element, name = make(), unique_name()

    pilots = submit(element, "true", count=20, name=name)

    assert element.adopt(name) == pilots


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.PARTIAL, Fault.EMPTY])
def test_a_submission_whose_answer_was_lost_is_found_by_the_name_of_its_batch(
    make: Make, fault: Fault
) -> None:
    name = unique_name()

    with pytest.raises(Unreachable):
        submit(make(FaultyRunner(LocalRunner(), fault)), FOREVER, count=3, name=name)

    element = make()
    # The CE lists a job some time after it has taken it; who adopts pilots waits for minutes.
    deadline = time.monotonic() + 60.0
    while len(pilots := element.adopt(name)) < 3 and time.monotonic() < deadline:
        time.sleep(0.5)
    element.cancel(pilots)
    assert len(pilots) == 3


def test_a_ce_that_was_down_comes_back_with_the_same_pilots(own_ce: Arc, living: list[str]) -> None:
    element = maker(own_ce)()

    own_ce.kill()
    for call in (element.capacity, lambda: element.status(living), lambda: submit(element, "")):
        with pytest.raises(Unreachable):
            call()
    start_ce(own_ce.folder)

    states = element.status(living)
    assert BatchState.MISSING not in {found.state for found in states.values()}
