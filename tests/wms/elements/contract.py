"""Contract of elements: tests that every real adapter has to pass.

A new adapter joins with a subclass in its own `test_KIND.py` that gives the fixture `make_element`;
the attributes of the class tell what its batch system cannot do or does slowly.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

import pytest

from wms.elements.protocol import BatchState, Element, PilotState, Refused

#: Places for pilots that a test may fill at once.
SLOTS = 4
#: It may run on for minutes: a process twenty times a second would be felt.
FOREVER = "echo begun\nwhile :; do sleep 1; done\n"
LIMIT_S = 30.0
#: To ask starts a process, which takes a tenth of a second of a processor.
POLL_S = 0.2


def unique_name() -> str:
    """A batch name that no other test of a shared batch system has."""
    return f"test-{secrets.token_hex(6)}"


def submit(
    element: Element, script: str, count: int = 1, name: str = "", secrets: Sequence[str] = ()
) -> list[str]:
    return element.submit(
        count,
        script,
        name=name or unique_name(),
        cores=1,
        memory_mb=100,
        gpus=0,
        minutes=5,
        secrets=secrets,
    )


def wait_for(
    element: Element, pilot_id: str, *states: BatchState, limit_s: float = LIMIT_S
) -> PilotState:
    deadline = time.monotonic() + limit_s
    while True:
        found = element.status([pilot_id])[pilot_id]
        if found.state in states:
            return found
        assert time.monotonic() < deadline, f"{pilot_id} is still {found}"
        time.sleep(POLL_S)


def wait_for_log(element: Element, pilot_id: str, text: str, limit_s: float = LIMIT_S) -> str:
    deadline = time.monotonic() + limit_s
    while text not in (log := element.log(pilot_id)):
        assert time.monotonic() < deadline, f"the log of {pilot_id} is {log!r}"
        time.sleep(POLL_S)
    return log


class ElementContract:
    """The tests; a subclass has the fixture `make_element`."""

    #: How long a state or a log is waited for.
    limit_s = LIMIT_S
    #: Whether `log` gives what a running pilot has printed so far.
    has_live_log = True
    #: Ids that no pilot has: one of this system's own form, and what is no id at all.
    unknown_ids: tuple[str, ...] = ("nobody.0", "../../etc")

    @pytest.fixture
    def make_element(self) -> Callable[[], Element]:
        """Makes an adapter to the same entry each time, as another process would."""
        raise NotImplementedError

    @pytest.fixture
    def element(self, make_element: Callable[[], Element]) -> Element:
        return make_element()

    def ended(self, element: Element, pilot: str) -> PilotState:
        return wait_for(element, pilot, BatchState.DONE, BatchState.FAILED, limit_s=self.limit_s)

    def final_log(self, element: Element, pilot: str, text: str) -> str:
        """The log once it has the text, at the latest some time after the pilot's end."""
        if not self.has_live_log:
            self.ended(element, pilot)
        return wait_for_log(element, pilot, text, limit_s=self.limit_s)

    def has_begun(self, element: Element, pilot: str) -> None:
        """Wait until the script `FOREVER` runs."""
        wait_for(element, pilot, BatchState.RUNNING, limit_s=self.limit_s)
        if self.has_live_log:
            wait_for_log(element, pilot, "begun", limit_s=self.limit_s)

    def test_a_pilot_runs_and_is_done(self, element: Element) -> None:
        [pilot] = submit(element, "echo hello")

        ended = self.ended(element, pilot)

        assert (ended.state, ended.exit_code) == (BatchState.DONE, 0)
        assert self.final_log(element, pilot, "hello") == "hello\n"

    def test_a_failing_pilot_shows_its_exit_code_and_a_reason(self, element: Element) -> None:
        [pilot] = submit(element, "exit 3")

        ended = self.ended(element, pilot)

        assert (ended.state, ended.exit_code) == (BatchState.FAILED, 3)
        assert ended.reason

    def test_the_pilots_of_a_batch_know_their_index(self, element: Element) -> None:
        pilots = submit(element, 'echo "index $PILOTAGE_INDEX"', count=3)

        logs = [self.final_log(element, pilot, "index") for pilot in pilots]

        assert logs == ["index 0\n", "index 1\n", "index 2\n"]

    def test_a_pilot_is_told_its_share_of_the_node(self, element: Element) -> None:
        script = 'echo "$PILOTAGE_CORES $PILOTAGE_MEMORY_MB $PILOTAGE_GPUS over"'

        [pilot] = element.submit(
            1, script, name=unique_name(), cores=2, memory_mb=512, gpus=0, minutes=1
        )

        assert self.final_log(element, pilot, "over") == "2 512 0 over\n"

    def test_nothing_of_our_environment_reaches_a_pilot(
        self, element: Element, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATABASE_PASSWORD", "hush")

        [pilot] = submit(element, "env; echo over")

        log = self.final_log(element, pilot, "over")
        assert "hush" not in log
        assert "DATABASE_URL" not in log

    def test_any_script_text_arrives_as_it_is(self, element: Element) -> None:
        awkward = (
            "#SBATCH --hold\n"
            "printf '%s\\n' '$HOME `id` \"x\" \\\\' \"$(printf 'a  b')\" ä\n# no newline at the end"
        )

        [pilot] = submit(element, awkward)

        assert self.final_log(element, pilot, "ä") == '$HOME `id` "x" \\\\\na  b\nä\n'

    def test_cancelling_ends_a_running_pilot(self, element: Element) -> None:
        [pilot] = submit(element, FOREVER)
        self.has_begun(element, pilot)

        element.cancel([pilot])

        wait_for(element, pilot, BatchState.CANCELLED, limit_s=self.limit_s)

    def test_cancelling_ends_a_pilot_that_ignores_the_polite_signal(self, element: Element) -> None:
        [pilot] = submit(element, "trap '' TERM\n" + FOREVER)
        self.has_begun(element, pilot)

        element.cancel([pilot])

        wait_for(element, pilot, BatchState.CANCELLED, limit_s=self.limit_s)

    def test_cancelling_spares_the_others_and_ignores_unknown_ids(self, element: Element) -> None:
        first, second = submit(element, FOREVER, count=2)
        self.has_begun(element, second)

        element.cancel([first, *self.unknown_ids])

        wait_for(element, first, BatchState.CANCELLED, limit_s=self.limit_s)
        assert element.status([second])[second].state == BatchState.RUNNING

    def test_each_pilot_finds_its_own_secret(self, element: Element) -> None:
        script = '#!/bin/sh\necho "$PILOTAGE_INDEX $PILOTAGE_SECRET over"\n'

        first, second = submit(element, script, count=2, secrets=["id-0:one_1", "id-1:two-2"])

        assert self.final_log(element, first, "over") == "0 id-0:one_1 over\n"
        assert self.final_log(element, second, "over") == "1 id-1:two-2 over\n"

    def test_another_process_finds_the_pilots_by_id_and_by_the_name_of_the_batch(
        self, make_element: Callable[[], Element]
    ) -> None:
        name = unique_name()
        pilots = submit(make_element(), FOREVER, count=2, name=name)

        other = make_element()

        assert other.adopt(name) == pilots
        assert other.adopt(name[:-1]) == []
        wait_for(other, pilots[1], BatchState.RUNNING, limit_s=self.limit_s)

    def test_unknown_pilots_are_missing_and_not_assumed_to_be_done(self, element: Element) -> None:
        states = element.status(self.unknown_ids)

        assert {state.state for state in states.values()} == {BatchState.MISSING}
        assert set(states) == set(self.unknown_ids)
        assert [element.log(each) for each in self.unknown_ids] == [""] * len(self.unknown_ids)

    def test_an_ended_pilot_can_be_forgotten_and_a_living_one_cannot(
        self, element: Element
    ) -> None:
        [ended] = submit(element, "echo over")
        [living] = submit(element, FOREVER)
        wait_for(element, ended, BatchState.DONE, limit_s=self.limit_s)
        self.has_begun(element, living)
        assert self.final_log(element, ended, "over")

        element.forget([ended, living, *self.unknown_ids])

        states = element.status([ended, living])
        assert states[living].state == BatchState.RUNNING
        assert element.log(ended) == ""

    def test_the_capacity_tells_what_runs_and_what_is_free(self, element: Element) -> None:
        pilots = submit(element, FOREVER, count=2)
        for pilot in pilots:
            wait_for(element, pilot, BatchState.RUNNING, limit_s=self.limit_s)

        found = element.capacity()

        # Other tests may have pilots in the same batch system.
        assert found.is_up
        assert found.running >= 2
        assert 0 <= found.free <= found.total - 2

    def test_the_log_can_be_cut_to_its_end(self, element: Element) -> None:
        [pilot] = submit(element, "echo 0123456789")
        self.final_log(element, pilot, "9\n")

        assert element.log(pilot, tail_bytes=3) == "89\n"

    def test_a_name_that_is_no_name_is_refused(self, element: Element) -> None:
        with pytest.raises(Refused, match="batch name"):
            submit(element, "true", name="../away")

    def test_nothing_asked_is_nothing_done(self, element: Element) -> None:
        element.cancel([])
        element.forget([])

        assert element.status([]) == {}
