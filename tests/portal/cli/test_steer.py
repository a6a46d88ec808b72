from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from portal.cli.state_directory import BASE
from tests import factories
from wms.core.models import AuditEntry
from wms.jobs.models import Attempt, Job
from wms.pilots.models import Pilot

pytestmark = pytest.mark.django_db


@pytest.fixture
def claimed() -> factories.Claimed:
    people = factories.people()
    worker = factories.pilot(factories.site().queues.get())
    factories.job(people.alice)
    made = factories.claim(worker)
    assert made is not None
    return made.start()


def test_a_job_is_killed_with_a_reason(claimed: factories.Claimed, capsys) -> None:
    call_command("steer", "kill-job", str(claimed.job.pk), "--user", "alice", "--reason", "wrong")

    assert Job.objects.get().state_reason == "wrong"
    entry = AuditEntry.objects.get(action="kill job")
    assert (entry.actor, entry.reason) == ("alice", "wrong")
    assert "killed" in capsys.readouterr().out


def test_newest_output_is_asked_for(claimed: factories.Claimed) -> None:
    call_command("steer", "peek-job", str(claimed.job.pk), "--user", "sam")

    assert Attempt.objects.get().peek_until is not None


@pytest.mark.parametrize("command", ["drain-pilot", "stop-after-job"])
def test_a_pilot_is_drained(claimed: factories.Claimed, command: str) -> None:
    which = str(claimed.pilot.uuid) if command == "drain-pilot" else str(claimed.job.pk)

    call_command("steer", command, which, "--user", "sam", "--reason", "new kernel")

    assert Pilot.objects.get().drain_reason == "new kernel"


def test_a_pilot_is_removed(claimed: factories.Claimed) -> None:
    uuid = str(claimed.pilot.uuid)

    call_command("steer", "remove-pilot", uuid, "--user", "sam", "--reason", "new kernel")

    assert Pilot.objects.get().state == "removed"
    assert Job.objects.get().state == "waiting"


def test_what_is_not_allowed_is_told(claimed: factories.Claimed) -> None:
    job = str(claimed.job.pk)

    with pytest.raises(CommandError, match=f"bob .* job {job}"):
        call_command("steer", "kill-job", job, "--user", "bob", "--reason", "mine")
    with pytest.raises(CommandError, match="nobody"):
        call_command("steer", "kill-job", job, "--user", "nobody", "--reason", "mine")


@pytest.mark.process
@pytest.mark.parametrize(
    ("settings_of", "told"),
    [
        ({}, "PILOTAGE_SECRET_KEY is not set"),
        (
            {"PILOTAGE_SECRET_KEY": "x", "DATABASE_URL": "postgres://u:p@127.0.0.1:1/x",
             "REDIS_URL": "redis://127.0.0.1:1/0"},
            "the portal's database does not answer",
        ),
    ],
)  # fmt: skip
def test_without_a_running_portal_a_line_says_so(
    tmp_path: Path, settings_of: dict[str, str], told: str
) -> None:
    done = subprocess.run(
        [sys.executable, str(BASE / "manage.py"), "steer", "peek-job", "1", "--user", "olga"],
        env={"PATH": os.environ["PATH"], "PILOTAGE_VAR": str(tmp_path), **settings_of},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"steer: {told}")
    assert "manage.py up" in line
