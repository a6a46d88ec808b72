"""Benchmark of placements: many small files, one large file beside curl, and the cost of granting.

`small` is how long 10,000 files of 10 KiB take from an HTTP server of this host into a folder, with
as many services as a host has by default, and the largest memory of one of them. `large` is one
file from the same server, by the service and by `curl` in the same run: `of_curl` is the ratio of
their rates, `of_curl_synced` that to `curl` with its file on the disk, as that of the service is in
the end; `whole_s` has submission and end besides. `input` is a job with an input of 2 GiB by URL,
five times beside `curl` (`benchmarks.placement_input`). `grant` is the median of one decision,
which request is next, and of the whole transaction that begins an attempt, with 1,000 and with
100,000 that wait. `reference` is a read of one row and a transaction of one row in the same run.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import base
from benchmarks.placement_input import input_by_url

_SMALL_BYTES = 10 * 1024
#: Places of the service on one host, as `PILOTAGE_PLACEMENT_CONCURRENCY` has them.
_SERVICES = 4
_DECISIONS = 50


def measure(is_quick: bool) -> dict[str, Any]:
    """Measure each part in processes of its own, one after the other in one database."""
    files, large_mib, waiting = (200, 64, 2_000) if is_quick else (10_000, 4096, 100_000)
    input_mib = 64 if is_quick else 2048
    with tempfile.TemporaryDirectory(prefix="pilotage-") as folder:
        served, pool = Path(folder, "served"), Path(folder, "pool")
        served.mkdir()
        pool.mkdir()
        os.environ |= {
            "PILOTAGE_PLACEMENT_ROOTS": str(pool),
            "PILOTAGE_PLACEMENT_ALLOWED": "127.0.0.0/8",
            "PILOTAGE_PLACEMENT_FILE_BYTES": str(2**40),
        }
        base.in_a_process(_furnish)
        with _server(served) as url:
            found = {
                "small": _measure_small(url, served, pool, files),
                "large": _measure_large(url, served, pool, large_mib),
                "input": input_by_url(url, served, input_mib),
            }
    found["grant"] = [base.in_a_process(_measure_grant, count) for count in (1000, waiting)]
    return {**found, "reference": base.reference_ms()}


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """An HTTP server of a folder, in a process of its own."""
    program = [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"]
    process = subprocess.Popen(
        [*program, "--protocol", "HTTP/1.1", "--directory", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        yield f"http://127.0.0.1:{words[words.index('port') + 1]}"
    finally:
        process.terminate()
        process.wait()


def _furnish() -> None:
    base.load_django()
    from django.core.management import call_command

    from wms.core.accounts import ensure_account
    from wms.core.actors import Actor
    from wms.core.models import Role

    call_command("migrate", verbosity=0)
    actor = Actor.system("benchmark")
    ensure_account("mover", password="a password for measuring", role=Role.USER, actor=actor)


def _measure_small(url: str, served: Path, pool: Path, files: int) -> dict[str, Any]:
    for number in range(files):
        (served / f"s{number}").write_bytes(os.urandom(_SMALL_BYTES))
    text = "".join(
        f'[dap_type = "transfer"; src_url = "{url}/s{number}"; dest_url = "file://{pool}/s{number}"]'
        for number in range(files)
    )
    submit_s = base.in_a_process(_submit, text)
    context = multiprocessing.get_context("spawn")
    all_ready = context.Barrier(_SERVICES)
    with context.Pool(_SERVICES, initializer=_get_ready, initargs=(all_ready,)) as services:
        served_by = services.map(_serve, range(_SERVICES), chunksize=1)
    # Of one clock, which all processes of the host read.
    seconds = max(each[1] for each in served_by) - min(each[0] for each in served_by)
    placed = sum(1 for each in pool.iterdir() if each.stat().st_size == _SMALL_BYTES)
    for each in (*served.iterdir(), *pool.iterdir()):
        each.unlink()
    return {
        "files": files,
        "placed": placed,
        "submit_s": round(submit_s, 2),
        "seconds": round(seconds, 1),
        "files_per_s": round(files / seconds, 1),
        "service_cpu_ms": round(1000 * sum(each[3] for each in served_by) / files, 2),
        "peak_mib": round(max(each[2] for each in served_by) / 1024, 1),
    }


def _submit(text: str) -> float:
    base.load_django()
    from wms.core.actors import Actor
    from wms.core.models import User
    from wms.placement.services import submit_requests

    owner = User.objects.get(username="mover")
    began_s = time.perf_counter()
    submit_requests(text, actor=Actor.person(owner), owner=owner)
    return time.perf_counter() - began_s


def _get_ready(all_ready: Any) -> None:
    """Load all that a service needs, and begin when the others have."""
    base.load_django()
    import wms.placement.runner  # noqa: F401 - it is what takes long

    all_ready.wait()


def _serve(_: int) -> tuple[float, float, int, float]:
    """Carry out what is due: when it began and ended, the largest memory in KiB, CPU seconds."""
    from wms.placement import runner

    began_s, cpu_s = time.monotonic(), time.process_time()
    while runner.run_due():
        pass
    ended_s = time.monotonic()
    base.close_connections()
    used = resource.getrusage(resource.RUSAGE_SELF)
    return began_s, ended_s, used.ru_maxrss, time.process_time() - cpu_s


def _measure_large(url: str, served: Path, pool: Path, mib: int) -> dict[str, Any]:
    room_mib = shutil.disk_usage(served).free // 2**20 // 4
    mib = min(mib, room_mib)
    with (served / "large").open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(2**20))
    began_s = time.perf_counter()
    subprocess.run(
        ["curl", "-sS", "--fail", "-o", str(pool / "by-curl"), f"{url}/large"], check=True
    )
    curl_s = time.perf_counter() - began_s
    subprocess.run(["sync", str(pool / "by-curl")], check=True)
    synced_s = time.perf_counter() - began_s
    (pool / "by-curl").unlink()
    text = f'[dap_type = "transfer"; src_url = "{url}/large"; dest_url = "file://{pool}/large"]'
    whole_s, attempt_s, cpu_s = base.in_a_process(_place_large, text)
    return {
        "mib": mib,
        "curl_s": round(curl_s, 2),
        "attempt_s": round(attempt_s, 2),
        "whole_s": round(whole_s, 2),
        "of_curl": round(curl_s / attempt_s, 2),
        "curl_synced_s": round(synced_s, 2),
        "of_curl_synced": round(synced_s / attempt_s, 2),
        "service_cpu_s": round(cpu_s, 2),
    }


def _place_large(text: str) -> tuple[float, float, float]:
    began_s = time.perf_counter()
    _submit(text)
    from wms.placement import runner
    from wms.placement.models import PlacementAttempt

    cpu_s = time.process_time()
    runner.run_due()
    cpu_s = time.process_time() - cpu_s
    whole_s = time.perf_counter() - began_s
    attempt = PlacementAttempt.objects.order_by("-pk")[0]
    assert attempt.exit_code == 0, attempt.message
    assert attempt.ended_at is not None
    return whole_s, (attempt.ended_at - attempt.started_at).total_seconds(), cpu_s


def _measure_grant(waiting: int) -> dict[str, Any]:
    """The cost of granting with so many that wait, of one user and in one lane."""
    base.load_django()
    from django.db import connection
    from django.utils import timezone

    from wms.core.models import User
    from wms.jobs.operations import create_workspace
    from wms.placement import operations
    from wms.placement.models import PlacementRequest
    from wms.placement.sql import FIND_NEXT

    owner = User.objects.get(username="mover")
    PlacementRequest.objects.all().delete()
    workspace = create_workspace(owner, {})
    PlacementRequest.objects.bulk_create(
        (
            PlacementRequest(
                owner=owner,
                workspace=workspace,
                source_url="file:///a",
                destination_url="file:///b",
            )
            for _ in range(waiting)
        ),
        batch_size=5000,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE placement_placementrequest")
        decisions_ms = []
        for _ in range(_DECISIONS):
            began_s = time.perf_counter()
            cursor.execute(FIND_NEXT, {"now": timezone.now(), "most": 10, "most_of_owner": 0})
            cursor.fetchall()
            decisions_ms.append(1000 * (time.perf_counter() - began_s))
    begun_ms = []
    for _ in range(_DECISIONS):
        began_s = time.perf_counter()
        started = operations.take_request(timezone.now())
        begun_ms.append(1000 * (time.perf_counter() - began_s))
        assert started is not None
        operations.end_attempt(
            started.request_id, lease=started.lease, exit_code=0, now=timezone.now()
        )
    return {
        "waiting": waiting,
        "decision_ms": round(statistics.median(decisions_ms), 2),
        "begin_ms": round(statistics.median(begun_ms), 2),
    }


if __name__ == "__main__":
    base.main("placement", measure, __doc__)
