"""Time that Slurm and HTCondor tell, and what a pilot makes of it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from wms.pilots.agent import programs
from wms.pilots.agent.control import Control
from wms.pilots.agent.programs import NoAnswer, answer_of
from wms.pilots.agent.resources.batch_time import (
    BatchTime,
    ask_batch_system,
    read_scontrol,
    read_slurm_time,
)
from wms.pilots.agent.session.pilot_config import LifetimeSettings
from wms.pilots.agent.session.pilot_lifetime import BATCH_MARGIN_S, PilotLifetime
from wms.pilots.agent.session.told_time import ToldTime

#: As Slurm 22.05 prints it, shortened at its ends.
SCONTROL = (
    "JobId=7 JobName=pilot UserId=grid(1000) GroupId=grid(1000) MCS_label=N/A Priority=4294901759 "
    "JobState=RUNNING Reason=None Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 "
    "Reboot=0 ExitCode=0:0 RunTime=00:10:05 TimeLimit=1-01:00:00 TimeMin=N/A "
    "SubmitTime=2024-03-01T09:00:00 StartTime=2024-03-01T09:00:01 EndTime=2024-03-02T10:00:01"
)
#: As a starter of HTCondor 23 writes them, shortened.
JOB_AD = """\
AllowedJobDuration = 7200
Args = "-x 5"
JobCurrentStartDate = 1700000000
JobStatus = 2
PeriodicRemove = (JobStatus == 2 && time() - JobCurrentStartDate > 7260)
"""
MACHINE_AD = """\
Cpus = 4
GLIDEIN_ToDie = 1700005000
MaxJobRetirementTime = 86400
Start = ( TARGET.RequestCpus <= 4 ) && ( time() < GLIDEIN_ToRetire )
"""


def asked(
    environment: dict[str, str], *, now: float = 1_700_001_000.0, **answers: Any
) -> BatchTime:
    """Time that is told where `answers` are those of the programs, by their names."""

    def ask(command: list[str], timeout_s: float) -> str:
        answer = answers.get(command[0], NoAnswer(f"{command[0]}: none", is_absent=True))
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    return ask_batch_system(environment, age_s=600.0, now=now, ask=ask)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4:59", 299), ("59:59", 3599), ("23:50:00", 85_800), ("6-23:59:59", 604_799),
        ("0:00", 0), ("UNLIMITED", None), ("NOT_SET", None),
    ],
)  # fmt: skip
def test_times_of_slurm_are_read(text: str, seconds: float | None) -> None:
    assert read_slurm_time(text) == seconds


@pytest.mark.parametrize("text", ["", "INVALID", "5", "1:2:3:4", "-5:00", "slurm_load_jobs error"])
def test_nonsense_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        read_slurm_time(text)
    with pytest.raises(ValueError, match="told"):
        read_scontrol(text)


def test_slurm_is_asked_in_three_ways_and_what_failed_is_told() -> None:
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "1700003000"}
    hangs = NoAnswer("squeue: not over after 10 s")

    assert asked(slurm, squeue="23:50:00\n") == BatchTime("slurm", 85_800)
    assert asked(slurm, squeue="UNLIMITED\n") == BatchTime("slurm", None)
    by_scontrol = asked(slurm, squeue=hangs, scontrol=SCONTROL)
    assert by_scontrol == BatchTime("slurm", 90_000 - 605, (str(hangs),))
    assert asked(slurm) == BatchTime("slurm", 2000)
    nothing = asked({"SLURM_JOB_ID": "7"}, squeue="\x00nonsense")
    assert (nothing.source, len(nothing.faults)) == ("", 2)
    assert asked({}) == BatchTime()


def test_the_ads_of_htcondor_tell_allowed_durations_and_the_end_of_a_glidein(
    tmp_path: Path,
) -> None:
    job, machine = tmp_path / ".job.ad", tmp_path / ".machine.ad"
    ads = {"_CONDOR_JOB_AD": str(job), "_CONDOR_MACHINE_AD": str(machine)}
    job.write_text(JOB_AD)
    machine.write_text("Cpus = 4\n")

    assert asked(ads) == BatchTime("htcondor", 7200 - 1000)
    machine.write_text(MACHINE_AD)
    assert asked(ads) == BatchTime("htcondor", 4000)
    # A pilot in Slurm behind HTCondor obeys both.
    assert asked({**ads, "SLURM_JOB_ID": "7"}, squeue="30:00").source == "slurm"
    job.write_bytes(b"AllowedExecuteDuration = 900\n\xff\x00 = ]")
    assert asked(ads).left_s == 300
    job.write_text("AllowedJobDuration = JobDuration * 1e400\n")
    machine.unlink()
    assert asked(ads).source == ""
    assert "_CONDOR_MACHINE_AD" in asked(ads).faults[0]


@pytest.mark.process
def test_a_program_that_hangs_or_never_stops_printing_hinders_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "MOST_OUTPUT_BYTES", 1000)
    began_s = time.monotonic()
    for script, told in (
        # The child holds the output open after its parent has gone.
        ("sleep 600 & exit 0", "not over"),
        ("exec 1>&- 2>&-; sleep 600", "not over"),
        ("yes nonsense", "more than"),
        ("echo no such job; exit 3", "exit code 3: no such job"),
    ):
        with pytest.raises(NoAnswer, match=told) as raised:
            answer_of(["/bin/sh", "-c", script], 0.3)
        assert not raised.value.is_absent
    assert time.monotonic() - began_s < 30
    with pytest.raises(NoAnswer) as raised:
        answer_of(["no-such-program-here"], 0.3)
    assert raised.value.is_absent
    assert answer_of([str(shutil.which("echo")), "4:59"], 5) == "4:59\n"


def test_the_smaller_of_what_is_told_and_configured_counts_and_follows_the_batch_system() -> None:
    clock_s, told = [100.0], [BatchTime("slurm", 1000.0)]
    control = Control(clock=lambda: clock_s[0])
    time_left = ToldTime(control, started=100.0, environment={}, ask=lambda *_, **__: told[0])
    life = PilotLifetime(
        control,
        started=100.0,
        lifetime_s=3600,
        idle_limit_s=30,
        settings=LifetimeSettings(job_max_s=300),
        told_left_s=time_left.left_s,
        random100=lambda: 0,
    )

    assert life.left_s() == 1000 - BATCH_MARGIN_S
    assert time_left.news() == {"time_source": "slurm", "time_left_s": 1000}
    clock_s[0] += 650
    # As with what is configured, no job begins that could not end.
    assert (life.left_s(), life.accepts_jobs()) == (290, False)
    told[0] = BatchTime(faults=("squeue: hangs",))
    time_left.ask()
    assert life.left_s() == 290
    # An administrator has given the batch job a day.
    told[0] = BatchTime("slurm", 86_400.0)
    time_left.ask()
    assert (life.left_s(), life.accepts_jobs()) == (3600 - 650, True)
    told[0] = BatchTime("slurm", None)
    time_left.ask()
    assert life.left_s() == 3600 - 650
    assert time_left.news() == {"time_source": "slurm"}
    time_left.accepted()
    assert time_left.news() == {}
