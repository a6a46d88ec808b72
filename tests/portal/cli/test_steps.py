"""A start may take as long as it likes while its steps advance."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.cli.child import ChildPortal, PortalDidNotStart
from portal.cli.demo import DemoFailed, Ended, conclude, follow
from portal.cli.state_directory import StateDirectory
from portal.cli.steps import ProgressTimeout, Stalled, Steps


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_slow_steps_that_advance_are_waited_for() -> None:
    clock, told = Clock(), []
    patience = ProgressTimeout(120, told.append, clock=clock)

    for number in range(60):
        clock.now_s += 119
        patience.check()
        patience.saw([f"migrations applied: {number} of 60"])

    assert clock.now_s > 60 * 100
    assert len(told) == 60


def test_where_nothing_advances_the_last_step_is_named() -> None:
    clock = Clock()
    patience = ProgressTimeout(120, lambda line: None, clock=clock)
    patience.saw(["preparing the servers", "migrations applied: 7 of 60"])
    clock.now_s += 121
    patience.saw([])

    with pytest.raises(Stalled, match=r"120 s; .*: 7 of 60$"):
        patience.check()


def test_a_program_that_begins_again_and_again_makes_no_progress() -> None:
    clock = Clock()
    patience = ProgressTimeout(120, lambda line: None, clock=clock)
    patience.saw(["starting web", "starting worker"])

    clock.now_s += 121
    patience.saw(["starting web"])

    with pytest.raises(Stalled, match="starting worker"):
        patience.check()


def test_steps_of_several_programs_are_read_in_order_and_an_earlier_start_is_forgotten(
    tmp_path: Path,
) -> None:
    steps = Steps(StateDirectory(tmp_path))
    assert steps.lines() == []
    steps.tell("one")
    Steps(StateDirectory(tmp_path)).tell("two")
    steps.tell("one")
    assert steps.lines() == ["one", "two"]

    steps.begin()

    assert steps.lines() == []


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[StateDirectory]:
    """A folder whose portal is to use a database that is not there."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    monkeypatch.delenv("REDIS_URL")
    with tempfile.TemporaryDirectory(prefix="pilotage-") as name:
        monkeypatch.setenv("PILOTAGE_VAR", name)
        yield StateDirectory(Path(name))


@pytest.mark.process
@pytest.mark.slow
def test_a_portal_that_does_not_get_on_is_given_up_with_the_step_it_is_at(
    place: StateDirectory,
) -> None:
    told: list[str] = []
    portal = ChildPortal(place, tell=told.append, step_limit_s=20)

    with pytest.raises(PortalDidNotStart, match="starting the programs"):
        portal.__enter__()

    assert told[0] == "preparing the servers"
    assert any(": Valkey " in line for line in told)
    assert not any(str(place.var) in words for words in _command_lines())


def _command_lines() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                yield (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue


class SlowProduction:
    """An API in which a node is done between any two looks."""

    def __init__(self, clock: Clock, looks: int) -> None:
        self._clock, self._looks = clock, looks
        self.seen = 0

    def get(self, path: str) -> dict:
        if path.startswith("pilots/"):
            return {"results": [{"site": "T2-North"}]}
        self._clock.now_s += 599
        self.seen = min(self.seen + 1, self._looks)
        return {
            "name": "slow", "site": "T2-North", "state_reason": "", "unmatched_reason": "",
            "state": "completed" if self.seen == 50 else "running",
            "nodes": {"total": 50, "done": self.seen},
        }  # fmt: skip


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("portal.cli.demo.time.sleep", lambda seconds: None)
    monkeypatch.setattr(
        "portal.cli.demo.ProgressTimeout",
        lambda limit_s, tell: ProgressTimeout(limit_s, tell, clock=found),
    )
    return found


def test_a_production_that_gets_on_is_followed_for_hours(clock: Clock, capsys) -> None:
    ended = follow(SlowProduction(clock, looks=50), 1, lambda: None)

    assert ended.dag["state"] == "completed"
    assert clock.now_s > 8 * 3600
    out = capsys.readouterr().out
    assert out.count("works at T2-North") == 1
    assert "49 of 50 nodes done" in out


def test_a_production_that_stands_still_is_given_up_with_the_last_line(clock: Clock) -> None:
    with pytest.raises(DemoFailed, match="3 of 50 nodes done"):
        follow(SlowProduction(clock, looks=3), 1, lambda: None)


class EndedProduction:
    """An API that tells what a production leaves behind."""

    def get(self, path: str) -> dict:
        if path.endswith("summary.json"):
            return {"entries": 12, "jobs": 3, "peak_gev": 91.2, "peak_error_gev": 0.1}
        return {"results": [{"name": "merge", "state_reason": "exit code 3"}]}


def _ended(state: str) -> Ended:
    return Ended({"id": 1, "state": state, "state_reason": ""}, seconds=60.0)


def test_a_demo_that_ends_with_its_production_fails_with_it() -> None:
    conclude(EndedProduction(), _ended("completed"), None)

    with pytest.raises(DemoFailed, match="merge: exit code 3"):
        conclude(EndedProduction(), _ended("failed"), None)


@pytest.mark.parametrize("state", ["completed", "failed"])
def test_a_demo_that_stays_up_does_so_whatever_became_of_its_production(state: str, capsys) -> None:
    stays: list[str] = []

    conclude(EndedProduction(), _ended(state), lambda: stays.append("up"))

    assert stays == ["up"]
    assert ("merge: exit code 3" in capsys.readouterr().out) == (state == "failed")
