"""Usage of payloads, measured of real processes and files."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wms.pilots.agent.payload.test_execution import run
from wms.pilots.agent.files import sandbox
from wms.pilots.agent.files.disk_usage import DiskUsage, DiskUsageCounter, entries_below
from wms.pilots.agent.resources.cgroups import Cgroups, own_group
from wms.pilots.agent.resources.limits import Limits

PYTHON = sys.executable


def counted(folder: Path) -> DiskUsage:
    return DiskUsageCounter(lambda: entries_below([folder]), None).count(time.monotonic, 60.0)


@pytest.mark.process
def test_memory_that_processes_share_is_counted_once(tmp_path: Path) -> None:
    program = (
        "import mmap, os, time\n"
        "memory = mmap.mmap(-1, 60 * 2**20)\n"
        "memory.write(b'x' * len(memory))\n"
        "for _ in range(4):\n"
        "    if not os.fork():\n"
        # Page by page: a copy of all would be memory of its own.
        "        any(memory[at] == 0 for at in range(0, len(memory), 4096))\n"
        "        break\n"
        "time.sleep(2)\n"
    )

    outcome = run(tmp_path, f'exec {PYTHON} -c "$0"'.replace("$0", program))

    assert 60 <= outcome.max_rss_mb < 180


@pytest.mark.process
def test_memory_in_files_without_a_name_counts(tmp_path: Path) -> None:
    program = (
        "import os, time\n"
        "file = os.memfd_create('hidden')\n"
        "for _ in range(80): os.write(file, bytes(2**20))\n"
        "time.sleep(60)\n"
    )

    outcome = run(tmp_path, f'exec {PYTHON} -c "{program}"', memory_mb=70, grace_s=0.2)

    assert outcome.reason.startswith("memory")


@pytest.mark.process
def test_cpu_time_over_its_limit_ends_a_payload_with_its_children(tmp_path: Path) -> None:
    burn = f"{PYTHON} -c 'while True: pass'"

    outcome = run(tmp_path, f"{burn} & {burn} & wait", cpu_s=1, grace_s=0.2)

    assert outcome.reason.startswith("CPU time")
    assert outcome.usage.cpu_s >= 1


@pytest.mark.process
def test_what_is_printed_without_end_ends_a_payload(tmp_path: Path) -> None:
    outcome = run(tmp_path, "yes", output_mb=5, grace_s=0.2)

    assert outcome.reason.startswith("stdout and stderr")


@pytest.mark.process
def test_too_many_processes_end_a_payload(tmp_path: Path) -> None:
    script = "for n in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait"

    outcome = run(tmp_path, script, processes=5, grace_s=0.2)

    assert outcome.reason.startswith("processes")
    assert "9 of 5" in outcome.reason


@pytest.mark.process
def test_what_is_read_and_written_is_told(tmp_path: Path) -> None:
    outcome = run(tmp_path, "head -c 8000000 /dev/zero >file; sync file")

    assert outcome.written_mb > 7
    assert outcome.usage.disk_mb > 7
    assert set(outcome.usage_json()) == {
        *("wall_s", "cpu_s", "memory_mb", "disk_mb", "files", "processes", "read_mb", "written_mb"),
    }


def test_links_are_not_followed_when_files_are_counted(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "large").write_bytes(bytes(5 * 2**20))
    (tmp_path / "files/link").symlink_to(tmp_path / "large")
    (tmp_path / "files/circle").symlink_to(tmp_path / "files")
    (tmp_path / "files/small").write_bytes(b"x" * 2**20)

    assert 1.0 <= counted(tmp_path / "files").mb < 1.1


@pytest.mark.process
def test_files_that_have_no_name_any_more_count(tmp_path: Path) -> None:
    program = (
        "import os, time\n"
        "for name in 'abc':\n"
        "    held = os.open(name, os.O_CREAT | os.O_WRONLY)\n"
        "    os.unlink(name)\n"
        "    os.write(held, os.urandom(15 << 20))\n"
        "time.sleep(30)\n"
    )

    outcome = run(tmp_path, f'exec {sys.executable} -c "{program}"', disk_mb=20)

    assert outcome.reason.startswith("disk space")


def test_very_many_empty_files_count(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / str(number)).touch()

    assert counted(tmp_path).mb > 1.4


@pytest.mark.process
def test_files_over_their_limit_end_a_payload(tmp_path: Path) -> None:
    script = "n=0; while :; do n=$((n + 1)); : >f$n; done"

    outcome = run(tmp_path, script, files=200, grace_s=0.2)

    assert "201 of 200" in outcome.reason
    assert outcome.stopped_by == "watchdog"
    assert outcome.usage_json()["files"] >= 201


@pytest.mark.process
def test_folders_nested_deeper_than_a_path_end_a_payload(tmp_path: Path) -> None:
    program = (
        "import os, time\n"
        "for _ in range(3000):\n"
        "    os.mkdir('deep'); os.chdir('deep')\n"
        "time.sleep(60)\n"
    )

    outcome = run(tmp_path, f'exec {PYTHON} -c "{program}"', grace_s=0.2)

    # Who removes it else cannot follow either.
    sandbox.remove(tmp_path / "sandbox")
    assert outcome.stopped_by == "watchdog"
    assert outcome.reason.startswith("folders")


def test_a_look_counts_no_longer_than_its_time_and_the_next_one_goes_on(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / str(number)).touch()
    now = itertools.count()
    survey = DiskUsageCounter(lambda: entries_below([tmp_path]), None)

    seen = [survey.count(lambda: next(now), 0.5)]
    while not survey.is_whole:
        seen.append(survey.count(lambda: next(now), 0.5))

    assert [each.files for each in seen] == [256, 512, 768, 1000]


def test_a_count_stops_beyond_the_limit_however_much_there_is() -> None:
    endless = itertools.repeat(1)

    found = DiskUsageCounter(lambda: endless, 50).count(time.monotonic, 60.0)

    assert found.files == 51


def test_an_unfinished_count_tells_no_less_than_the_last_whole_one() -> None:
    counts = iter([[2**20] * 600, [2**20] * 600])
    now = itertools.count()
    survey = DiskUsageCounter(lambda: iter(next(counts)), None)
    assert survey.count(lambda: 0.0).files == 600

    found = survey.count(lambda: next(now), 0.5)

    assert (found.files, found.mb) == (600, 600.0)


@pytest.fixture
def delegated(tmp_path: Path) -> Path:
    """A folder that looks like a control group; the kernel's part is left out."""
    base = tmp_path / "given"
    base.mkdir()
    (base / "cgroup.procs").write_text("")
    (base / "cgroup.controllers").write_text("cpu memory pids\n")
    (base / "cgroup.subtree_control").write_text("")
    return base


def test_payloads_get_groups_with_their_limits_where_groups_were_given(delegated: Path) -> None:
    cgroups = Cgroups(delegated)
    cgroups.set_up()

    with cgroups.group("job-1-1", Limits(memory_mb=100, processes=50.5)) as group:
        there = Path(group.path)
        assert (there / "memory.max").read_text() == str(100 * 2**20)
        assert (there / "pids.max").read_text() == "50"
        assert (there / "memory.oom.group").read_text() == "1"
        assert group.why_killed() == ""
        (there / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
        assert "100 MB" in group.why_killed()

    assert (delegated / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_without_a_group_of_its_own_a_pilot_makes_none(tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path / "not there")
    cgroups.set_up()

    with cgroups.group("job-1-1", Limits(memory_mb=100)) as group:
        assert group.path == ""
    assert not list(tmp_path.iterdir())


@pytest.fixture
def given() -> Iterator[Path]:
    """A control group of the kernel's, as a batch system gives one."""
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        if os.access(root / "cgroup.procs", os.W_OK):
            break
    else:
        pytest.skip("this account may not make control groups of version 2")
    base = root / f"pilotage-test-{os.getpid()}"
    base.mkdir()
    yield base
    for each in (base / "pilot", base):
        if each.exists():
            each.rmdir()


@pytest.mark.process
def test_a_payload_and_all_that_it_starts_are_in_its_control_group(
    given: Path, tmp_path: Path
) -> None:
    cgroups = Cgroups(given)
    cgroups.set_up()

    with cgroups.group("job-1-1", Limits()) as group:
        outcome = run(
            tmp_path, "setsid sh -c 'grep 0:: /proc/self/cgroup'; sleep 1000 &", cgroup=group.path
        )

    assert outcome.exit_code == 0
    assert (tmp_path / "stdout").read_text().strip().endswith(f"{given.name}/job-1-1")
    assert not (given / "job-1-1").exists()


def test_the_top_of_the_tree_is_never_taken() -> None:
    group = own_group()

    assert group is None or group.name not in ("", "cgroup", "unified")
