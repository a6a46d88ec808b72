"""What every element must do, asked of each real one; a new adapter joins by adding a fixture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wms.elements.local import LocalElement
from wms.elements.local_cleanup import end_local_pilots
from wms.elements.protocol import BatchState, Element, PilotState, Refused

SLOTS = 4
FOREVER = "echo begun\nwhile :; do sleep 0.05; done\n"


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Callable[[], Element]]:
    base = tmp_path / "pilots"
    yield lambda: LocalElement(base, slots=SLOTS, cancel_grace_s=1)
    end_local_pilots(base, grace_s=1)


@pytest.fixture(params=["local"])
def make_element(request: pytest.FixtureRequest) -> Callable[[], Element]:
    """Makes an adapter to the same entry each time, as another process would."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def element(make_element: Callable[[], Element]) -> Element:
    return make_element()


def submit(element: Element, script: str, count: int = 1, name: str = "batch") -> list[str]:
    return element.submit(count, script, name=name, cores=1, memory_mb=100, gpus=0, minutes=5)


def wait_for(
    element: Element, pilot_id: str, *states: BatchState, limit_s: float = 20.0
) -> PilotState:
    deadline = time.monotonic() + limit_s
    while True:
        found = element.status([pilot_id])[pilot_id]
        if found.state in states:
            return found
        assert time.monotonic() < deadline, f"{pilot_id} is still {found}"
        time.sleep(0.05)


def wait_for_log(element: Element, pilot_id: str, text: str, limit_s: float = 20.0) -> str:
    deadline = time.monotonic() + limit_s
    while text not in (log := element.log(pilot_id)):
        assert time.monotonic() < deadline, f"the log of {pilot_id} is {log!r}"
        time.sleep(0.05)
    return log


class TestEveryElement:
    def test_a_pilot_runs_and_is_done(self, element: Element) -> None:
        [pilot] = submit(element, "echo hello")

        ended = wait_for(element, pilot, BatchState.DONE, BatchState.FAILED)

        assert (ended.state, ended.exit_code) == (BatchState.DONE, 0)
        assert element.log(pilot) == "hello\n"

    def test_a_failing_pilot_shows_its_exit_code_and_a_reason(self, element: Element) -> None:
        [pilot] = submit(element, "exit 3")

        ended = wait_for(element, pilot, BatchState.DONE, BatchState.FAILED)

        assert (ended.state, ended.exit_code) == (BatchState.FAILED, 3)
        assert ended.reason

    def test_the_pilots_of_a_batch_know_their_index(self, element: Element) -> None:
        pilots = submit(element, 'echo "index $PILOTAGE_INDEX"', count=3)

        logs = [wait_for_log(element, pilot, "index") for pilot in pilots]

        assert logs == ["index 0\n", "index 1\n", "index 2\n"]

    def test_nothing_of_our_environment_reaches_a_pilot(
        self, element: Element, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATABASE_PASSWORD", "hush")

        [pilot] = submit(element, "env; echo over")

        log = wait_for_log(element, pilot, "over")
        assert "hush" not in log
        assert "DATABASE_URL" not in log

    def test_any_script_text_arrives_as_it_is(self, element: Element) -> None:
        awkward = (
            "printf '%s\\n' '$HOME `id` \"x\" \\\\' \"$(printf 'a  b')\" ä\n# no newline at the end"
        )

        [pilot] = submit(element, awkward)

        assert wait_for_log(element, pilot, "ä") == '$HOME `id` "x" \\\\\na  b\nä\n'

    def test_cancelling_ends_a_running_pilot(self, element: Element) -> None:
        [pilot] = submit(element, FOREVER)
        wait_for_log(element, pilot, "begun")

        element.cancel([pilot])

        wait_for(element, pilot, BatchState.CANCELLED)

    def test_cancelling_ends_a_pilot_that_ignores_the_polite_signal(self, element: Element) -> None:
        [pilot] = submit(element, "trap '' TERM\n" + FOREVER)
        wait_for_log(element, pilot, "begun")

        element.cancel([pilot])

        wait_for(element, pilot, BatchState.CANCELLED)

    def test_cancelling_spares_the_others_and_ignores_unknown_ids(self, element: Element) -> None:
        first, second = submit(element, FOREVER, count=2)
        wait_for_log(element, second, "begun")

        element.cancel([first, "unknown.7", "../../etc"])

        wait_for(element, first, BatchState.CANCELLED)
        assert element.status([second])[second].state == BatchState.RUNNING

    def test_another_process_finds_the_pilots_by_id_and_by_the_name_of_the_batch(
        self, make_element: Callable[[], Element]
    ) -> None:
        pilots = submit(make_element(), FOREVER, count=2, name="lost")

        other = make_element()

        assert other.adopt("lost") == pilots
        assert other.adopt("los") == []
        wait_for(other, pilots[1], BatchState.RUNNING)

    def test_an_unknown_pilot_is_missing_and_not_assumed_to_be_done(self, element: Element) -> None:
        assert element.status(["nobody.0"])["nobody.0"].state == BatchState.MISSING
        assert element.log("nobody.0") == ""

    def test_an_ended_pilot_can_be_forgotten_and_a_living_one_cannot(
        self, element: Element
    ) -> None:
        [ended] = submit(element, "true", name="short")
        [living] = submit(element, FOREVER, name="long")
        wait_for(element, ended, BatchState.DONE)
        wait_for(element, living, BatchState.RUNNING)

        element.forget([ended, living, "nobody.0"])

        states = element.status([ended, living])
        assert states[ended].state == BatchState.MISSING
        assert states[living].state == BatchState.RUNNING

    def test_the_capacity_counts_what_runs(self, element: Element) -> None:
        before = element.capacity()
        pilots = submit(element, FOREVER, count=2)
        for pilot in pilots:
            wait_for(element, pilot, BatchState.RUNNING)

        after = element.capacity()

        assert before.is_up
        assert after.is_up
        assert after.running == before.running + 2
        assert after.free == before.free - 2

    def test_the_log_can_be_cut_to_its_end(self, element: Element) -> None:
        [pilot] = submit(element, "echo 0123456789")
        wait_for_log(element, pilot, "9\n")

        assert element.log(pilot, tail_bytes=3) == "89\n"

    def test_a_name_that_is_no_name_is_refused(self, element: Element) -> None:
        with pytest.raises(Refused, match="batch name"):
            submit(element, "true", name="../away")
