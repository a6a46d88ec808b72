"""Fences against payloads that mean harm, behind each that works on this host."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.wms.pilots.agent.conftest import wait_until
from tests.wms.pilots.agent.fence.fenced_pilot import TOKEN
from tests.wms.pilots.agent.fence.fencing import (
    SYSTEM_PYTHON,
    USER,
    Fencing,
    Payload,
    fencing,
    marked,
    payload_accounts,
)
from wms.pilots.program.bundle import agent_bundle

__all__ = ["fencing", "payload_accounts"]

_READ_MEMORY = """
import os, sys
for pid in [os.environ["PILOT"], *filter(str.isdigit, os.listdir("/proc"))]:
    if int(pid) == os.getpid():
        continue
    try:
        for line in open(f"/proc/{pid}/maps"):
            start, end = (int(each, 16) for each in line.split()[0].split("-"))
            with open(f"/proc/{pid}/mem", "rb") as memory:
                memory.seek(start)
                if ("-".join(["token", "of", "the", "pilot"])).encode() in memory.read(end - start):
                    print("found in the memory of", pid)
    except (OSError, ValueError, OverflowError):
        pass
"""


def test_a_payload_runs_and_tells_how_it_ended(fencing: Fencing) -> None:
    told = fencing.run(
        'cat in.txt; echo out >"$TMPDIR/x"; cat "$TMPDIR/x"; echo err >/dev/stderr; '
        'echo made >"$HOME/out.txt"; echo "$COLOUR"; exit 3',
        inputs={"in.txt": "in\n"},
        environment={"COLOUR": 'it\'s "blue"\n$green'},
        outputs=("out.txt", "none.txt"),
    )

    assert (told["exit_code"], told["signal"], told["reason"]) == (3, None, "")
    assert told["stdout"] == 'in\nout\nit\'s "blue"\n$green\n'
    assert told["stderr"] == "err\n"
    assert told["outputs"] == {"out.txt": "made\n"}


def test_a_signal_that_ends_a_payload_is_told(fencing: Fencing) -> None:
    told = fencing.run("kill -s SEGV $$")

    assert (told["exit_code"], told["signal"]) == (None, 11)


def test_a_payload_may_end_in_good_order_after_the_polite_signal(fencing: Fencing) -> None:
    script = "trap 'echo saved; exit 5' TERM; echo ready; sleep 60 & wait"

    told = fencing.run(script, limits={"wall_s": 1.5})

    assert told["stdout"] == "ready\nsaved\n"
    assert told["stopped_by"] == "watchdog"
    # Sudo's own way to end the whole account takes the script with its helpers.
    assert told["exit_code"] == 5


def test_a_payload_cannot_read_the_token_or_the_pilots_folder(fencing: Fencing) -> None:
    told = fencing.run(
        'cat "$PILOT_DIR/secret"; ls "$PILOT_DIR"; cat "/proc/$PILOT/environ"; '
        "grep -sa token-of-the /proc/[0-9]*/environ /proc/[0-9]*/cmdline; "
        'ls -l "/proc/$PILOT/fd"; python3 memory.py; echo over',
        inputs={"memory.py": _READ_MEMORY},
    )

    assert told["stdout"] == "over\n"
    assert TOKEN not in told["stderr"]


def test_a_payload_has_no_descriptor_of_the_pilot(fencing: Fencing) -> None:
    told = fencing.run("ls /proc/self/fd | wc -l")

    # The last one is that of ls itself.
    assert told["stdout"].split()[-1] == "4"


def test_a_payload_cannot_kill_the_pilot(fencing: Fencing) -> None:
    told = fencing.run(
        'trap "" TERM; kill -s KILL "$PILOT" $PPID 1; kill -s KILL -- -1; sleep 5; echo lives'
    )

    # That the pilot tells anything is the proof.
    assert told["usage"]["wall_s"] < 60


def test_a_fork_bomb_is_contained_and_ended(fencing: Fencing) -> None:
    script = "bomb() { bomb | bomb & }; bomb; sleep 60 bomb-marker"

    told = fencing.run(script, limits={"wall_s": 3.0, "processes": 60, "grace_s": 0.5})

    assert told["exit_code"] != 0
    assert told["usage"]["processes"] <= 70
    assert not marked("bomb-marker")


@pytest.mark.parametrize("place", ["$HOME", "$TMPDIR", "/dev/shm"])
def test_a_payload_cannot_fill_the_disk(fencing: Fencing, place: str) -> None:
    if place == "/dev/shm" and fencing.fence == "sudo":
        pytest.skip("behind sudo this is the node's, which is looked at every 10 s only")
    script = (
        f"n=0; while [ $n -lt 400 ]; do n=$((n + 1)); "
        f'head -c 5000000 /dev/zero >"{place}/f$n" || exit 1; sleep 0.02; done'
    )

    told = fencing.run(script, limits={"disk_mb": 60, "wall_s": 50.0, "grace_s": 0.5})

    assert told["reason"].startswith("disk space")
    assert told["usage"]["disk_mb"] < 1000


def test_the_kernel_takes_a_payload_before_the_pilot_when_memory_is_full(fencing: Fencing) -> None:
    assert fencing.run("cat /proc/self/oom_score_adj")["stdout"] == "800\n"


def test_a_single_file_cannot_outgrow_the_limit(fencing: Fencing) -> None:
    told = fencing.run("head -c 900000000 /dev/zero >big", limits={"disk_mb": 20})

    assert told["exit_code"] or told["signal"] or told["reason"]
    assert told["usage"]["disk_mb"] < 30


def test_the_system_cannot_be_changed(fencing: Fencing) -> None:
    told = fencing.run("echo x >/usr/pilotage-was-here || echo >/etc/pilotage-was-here || echo no")

    assert told["stdout"] == "no\n"


def test_nothing_outlives_a_payload(fencing: Fencing) -> None:
    told = fencing.run(
        "setsid sh -c 'sleep 1000.5571 & setsid sleep 1000.5571 & exit' & "
        "(trap '' TERM HUP; sleep 1000.5571 &) ; sleep 0.5; exit 0"
    )

    assert told["exit_code"] == 0
    assert not marked("1000.5571")


def test_a_payload_that_will_not_end_is_ended_with_all_that_it_started(fencing: Fencing) -> None:
    told = fencing.run(
        "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 1000.5572\" & sleep 1000.5572",
        limits={"wall_s": 1.0, "grace_s": 0.5},
    )

    assert told["reason"].startswith("wall-clock limit")
    assert told["usage"]["wall_s"] < 20
    assert not marked("1000.5572")


def test_a_payload_that_closes_its_folders_neither_breaks_the_pilot_nor_stays_on_the_disk(
    fencing: Fencing,
) -> None:
    told = fencing.run(
        'pwd; mkdir deep "$TMPDIR/deep"; touch deep/file "$TMPDIR/deep/file"; '
        'chmod 000 deep "$TMPDIR/deep" "$(dirname "$PILOTAGE_JOB_ATTRIBUTES")"; sleep 0.5',
    )

    assert (told["exit_code"], told["reason"]) == (0, "")
    assert told["is_removed"]
    assert not Path(told["stdout"].strip()).exists()


def test_a_payload_cannot_read_another(fencing: Fencing) -> None:
    victim = Payload("echo private >mine; echo private >$TMPDIR/mine; umask 077; sleep 3")
    thief = Payload(
        "sleep 1; cat $PILOT_DIR/job-0/sandbox/mine $PILOT_DIR/job-0/tmp/mine; "
        "cat /proc/[0-9]*/root/job/mine /proc/[0-9]*/cwd/mine; "
        "cat /var/tmp/pilotage-job-*/sandbox/mine /var/tmp/pilotage-job-*/tmp/mine; "
        "ls -R $PILOT_DIR | grep mine; echo over"
    )

    told, stolen = fencing.run_all(victim, thief)

    assert told["exit_code"] == 0
    assert stolen["stdout"] == "over\n"


def test_two_payloads_have_folders_of_their_own_for_temporary_files(fencing: Fencing) -> None:
    script = "echo $MINE >$TMPDIR/same; sleep 1; cat $TMPDIR/same"
    payloads = [Payload(script, environment={"MINE": name}) for name in ("one", "two")]

    first, second = fencing.run_all(*payloads)

    assert (first["stdout"], second["stdout"]) == ("one\n", "two\n")


def test_variables_and_programs_of_the_job_gain_nothing(fencing: Fencing) -> None:
    told = fencing.run(
        "id -u; grep NoNewPrivs /proc/self/status",
        inputs={"setpriv": "#!/bin/sh\nexec id\n", "sh": "#!/bin/sh\necho fooled; id -u\n"},
        environment={
            "PATH": "/job:/usr/bin:/bin",
            "LD_PRELOAD": "/job/evil.so",
            "BASH_ENV": "/job/sh",
            "ENV": "/job/sh",
        },
    )

    lines = told["stdout"].split()
    assert "fooled" not in lines
    assert lines[0] != "0"
    assert lines[-1] == ("1" if fencing.fence != "sudo" else lines[-1])


def test_memory_over_the_limit_is_told_with_figures(fencing: Fencing) -> None:
    script = 'exec python3 -c "x = bytearray(300 * 2**20); import time; time.sleep(60)"'

    told = fencing.run(script, limits={"memory_mb": 100, "grace_s": 0.5})

    assert re.fullmatch(r"memory .* of 100 MB", told["reason"])
    assert told["max_rss_mb"] > 100


def test_cpu_time_of_a_payload_is_told(fencing: Fencing) -> None:
    script = "python3 -c 'while __import__(\"time\").process_time() < 0.5: pass' & wait"

    told = fencing.run(script)

    assert 0.5 <= told["usage"]["cpu_s"] < 5


@pytest.mark.process
def test_the_memory_of_a_pilot_is_closed_to_others_of_its_account() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can start a pilot of another account")
    folder = Path(tempfile.mkdtemp(prefix="pilotage-memory-", dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "agent.pyz").write_bytes(agent_bundle().content)
    (folder / "agent.pyz").chmod(0o644)
    account = pwd.getpwnam(USER)
    with subprocess.Popen(
        [SYSTEM_PYTHON, "-I", str(folder / "agent.pyz")],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
    ) as pilot:
        try:
            # It waits for its configuration. What is closed belongs to root.
            memory = Path(f"/proc/{pilot.pid}/mem")
            wait_until(lambda: memory.stat().st_uid == 0, "its memory is closed")
        finally:
            pilot.kill()
            shutil.rmtree(folder)
