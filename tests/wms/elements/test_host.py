"""Element of this host: particulars of pilots that are its processes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.wms.elements.contract import (
    FOREVER,
    SLOTS,
    ElementContract,
    submit,
    wait_for,
    wait_for_log,
)
from wms.elements.host import HostElement
from wms.elements.host_cleanup import end_host_pilots
from wms.elements.protocol import BatchState, Capacity, Element, Refused, Unreachable
from wms.elements.runner import Completed, LocalRunner, clean_environment

pytestmark = pytest.mark.process


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "site" / "queue"
    end_host_pilots(tmp_path, grace_s=1)


@pytest.fixture
def element(base: Path) -> HostElement:
    return HostElement(base, slots=2, cancel_grace_s=1)


class TestHost(ElementContract):
    @pytest.fixture
    def make_element(self, tmp_path: Path) -> Iterator[Callable[[], Element]]:
        base = tmp_path / "pilots"
        yield lambda: HostElement(base, slots=SLOTS, cancel_grace_s=1)
        end_host_pilots(base, grace_s=1)


def wait_until(condition: Callable[[], bool], limit_s: float = 20.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_more_pilots_than_free_slots_are_refused_and_none_is_started(
    element: HostElement,
) -> None:
    submit(element, FOREVER, name="first")

    with pytest.raises(Refused, match="1 free"):
        submit(element, FOREVER, count=2, name="second")

    assert element.adopt("second") == []


def test_an_ended_pilot_frees_its_slot(element: HostElement) -> None:
    for pilot in submit(element, "true", count=2, name="first"):
        wait_for(element, pilot, BatchState.DONE)

    assert element.capacity().free == 2


def test_a_running_pilot_takes_a_slot(element: HostElement) -> None:
    [pilot] = submit(element, FOREVER)
    wait_for(element, pilot, BatchState.RUNNING)

    assert element.capacity() == Capacity(
        is_up=True, total=2, free=1, queued=0, running=1, can_queue=False
    )


def test_a_name_is_good_for_one_batch_only(element: HostElement) -> None:
    submit(element, "true", name="once")

    with pytest.raises(Refused, match="once"):
        submit(element, "true", name="once")


def test_a_pilot_killed_from_outside_shows_the_code_of_the_signal(
    element: HostElement, base: Path
) -> None:
    [pilot] = submit(element, "echo $$ begun\nexec sleep 1000")
    pid = int(wait_for_log(element, pilot, "begun").split()[0])

    os.kill(pid, signal.SIGKILL)

    assert wait_for(element, pilot, BatchState.FAILED).exit_code == 137


def test_a_pilot_whose_whole_session_was_killed_has_failed(
    element: HostElement, base: Path
) -> None:
    [pilot] = submit(element, FOREVER)
    wait_for_log(element, pilot, "begun")

    os.killpg(int((base / pilot / "pid").read_text().split()[0]), signal.SIGKILL)

    found = wait_for(element, pilot, BatchState.FAILED)
    assert "exit code" in found.reason
    assert found.exit_code is None


def test_a_process_number_that_now_belongs_to_somebody_else_is_not_the_pilot(
    element: HostElement, base: Path
) -> None:
    [pilot] = submit(element, FOREVER)
    wait_for_log(element, pilot, "begun")
    leader = base / pilot / "pid"
    pid, start = leader.read_text().split()

    leader.write_text(f"{os.getpid()} {start}")
    element.cancel([pilot])

    assert element.status([pilot])[pilot].state == BatchState.CANCELLED
    leader.write_text(f"{pid} {start}")


def test_a_pilot_that_never_wrote_its_pid_is_queued_first_and_failed_later(
    element: HostElement, base: Path
) -> None:
    directory = base / "crashed.0"
    directory.mkdir(parents=True)

    (directory / "born").write_text(f"{int(time.time())}\n")
    fresh = element.status(["crashed.0"])["crashed.0"]
    (directory / "born").write_text(f"{int(time.time()) - 3600}\n")
    old = element.status(["crashed.0"])["crashed.0"]

    assert (fresh.state, fresh.reason) == (BatchState.QUEUED, "starting")
    assert (old.state, old.reason) == (BatchState.FAILED, "never started")


FOREIGN_PID = f"{2**22 + 1} 1\n"


@pytest.mark.parametrize(
    ("files", "state", "reason"),
    [
        ({"born": ""}, BatchState.MISSING, "its record cannot be read"),
        ({"born": "\0\0\0"}, BatchState.MISSING, "its record cannot be read"),
        ({"born": "yesterday"}, BatchState.MISSING, "its record cannot be read"),
        ({"born": "NOW\n", "pid": ""}, BatchState.QUEUED, "starting"),
        ({"born": "NOW\n", "rc": ""}, BatchState.QUEUED, "starting"),
        (
            {"born": "NOW\n", "pid": FOREIGN_PID, "rc": ""},
            BatchState.FAILED,
            "without an exit code",
        ),
        (
            {"born": "NOW\n", "pid": FOREIGN_PID, "rc": "x"},
            BatchState.FAILED,
            "without an exit code",
        ),
        ({"born": "NOW\n", "pid": FOREIGN_PID, "rc": "0 1"}, BatchState.FAILED, "cannot be read"),
        ({"born": "", "pid": FOREIGN_PID, "rc": ""}, BatchState.FAILED, "without an exit code"),
        ({"born": "", "pid": FOREIGN_PID, "rc": "0\n"}, BatchState.DONE, ""),
        ({"born": "", "pid": "", "rc": "3\n"}, BatchState.FAILED, "exit code 3"),
        ({"born": "", "cancel": "", "rc": ""}, BatchState.MISSING, "its record cannot be read"),
    ],
)
def test_what_a_full_disk_left_of_a_record_is_told_and_hides_no_other_pilot(
    element: HostElement, base: Path, files: dict[str, str], state: BatchState, reason: str
) -> None:
    [healthy] = submit(element, FOREVER)
    wait_for(element, healthy, BatchState.RUNNING)
    (base / "damaged.0").mkdir()
    for name, content in files.items():
        content = content.replace("NOW", str(int(time.time())))
        (base / "damaged.0" / name).write_text(content)

    found = element.status(["damaged.0", healthy])

    assert (found["damaged.0"].state, found[healthy].state) == (state, BatchState.RUNNING)
    assert reason in found["damaged.0"].reason
    assert element.capacity().running == 1


def test_a_pilot_that_cannot_write_its_pid_is_not_started(base: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mv").write_text('#!/bin/sh\necho "$PPID" >leader\n[ "$1" != pid.new ]\n')
    (tools / "mv").chmod(0o700)
    path = f"{tools}:{clean_environment()['PATH']}"
    element = HostElement(base, slots=1, runner=LocalRunner({**clean_environment(), "PATH": path}))

    [pilot] = submit(element, "touch started")

    leader = base / pilot / "leader"
    wait_until(lambda: leader.exists() and leader.read_text().endswith("\n"))
    wait_until(lambda: not Path(f"/proc/{leader.read_text().strip()}/exe").exists())
    assert not (base / pilot / "started").exists()
    assert element.status([pilot])[pilot].state == BatchState.QUEUED


def test_files_of_a_pilot_are_for_this_account_only(element: HostElement, base: Path) -> None:
    [pilot] = submit(element, FOREVER)
    wait_for_log(element, pilot, "begun")

    modes = {stat.S_IMODE(path.stat().st_mode) for path in (base / pilot).iterdir()}

    assert stat.S_IMODE((base / pilot).stat().st_mode) == 0o700
    assert modes == {0o600}


_SUBMITTER = """
import sys, time
from pathlib import Path
from wms.elements.host import HostElement
resources = {"cores": 1, "memory_mb": 1, "gpus": 0, "minutes": 5}
element = HostElement(Path(sys.argv[1]), slots=2)
element.submit(1, sys.argv[2], name="first", **resources)
print("submitted", flush=True)
time.sleep(60)
"""


def test_a_pilot_outlives_the_process_that_started_it_and_its_session(
    element: HostElement, base: Path
) -> None:
    argv = [sys.executable, "-c", _SUBMITTER, str(base), FOREVER]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as submitter:
        assert submitter.stdout
        assert submitter.stdout.readline() == b"submitted\n"
        os.killpg(submitter.pid, signal.SIGKILL)

    wait_for_log(element, "first.0", "begun")
    assert element.status(["first.0"])["first.0"].state == BatchState.RUNNING


def test_a_pilot_inherits_no_descriptor(element: HostElement, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        [pilot] = submit(element, "ls -l /proc/$$/fd; echo over")

    log = wait_for_log(element, pilot, "over")

    assert "secret" not in log
    assert "pipe:" not in log


def test_all_pilots_under_a_directory_can_be_ended_at_once(base: Path, tmp_path: Path) -> None:
    polite = HostElement(base, slots=1)
    stubborn = HostElement(tmp_path / "site" / "other", slots=1)
    submit(polite, FOREVER, name="first")
    submit(stubborn, "trap '' TERM\n" + FOREVER, name="first")
    wait_for_log(polite, "first.0", "begun")
    wait_for_log(stubborn, "first.0", "begun")

    ended = end_host_pilots(tmp_path, grace_s=0.5)

    assert (ended.by_term, ended.by_kill) == (1, 1)
    assert polite.capacity().running == 0
    assert stubborn.capacity().running == 0


def test_ending_all_where_nothing_ever_ran_does_nothing(tmp_path: Path) -> None:
    ended = end_host_pilots(tmp_path / "nowhere")

    assert (ended.by_term, ended.by_kill) == (0, 0)


class Deaf:
    """A host that never answers."""

    def run(self, argv: object, *, stdin: str = "", timeout_s: float = 10.0) -> Completed:
        raise Unreachable("no route to host")


def test_a_host_that_does_not_answer_is_told_from_one_that_has_no_pilots(base: Path) -> None:
    element = HostElement(base, slots=1, runner=Deaf())

    with pytest.raises(Unreachable):
        element.status(["first.0"])


class Confused:
    """A host whose clock cannot be read, as without room for a new process."""

    def run(self, argv: object, *, stdin: str = "", timeout_s: float = 10.0) -> Completed:
        return Completed(0, " wn1\nfirst.0 0 0 0 1 0\n", "")


def test_an_answer_that_makes_no_sense_is_no_answer(base: Path) -> None:
    element = HostElement(base, slots=1, runner=Confused())

    with pytest.raises(Unreachable, match="wn1"):
        element.status(["first.0"])
