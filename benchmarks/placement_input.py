"""Benchmark of a large input by URL: how long after its submission a job with one starts.

`input_by_url` is a part of `benchmarks.placement`. The input is fetched by a real pilot of this
host that waits for work, and by `curl`, in turn. A pair tells little, since memory and disk of a
host are not equally fast twice: the medians are given, and all differences. Of the portal's web
server there are the MiB that its processes read from files and wrote to them meanwhile, and their
CPU seconds: what goes by connections alone is not counted by the system, but cannot be had without
CPU time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks import base
from benchmarks.true_jobs import job_owner, wait_for_jobs
from portal.cli.child import ChildPortal
from portal.cli.state_directory import StateDirectory

_NAME = "input.bin"
_PAIRS = 5


def input_by_url(url: str, served: Path, mib: int) -> dict[str, Any]:
    """Fetch a file of the server at `url`, which serves the folder, by `curl` and for a job."""
    with (served / _NAME).open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(2**20))
        # What is measured is not written while this still goes to the disk.
        file.flush()
        os.fsync(file.fileno())
    try:
        return dict(base.in_a_process(_measure, f"{url}/{_NAME}", mib))
    finally:
        (served / _NAME).unlink()


def _measure(url: str, mib: int) -> dict[str, Any]:
    place = StateDirectory.from_environment()
    with ChildPortal(place):
        base.load_django()
        submit = _submitter(url)
        # A pilot waits for work then.
        wait_for_jobs(submit({}))
        curl_s, started_s, moved, cpu_s = [], [], 0, 0.0
        for _ in range(_PAIRS):
            curl_s.append(_fetch_by_curl(url, place.var / "by-curl"))
            before = _use_of_web_server(place)
            started_s.append(_started_s(submit({_NAME: url})))
            after = _use_of_web_server(place)
            moved, cpu_s = moved + after[0] - before[0], cpu_s + after[1] - before[1]
        base.close_connections()
    behind_s = [job - curl for job, curl in zip(started_s, curl_s, strict=True)]
    return {
        "mib": mib,
        "curl_s": round(statistics.median(curl_s), 2),
        "started_s": round(statistics.median(started_s), 2),
        "behind_curl_s": round(statistics.median(behind_s), 2),
        "all_behind_s": [round(each, 2) for each in behind_s],
        "portal_files_mib": round(moved / 2**20, 1),
        "portal_cpu_s": round(cpu_s, 2),
    }


def _fetch_by_curl(url: str, target: Path) -> float:
    began_s = time.perf_counter()
    subprocess.run(["curl", "-sS", "--fail", "-o", str(target), url], check=True)
    took_s = time.perf_counter() - began_s
    target.unlink()
    return took_s


def _submitter(url: str) -> Any:
    owner, workspace, actor = job_owner(slots=1)
    from matching.task_queues.needs import Needs
    from wms.jobs.directives import Directives
    from wms.jobs.operations import submit_jobs
    from wms.jobs.specs import JobSpec

    def submit(inputs: dict[str, str]) -> list[int]:
        directives = Directives(input_urls=inputs).as_json()
        spec = JobSpec(
            name="fetch", executable="/bin/true", needs=Needs.of("true"), directives=directives
        )
        return submit_jobs([spec], owner=owner, workspace=workspace, actor=actor)

    return submit


def _started_s(ids: list[int]) -> float:
    """The seconds from the submission of a job to the start of its payload."""
    from wms.jobs.models import Attempt

    wait_for_jobs(ids)
    attempt = Attempt.objects.select_related("job").get(job=ids[0])
    assert attempt.started_at is not None
    return (attempt.started_at - attempt.job.created_at).total_seconds()


def _use_of_web_server(place: StateDirectory) -> tuple[int, float]:
    """The bytes of files that the processes of the portal's web server moved, and CPU seconds."""
    mine, moved, ticks = f"PILOTAGE_VAR={place.var}".encode(), 0, 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_server = b"gunicorn" in (process / "cmdline").read_bytes()
            if not is_server or mine not in (process / "environ").read_bytes().split(b"\0"):
                continue
            lines = (process / "io").read_text().splitlines()
            # Behind the name, which may hold anything.
            times = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        counts = dict(line.split(": ") for line in lines)
        moved += int(counts["rchar"]) + int(counts["wchar"])
        ticks += sum(map(int, times))
    assert moved, "the web server was not found"
    return moved, ticks / os.sysconf("SC_CLK_TCK")
