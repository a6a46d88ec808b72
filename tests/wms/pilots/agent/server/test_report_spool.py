"""Spool of reports: kept on disk, sent in the order of their attempt, each once."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.pilot_api.bodies import MAX_BODY_BYTES
from tests.wms.pilots.agent.conftest import wait_until
from wms.pilots.agent.control import Control, Waker
from wms.pilots.agent.server.client import (
    BadAnswer,
    Client,
    NodeFault,
    Rejected,
    Superseded,
    Unavailable,
)
from wms.pilots.agent.server.report_delivery import Upload, bounded_names
from wms.pilots.agent.server.report_spool import ReportSpool

MINUTE_S = 60.0


class VirtualTime:
    """A clock that stands still but for pauses, which take no time of ours."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now


class PassingWaker(Waker):
    """Where others wait, this lets the time pass."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def wait(self, timeout_s: float | None) -> None:
        if timeout_s is None:
            super().wait(0.05)
        else:
            self._time.now += timeout_s
            self._time.pauses.append(timeout_s)


class Server(Client):
    """A server that is away when it is told to be, and remembers what reached it."""

    def __init__(self, is_away: Callable[[], bool]) -> None:
        self.is_away = is_away
        self.got: list[tuple[str, Any]] = []
        self.answers: dict[str, Exception] = {}
        self.refuses: Callable[[str, Any], Exception | None] = lambda path, content: None
        self.tries = 0

    def call(self, path: str, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        self._receive(path, body)
        return {}

    def upload(self, path: str, source: Path, **_: Any) -> None:
        self._receive(path, source.read_bytes())

    def _receive(self, path: str, content: Any) -> None:
        self.tries += 1
        if self.is_away():
            raise Unavailable("no answer")
        refusal = self.answers.get(path) or self.refuses(path, content)
        if refusal is not None:
            raise refusal
        self.got.append((path, content))


class Surroundings:
    """A spool with a server that comes back at `back_at`, on a clock of its own."""

    def __init__(self, directory: Path) -> None:
        self.time = VirtualTime()
        self.back_at = 0.0
        self.server = Server(lambda: self.time.now < self.back_at)
        self.control = Control(clock=self.time)
        self.directory = directory / "spool"
        self.spool = ReportSpool(
            self.directory,
            client=self.server,
            control=self.control,
            waker=PassingWaker(self.time),
        )

    def stay_away(self, seconds: float) -> None:
        self.back_at = self.time.now + seconds

    def replay(self) -> None:
        """Let the background send until nothing is left."""
        self.spool.start()
        wait_until(lambda: not self.spool.attempts(), "all is sent or dropped")
        self.spool.stop()


@pytest.fixture
def here(tmp_path: Path) -> Surroundings:
    return Surroundings(tmp_path)


def report(number: int) -> str:
    return f"jobs/{number}/1/report"


def test_a_report_reaches_a_server_that_is_there_at_once(here: Surroundings) -> None:
    here.spool.put(report(1), {"exit_code": 0})

    assert here.server.got == [(report(1), {"exit_code": 0})]
    assert not here.directory.exists()


def test_reports_outlive_thirty_minutes_without_a_server_and_arrive_in_their_order(
    here: Surroundings,
) -> None:
    here.stay_away(30 * MINUTE_S)

    for number in range(20):
        here.spool.put(report(number), {"exit_code": number})
    kept = sorted(here.directory.glob("*/report.json"))
    assert [json.loads(each.read_text())["exit_code"] for each in kept] == list(range(20))
    assert here.spool.attempts() == [(number, 1) for number in range(20)]
    here.replay()

    assert [path for path, _ in here.server.got] == [report(number) for number in range(20)]
    assert here.spool.fault is None
    assert list(here.directory.iterdir()) == []


def test_a_server_that_is_away_is_asked_more_and_more_seldom(here: Surroundings) -> None:
    here.stay_away(30 * MINUTE_S)

    here.spool.put(report(1), {})
    here.replay()

    assert here.time.pauses[0] < 1
    assert max(here.time.pauses) <= 30
    assert len(here.time.pauses) < 150
    # No two pilots keep step.
    assert len(set(here.time.pauses)) > 50


def test_a_report_goes_behind_those_that_wait(here: Surroundings) -> None:
    here.stay_away(1)
    here.spool.put(report(1), {})
    here.back_at = 0.0

    here.spool.put(report(2), {})
    assert here.server.got == []
    here.replay()

    assert [path for path, _ in here.server.got] == [report(1), report(2)]


def test_files_are_kept_with_their_report_and_sent_before_it(
    here: Surroundings, tmp_path: Path
) -> None:
    source = tmp_path / "result"
    source.write_bytes(b"42")
    here.stay_away(MINUTE_S)

    here.spool.put(report(1), {}, uploads=[Upload("jobs/1/1/files/output/r", source, "output r")])
    assert not source.exists()
    here.replay()

    assert here.server.got == [("jobs/1/1/files/output/r", b"42"), (report(1), {})]


@pytest.mark.parametrize("away_s", [0, MINUTE_S], ids=["at once", "later"])
@pytest.mark.parametrize("refusal", [Rejected(413, "too large"), NodeFault("unreadable")])
def test_what_the_server_does_not_take_of_the_files_is_told_in_the_report(
    here: Surroundings, tmp_path: Path, away_s: float, refusal: Exception
) -> None:
    (tmp_path / "result").write_bytes(b"42")
    (tmp_path / "stdout").write_bytes(b"words")
    here.server.answers = {"result": refusal, "stdout": refusal}
    here.stay_away(away_s)

    here.spool.put(
        report(1),
        {"reason": "wall-clock limit", "missing_outputs": ["a"]},
        uploads=[
            Upload("result", tmp_path / "result", "output b", output="b"),
            Upload("stdout", tmp_path / "stdout", "stdout"),
        ],
    )
    here.replay()

    [(_, body)] = here.server.got
    assert body["missing_outputs"] == ["a", "b"]
    first, *others = body["reason"].split("; ")
    assert first == "wall-clock limit"
    assert [(each.split(" was ")[0], each.endswith(str(refusal))) for each in others] == [
        ("output b", True),
        ("stdout", True),
    ]


def test_an_attempt_that_somebody_else_has_by_now_is_dropped(here: Surroundings) -> None:
    here.server.answers = {report(1): Superseded(409, "given to another pilot")}
    here.stay_away(MINUTE_S)

    here.spool.put(report(1), {})
    here.spool.put(report(2), {})
    here.replay()

    assert [path for path, _ in here.server.got] == [report(2)]
    assert here.spool.fault is None


@pytest.mark.parametrize("refusal", [Rejected(400, "no"), BadAnswer("what?")])
def test_a_report_that_the_server_refuses_is_a_fault_and_the_others_go_on(
    here: Surroundings, refusal: Exception
) -> None:
    here.server.answers = {report(1): refusal}
    here.stay_away(MINUTE_S)

    here.spool.put(report(1), {})
    here.spool.put(report(2), {})
    here.replay()

    assert [path for path, _ in here.server.got] == [report(2)]
    assert here.spool.fault is refusal


def test_what_the_server_says_at_once_is_for_the_caller(here: Surroundings) -> None:
    here.server.answers = {report(1): Superseded(409, "given to another pilot")}

    with pytest.raises(Superseded):
        here.spool.put(report(1), {})


def test_patience_has_an_end(here: Surroundings) -> None:
    here.stay_away(3 * 60 * MINUTE_S)

    here.spool.put(report(1), {})
    here.replay()

    assert here.server.got == []
    assert isinstance(here.spool.fault, Unavailable)


def test_without_room_on_the_disk_the_caller_waits(here: Surroundings, tmp_path: Path) -> None:
    here.directory.write_bytes(b"a file where the folder should be")
    here.server.is_away = lambda: here.server.tries == 1

    here.spool.put(report(1), {})

    assert here.server.got == [(report(1), {})]


def test_files_that_find_no_room_are_sent_from_where_they_were(
    here: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.server.is_away = lambda: here.server.tries == 1
    uploads = []
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        uploads.append(Upload(name, tmp_path / name, name))
    replace = os.replace

    def without_room_for_b(source: Path, target: Path) -> None:
        if source.name == "b":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", without_room_for_b)

    here.spool.put(report(1), {}, uploads=uploads)

    assert here.server.got == [("a", b"a"), ("b", b"b"), (report(1), {})]
    assert not list(here.directory.iterdir())


def test_a_heartbeat_that_arrives_ends_the_pause(tmp_path: Path) -> None:
    is_away = [True]
    server = Server(lambda: is_away[0])
    spool = ReportSpool(tmp_path / "spool", client=server, control=Control())
    spool.put(report(1), {})
    spool.start()
    wait_until(lambda: server.tries > 6, "the pauses have grown to seconds")

    is_away[0] = False
    spool.retry_now()

    wait_until(lambda: server.got, "it is sent", limit_s=2)
    spool.stop()


def test_a_pilot_that_has_to_go_does_not_wait_for_long(here: Surroundings) -> None:
    control = Control()
    spool = ReportSpool(here.directory, client=Server(lambda: True), control=control)
    spool.put(report(1), {})
    spool.start()

    control.terminate()

    assert not spool.flush() or spool.fault
    spool.stop()


UNABLE = Unavailable("500: Internal Server Error", is_answered=True)


def ends_of(number: int, refusal: Exception) -> Callable[[str, Any], Exception | None]:
    """What refuses how an attempt ended, and nothing else."""
    return lambda path, content: (
        refusal if path == report(number) and content["event"] == "ended" else None
    )


def test_a_report_that_the_server_cannot_take_holds_up_no_other(here: Surroundings) -> None:
    here.server.refuses = ends_of(1, UNABLE)

    kept = here.spool.put(report(1), {"event": "ended"})
    others = [here.spool.put(report(number), {"event": "ended"}) for number in (2, 3)]

    assert kept is None
    assert others == [{}, {}]
    assert here.spool.attempts() == [(1, 1)]


def test_after_an_outage_others_arrive_before_one_that_the_server_cannot_take(
    here: Surroundings,
) -> None:
    here.stay_away(MINUTE_S)
    able_at = here.time.now + 20 * MINUTE_S
    unable = ends_of(1, UNABLE)
    here.server.refuses = lambda *sent: unable(*sent) if here.time.now < able_at else None

    here.spool.put(report(1), {"event": "started"})
    here.spool.put(report(1), {"event": "ended"})
    here.spool.put(report(2), {"event": "ended"})
    here.spool.put(report(3), {"event": "ended"})
    here.replay()

    assert [(path, body["event"]) for path, body in here.server.got] == [
        (report(1), "started"),
        (report(2), "ended"),
        (report(3), "ended"),
        (report(1), "ended"),
    ]
    assert here.spool.fault is None
    assert list(here.directory.iterdir()) == []


def test_files_that_have_arrived_are_not_sent_with_every_try(
    here: Surroundings, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    able_at = here.time.now + MINUTE_S
    here.server.refuses = lambda path, _: (
        UNABLE if path in ("b", report(1)) and here.time.now < able_at else None
    )

    here.spool.put(
        report(1),
        {"event": "ended"},
        uploads=[Upload(name, tmp_path / name, name) for name in ("a", "b")],
    )
    here.replay()

    assert here.server.got == [("a", b"a"), ("b", b"b"), (report(1), {"event": "ended"})]


@pytest.mark.parametrize("away_s", [0, MINUTE_S], ids=["at once", "later"])
def test_a_job_whose_end_the_server_refuses_is_given_back_and_the_pilot_goes_on(
    here: Surroundings, away_s: float
) -> None:
    here.server.refuses = ends_of(1, Rejected(413, "too large"))
    here.stay_away(away_s)

    here.spool.put(report(1), {"event": "ended"})
    here.replay()

    [(path, body)] = here.server.got
    assert (path, body["event"]) == (report(1), "not_run")
    assert "too large" in body["reason"]
    assert here.spool.fault is None


def test_a_job_whose_end_the_server_can_never_take_is_given_back_when_patience_ends(
    here: Surroundings,
) -> None:
    here.server.refuses = ends_of(1, UNABLE)

    here.spool.put(report(1), {"event": "ended"})
    here.replay()

    [(path, body)] = here.server.got
    assert (path, body["event"]) == (report(1), "not_run")
    assert here.spool.fault is None
    assert here.spool.attempts() == []
    assert sum(here.time.pauses) > 100 * MINUTE_S


def test_where_the_server_takes_nothing_of_an_attempt_the_pilot_ends(here: Surroundings) -> None:
    here.server.refuses = lambda path, _: UNABLE if path == report(1) else None

    here.spool.put(report(1), {"event": "ended"})
    here.replay()

    assert here.server.got == []
    assert here.spool.fault is UNABLE


@pytest.mark.parametrize("letter", ["n", "é", "\U0001f600"])
def test_names_in_a_report_take_less_than_the_server_reads(letter: str) -> None:
    names = [f"{number:03d}{letter * 252}" for number in range(200)]

    told = bounded_names(names)

    assert told == names[: len(told)]
    assert len(json.dumps(told)) < MAX_BODY_BYTES / 2
