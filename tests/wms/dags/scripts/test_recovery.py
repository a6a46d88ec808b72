"""Recovery of the script service: cancelled runs, kills, two services at once, database away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import OperationalError, connection
from django.utils import timezone

from tests.wms.dags.scripts.conftest import done, files_of, put, said
from wms.core.loops import wake
from wms.dags.models import ScriptRun
from wms.dags.scripts import run_leases, script_service
from wms.dags.scripts.slots import NoSlot, acquired_slot, make_folder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("works")]

SERVICE = (
    "import django; django.setup();"
    "from wms.dags.scripts.script_service import run_granted; run_granted()"
)


def wait_for(what: str, condition: Callable[[], Any], *, timeout_s: float = 30) -> Any:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout_s} s: {what}")


def as_it_is(run: ScriptRun) -> ScriptRun:
    return ScriptRun.objects.get(pk=run.pk)


def is_started(run: ScriptRun) -> bool:
    return as_it_is(run).state == "running"


def is_asleep(mark: str) -> bool:
    words = (f"sleep\0{mark}\0").encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == words:
                    return True
            except OSError:
                continue
    return False


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    def closed_in_the_end() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=closed_in_the_end)
    thread.start()
    return thread


@contextmanager
def process(tmp_path: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of the portal on the database, the files and the settings of the test."""
    database = connection.settings_dict
    url = "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**database)
    scripts = django_settings.PILOTAGE["SCRIPTS"]
    environment = os.environ | {
        "DATABASE_URL": url,
        "PILOTAGE_VAR": str(tmp_path),
        "PILOTAGE_SCRIPTS_DIR": scripts["DIR"],
        "PILOTAGE_SCRIPTS_FENCES": ",".join(scripts["FENCES"]),
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }
    with (tmp_path / "service.log").open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, *command], env=environment, cwd=django_settings.BASE_DIR,
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield child
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def test_a_cancelled_script_is_stopped_within_seconds_and_leaves_nothing(ask, dag):
    mark = f"5{os.getpid()}"
    run = ask(f"echo part >part; sleep {mark}")
    thread = in_thread(script_service.run_granted)
    wait_for("the script runs", lambda: is_asleep(mark))

    run_leases.cancel_runs(dag.pk, reason="the DAG was removed", now=timezone.now())
    thread.join(timeout=15)

    assert not thread.is_alive()
    assert not is_asleep(mark)
    assert as_it_is(run).exit_code == -1002
    assert files_of(dag) == {}
    assert said(done(ask("ls part 2>&1"))).startswith("ls: ")


def test_a_killed_service_takes_its_script_along_and_nobody_runs_it_again(ask, dag, tmp_path):
    mark = f"6{os.getpid()}"
    run = ask(f"echo ran >>count; sleep {mark}; echo more >>count")
    with process(tmp_path, "-c", SERVICE) as child:
        wait_for("the script runs", lambda: is_asleep(mark))

        child.kill()
        child.wait()

        wait_for("the script is gone", lambda: not is_asleep(mark))
    assert is_started(run)
    assert script_service.run_granted() == 0

    run_leases.end_lost_runs(timezone.now() + run_leases.LEASE + timedelta(seconds=1))

    assert as_it_is(run).exit_code == -1003
    assert files_of(dag) == {}
    assert said(done(ask("ls count 2>&1"))).startswith("ls: ")


def test_two_services_share_the_runs_and_run_each_once(ask, dag):
    runs = [ask(f"echo {number} >>log{number}; sleep 0.3") for number in range(8)]

    threads = [in_thread(script_service.run_granted) for _ in range(2)]
    for thread in threads:
        thread.join(timeout=60)

    assert {as_it_is(run).exit_code for run in runs} == {0}
    assert files_of(dag) == {f"log{number}": f"{number}\n" for number in range(8)}


def test_scripts_that_run_at_once_add_to_one_file(ask, dag):
    put(dag, "log", "begin\n")
    for number in range(4):
        ask(f"echo {number} >>log; sleep 0.5")

    threads = [in_thread(script_service.run_granted) for _ in range(4)]
    for thread in threads:
        thread.join(timeout=60)

    assert sorted(files_of(dag)["log"].split()) == ["0", "1", "2", "3", "begin"]


def test_a_database_that_is_away_for_a_while_costs_no_end(ask, monkeypatch):
    end_run = run_leases.end_run
    failures = iter([OperationalError("gone"), OperationalError("gone")])

    def unreliable(*arguments: Any, **more: Any) -> bool:
        for failure in failures:
            raise failure
        return end_run(*arguments, **more)

    monkeypatch.setattr(run_leases, "end_run", unreliable)

    assert done(ask("exit 4")).exit_code == 4


def test_a_fault_of_our_own_ends_the_run_with_the_fault(ask, monkeypatch):
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(script_service, "run_process", broken)
    run = ask("echo")

    with pytest.raises(RuntimeError):
        script_service.run_granted()

    assert as_it_is(run).exit_code == 1
    assert as_it_is(run).failure == "RuntimeError: a bug"


def test_a_slot_is_free_again_when_its_process_is_gone(configure, folder):
    base = folder / "slots"
    with (
        acquired_slot(base, first_uid=60_600) as first,
        acquired_slot(base, first_uid=60_600) as second,
    ):
        assert (first.number, second.number) == (0, 1)
    with acquired_slot(base, first_uid=60_600) as again:
        assert again.number == 0


def test_a_folder_that_others_may_change_is_not_used(folder, ask, configure):
    open_to_all = folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    configure(DIR=str(open_to_all))

    with pytest.raises(NoSlot, match="no folder"):
        make_folder(open_to_all)
    run = done(ask("echo"))

    assert run.exit_code == 1
    assert str(open_to_all) in run.failure


@pytest.mark.slow
@pytest.mark.scenario
def test_workers_of_the_queue_run_what_is_granted(ask, dag, tmp_path):
    celery = ("-m", "celery", "--app", "portal", "worker", "--queues", "scripts")
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--concurrency", "2")
    runs = [ask(f"echo {number} >out{number}; sleep 0.2") for number in range(6)]
    with (
        process(tmp_path, *celery, *quiet, "--hostname", "one@test"),
        process(tmp_path, *celery, *quiet, "--hostname", "two@test"),
    ):

        def have_ended() -> bool:
            wake(run_leases.SCRIPTS_TASK)
            return all(as_it_is(run).state == "ended" for run in runs)

        wait_for("all have ended", have_ended, timeout_s=60)

    assert {as_it_is(run).exit_code for run in runs} == {0}
    assert files_of(dag) == {f"out{number}": f"{number}\n" for number in range(6)}
