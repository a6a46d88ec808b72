from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.agent.faulty_proxy import LOSE_ANSWER, PASS
from tests.wms.pilots.agent.test_agent import let_go, until_told
from wms.jobs.models import Job, JobEvent
from wms.pilots.agent.files.job_attributes import MOST_NAMES, ReportedAttributes, read_attributes
from wms.pilots.agent.files.job_directories import JobDirectories, attempt_directory

ATTEMPT = (7, 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    directories = JobDirectories(attempt_directory(tmp_path, ATTEMPT))
    directories.make()
    return directories.attributes_file


def test_numbers_and_quoted_texts_are_told_and_other_lines_passed_over(file: Path) -> None:
    file.write_text(
        'ProvisionerState = 2\nNode="wn \\"1\\" \\\\ ä"\r\n  Free = -3  \n'
        'Rate = 2.5\nNo text = 1\n= 4\nOpen = "x\nBell = "\a"\nHuge = 12345678901234567890\n'
        "Free = 5"
    )

    assert read_attributes(file) == {"ProvisionerState": 2, "Node": 'wn "1" \\ ä', "Free": 5}


def test_of_too_many_names_the_first_are_told(file: Path) -> None:
    file.write_text("".join(f"N{number} = {number}\n" for number in range(MOST_NAMES + 5)))

    assert list(read_attributes(file)) == [f"N{number}" for number in range(MOST_NAMES)]


@pytest.mark.parametrize(
    "line", [f"{'N' * 65} = 1", f'Text = "{"x" * 1001}"', "A = 1\nB\0 = 1\n\xff".encode("latin-1")]
)
def test_what_the_server_would_refuse_is_not_told(file: Path, line: str | bytes) -> None:
    file.write_bytes(line if isinstance(line, bytes) else line.encode())

    assert read_attributes(file) == {}


def test_only_a_small_plain_file_is_read(file: Path, tmp_path: Path) -> None:
    assert read_attributes(file) == {}
    file.write_text("A = 1\n" + "\n" * 4096)
    assert read_attributes(file) == {}
    file.unlink()
    (tmp_path / "other").write_text("A = 1\n")
    file.symlink_to(tmp_path / "other")
    assert read_attributes(file) == {}
    file.unlink()
    os.mkfifo(file)
    assert read_attributes(file) == {}
    file.unlink()
    file.mkdir()
    assert read_attributes(file) == {}


def test_attributes_are_told_once_and_again_when_they_change(file: Path, tmp_path: Path) -> None:
    told = ReportedAttributes(tmp_path)
    file.write_text("A = 1\n")

    first = told.entries([ATTEMPT])
    # Its answer is lost.
    again = told.entries([ATTEMPT])
    told.accepted(again)
    same = told.entries([ATTEMPT])
    told.accepted(same)
    file.write_text("A = 2\n")
    changed = told.entries([ATTEMPT])

    assert first == again == [{"job": 7, "attempt": 1, "attributes": {"A": 1}}]
    assert same == [{"job": 7, "attempt": 1}]
    assert changed == [{"job": 7, "attempt": 1, "attributes": {"A": 2}}]


def test_what_finds_no_room_in_a_beat_is_told_with_the_next(tmp_path: Path) -> None:
    attempts = [(job, 1) for job in range(1, 61)]
    for attempt in attempts:
        directories = JobDirectories(attempt_directory(tmp_path, attempt))
        directories.make()
        text = "".join(f'T{number} = "{"x" * 900}"\n' for number in range(4))
        directories.attributes_file.write_text(text)
    told = ReportedAttributes(tmp_path)

    heartbeats = []
    for _ in range(4):
        entries = told.entries(attempts)
        told.accepted(entries)
        heartbeats.append([each["job"] for each in entries if "attributes" in each])

    assert [len(beat) for beat in heartbeats] == [27, 27, 6, 0]
    assert [job for beat in heartbeats for job in beat] == [job for job, _ in attempts]


def test_a_payload_tells_the_attributes_of_its_job_while_it_runs(world: World) -> None:
    ready = 'echo "ProvisionerState = 2" >"$PILOTAGE_JOB_ATTRIBUTES"\n'
    job = world.submit(until_told(world).replace("\n", f"\n{ready}", 1))
    # There are beats in which the portal may hear of it without the pilot knowing.
    world.server.fault = lambda method, path: (
        LOSE_ANSWER
        if path.endswith("/heartbeat") and world.server.count(method, "/heartbeat") % 2
        else PASS
    )

    agent = world.start()
    is_told = Job.objects.filter(pk=job.pk, own__attributes__ProvisionerState=2).exists
    wait_until(is_told, "the portal knows that it is ready")
    let_go(world)

    assert agent.wait() == 0
    assert world.wait_for_state(job, "done").attributes["ProvisionerState"] == 2
    event = JobEvent.objects.get(job=job, event="update")
    assert event.from_state == event.to_state
    assert event.facts == {"ProvisionerState": 2}
