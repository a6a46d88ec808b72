"""Execution of payloads as real processes: ends, limits, signals, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from wms.pilots.agent.control import Control, Waker
from wms.pilots.agent.fence.base import Fence
from wms.pilots.agent.files.job_directories import JobDirectories
from wms.pilots.agent.payload.execution import Outcome, run_payload
from wms.pilots.agent.payload.meter import Meter
from wms.pilots.agent.resources.limits import Limits

pytestmark = pytest.mark.process

ATTEMPT = (7, 1)


def run(
    directory: Path,
    script: str,
    *,
    control: Control | None = None,
    waker: Waker | None = None,
    cgroup: str = "",
    **limits: float | None,
) -> Outcome:
    """Run a script without a fence, in the folder `sandbox` of the directory."""
    control = control or Control()
    own = control.add_attempt(ATTEMPT)
    bounds = Limits(**{"wall_s": 60.0, **limits})
    directories = JobDirectories(directory)
    directories.make()
    enclosure = Fence().enclose(directories)
    return run_payload(
        enclosure.plan(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, bounds),
        stdout=directory / "stdout",
        stderr=directory / "stderr",
        limits=bounds,
        meter=Meter(enclosure, [directory / "stdout", directory / "stderr"], bounds),
        attempt=ATTEMPT,
        control=control,
        waker=waker or own,
        cgroup=cgroup,
    )


def wait_for_file(path: Path, limit_s: float = 20.0) -> str:
    deadline = time.monotonic() + limit_s
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)
    return path.read_text()


def wait_until_gone(pid: int, limit_s: float = 20.0) -> None:
    deadline = time.monotonic() + limit_s
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_output_exit_code_and_use_of_resources_are_told(tmp_path: Path) -> None:
    outcome = run(tmp_path, "echo out; echo err >&2; exit 3")

    assert (outcome.exit_code, outcome.signal, outcome.reason) == (3, None, "")
    assert (tmp_path / "stdout").read_text() == "out\n"
    assert (tmp_path / "stderr").read_text() == "err\n"
    assert outcome.usage.wall_s > 0
    assert outcome.max_rss_mb > 0


def test_cpu_time_includes_that_of_children(tmp_path: Path) -> None:
    burn = f"{sys.executable} -c 'while __import__(\"time\").process_time() < 0.2: pass'"

    outcome = run(tmp_path, f"{burn}; true")

    assert outcome.usage.cpu_s >= 0.2


def test_a_payload_that_dies_by_a_signal_shows_it(tmp_path: Path) -> None:
    outcome = run(tmp_path, "kill -s SEGV $$")

    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGSEGV)


def test_the_wall_clock_limit_ends_a_payload(tmp_path: Path) -> None:
    outcome = run(tmp_path, "sleep 60", wall_s=0.3)

    assert outcome.reason.startswith("wall-clock limit")
    assert outcome.stopped_by == "watchdog"
    assert outcome.signal == signal.SIGTERM
    assert outcome.usage.wall_s < 30


def test_a_payload_may_end_in_good_order_after_the_polite_signal(tmp_path: Path) -> None:
    script = "trap 'echo saved; exit 5' TERM; sleep 60 & wait"

    outcome = run(tmp_path, script, wall_s=0.5)

    assert outcome.exit_code == 5
    assert (tmp_path / "stdout").read_text() == "saved\n"
    assert outcome.reason


def test_an_end_is_not_believed_while_a_signal_to_the_pilot_waits_for_its_handler(
    tmp_path: Path,
) -> None:
    control = Control()

    def handle() -> None:
        control.preempt()
        control.note_handled()

    control.ring = handle

    outcome = run(tmp_path, "exit 0", control=control)

    assert (outcome.exit_code, outcome.stopped_by) == (0, "preemption")


class LateSignal(Waker):
    """Waker of an attempt whose pilot gets its signal after the payload has ended."""

    def __init__(self, control: Control) -> None:
        super().__init__()
        self._control, self._has_ended = control, False

    def wake(self) -> None:
        """The payload has ended."""
        self._has_ended = True
        super().wake()

    def wait(self, timeout_s: float | None) -> None:
        if self._has_ended:
            self._control.preempt()
        super().wait(timeout_s)


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_a_signal_that_reaches_the_supervisor_first_is_awaited_by_the_pilot(
    tmp_path: Path, name: str
) -> None:
    control = Control()

    outcome = run(
        tmp_path, f"kill -s {name} $PPID; exit 0", control=control, waker=LateSignal(control)
    )

    assert (outcome.exit_code, outcome.stopped_by) == (0, "preemption")


def test_a_payload_that_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; while :; do sleep 0.05; done"

    outcome = run(tmp_path, script, wall_s=0.3, grace_s=0.3)

    assert outcome.signal == signal.SIGKILL


def test_a_kill_command_ends_this_attempt(tmp_path: Path) -> None:
    control = Control()
    threading.Timer(0.3, control.kill, [ATTEMPT]).start()

    outcome = run(tmp_path, "sleep 60", control=control)

    assert (outcome.reason, outcome.stopped_by) == ("killed on request", "server")


def test_a_kill_command_for_another_attempt_is_not_for_this_one(tmp_path: Path) -> None:
    control = Control()
    control.kill((7, 2))

    assert run(tmp_path, "true", control=control).exit_code == 0


def test_what_a_payload_leaves_running_is_gone_when_it_ends(tmp_path: Path) -> None:
    run(tmp_path, "sleep 1000 & echo $! >child; exit 0")

    assert not is_alive(int((tmp_path / "sandbox/child").read_text()))


def test_the_pilots_variables_and_descriptors_do_not_reach_the_payload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOT_TOKEN", "hush")
    with (tmp_path / "token").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        run(tmp_path, "env; ls -l /proc/$$/fd")

    seen = (tmp_path / "stdout").read_text()
    assert "hush" not in seen
    assert "token" not in seen
    assert "pipe:" not in seen


@pytest.mark.parametrize("murderer", ["somebody", "the payload at once"])
def test_nothing_of_the_payload_survives_the_pilots_sudden_death(
    tmp_path: Path, murderer: str
) -> None:
    is_payload = murderer != "somebody"
    script = f"sleep 1000 & echo $$ $! >pids; {'kill -s KILL $PPID;' if is_payload else ''} wait"
    program = (
        "from pathlib import Path\n"
        "from tests.wms.pilots.agent.payload.test_execution import run\n"
        f"run(Path('.').resolve(), {script!r})\n"
    )
    pilot = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[5])},
    )
    leader, child = (int(pid) for pid in wait_for_file(tmp_path / "sandbox/pids").split())

    if not is_payload:
        pilot.kill()
    pilot.wait()

    wait_until_gone(leader)
    wait_until_gone(child)


def test_payloads_go_on_and_begin_though_what_starts_their_supervisors_was_killed(
    tmp_path: Path,
) -> None:
    first, then = tmp_path / "first", tmp_path / "then"
    first.mkdir()
    then.mkdir()
    script = (
        f"echo $PPID >{first}/new; mv {first}/new {first}/supervisor; while [ ! -e {first}/go ]; "
    )
    outcomes: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(run(first, f"{script} do sleep 0.02; done; exit 5"))
    )
    thread.start()

    os.kill(parent_of(int(wait_for_file(first / "supervisor"))), signal.SIGKILL)
    outcomes.append(run(then, "exit 6"))
    (first / "go").touch()
    thread.join()

    assert [each.exit_code for each in outcomes] == [6, 5]


def test_what_a_batch_system_sends_to_all_that_runs_in_a_slot_ends_no_supervisor(
    tmp_path: Path,
) -> None:
    supervisors = "$PPID $(cut -d ' ' -f 4 /proc/$PPID/stat)"

    outcome = run(
        tmp_path, f"for each in TERM INT HUP USR1; do kill -s $each {supervisors}; done; exit 5"
    )

    assert (outcome.exit_code, outcome.reason) == (5, "")


def test_a_payload_gets_no_signal_that_is_blocked_or_ignored(tmp_path: Path) -> None:
    program = (
        "import signal\n"
        "from pathlib import Path\n"
        "from tests.wms.pilots.agent.payload.test_execution import run\n"
        "signal.signal(signal.SIGQUIT, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "run(Path('.').resolve(), 'grep -E \"Sig(Blk|Ign)\" /proc/self/status')\n"
    )

    subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[5])},
        check=True,
    )

    seen = [int(line.split()[1], 16) for line in (tmp_path / "stdout").read_text().splitlines()]
    # Signals 32 and 33 are the C library's own: no program can set them.
    of_the_library = 0b11 << 31
    assert [each & ~of_the_library for each in seen] == [0, 0]


def test_words_that_no_program_can_be_given_are_the_jobs_own_fault(tmp_path: Path) -> None:
    outcome = run(tmp_path, "true \0")

    assert outcome.exit_code is None
    assert "null byte" in outcome.reason


def test_without_a_thread_to_watch_it_nothing_of_a_payload_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        wait_for_file(tmp_path / "sandbox/pid")
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)

    with pytest.raises(RuntimeError):
        run(tmp_path, "trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done")

    assert not is_alive(int((tmp_path / "sandbox/pid").read_text()))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
