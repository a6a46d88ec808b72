"""Pilot of the tests: runs payloads behind a fence, and prints their outcomes.

A program of its own, so that it can run under another account than the tests. Its standard input
brings JSON: the fence, and the payloads. All payloads run at the same time.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wms.pilots.agent.control import Control
from wms.pilots.agent.fence.base import Fence, FenceUnusable
from wms.pilots.agent.fence.network import Network
from wms.pilots.agent.files import sandbox
from wms.pilots.agent.files.job_directories import JobDirectories
from wms.pilots.agent.payload.execution import run_payload
from wms.pilots.agent.payload.meter import Meter
from wms.pilots.agent.resources.limits import Limits
from wms.pilots.agent.session import fence_selection

#: What no payload may learn; put together here, so that it is in the memory of this process only.
TOKEN = "-".join(["token", "of", "the", "pilot"])


def main() -> None:
    task = json.loads(sys.stdin.read())
    os.umask(0o077)
    work_dir = Path(task["work_dir"])
    (work_dir / "secret").write_text(TOKEN)
    try:
        fence = fence_selection.fence_named(
            task["fence"], work_dir, Network(task["network"], task["server_url"])
        )
    except FenceUnusable as error:
        sys.stdout.write(json.dumps({"fails": str(error)}))
        return
    results: list[Any] = [None] * len(task["payloads"])

    def run(number: int) -> None:
        results[number] = run_one(fence, work_dir / f"job-{number}", task["payloads"][number])

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(json.dumps({"results": results}))


def run_one(fence: Fence, home: Path, payload: dict[str, Any]) -> dict[str, Any]:
    limits = Limits(**{"wall_s": 60.0, **payload["limits"]})
    directories = JobDirectories(home)
    directories.make()
    for name, content in payload["inputs"].items():
        (directories.sandbox / name).write_text(content)
    enclosure = fence.enclose(directories)
    enclosure.executable("run.sh")
    enclosure.enter()
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": enclosure.home,
        "TMPDIR": enclosure.tmp,
        "PILOT": str(os.getpid()),
        "PILOT_DIR": str(home.parent),
        "PILOTAGE_JOB_ATTRIBUTES": enclosure.attributes_file,
        **payload["environment"],
    }
    control = Control()
    try:
        outcome = run_payload(
            enclosure.plan([enclosure.executable("run.sh"), "marker"], environment, limits),
            stdout=home / "stdout",
            stderr=home / "stderr",
            limits=limits,
            meter=Meter(enclosure, [home / "stdout", home / "stderr"], limits),
            attempt=(1, 1),
            control=control,
            waker=control.waker,
        )
        enclosure.leave(payload["outputs"])
    finally:
        enclosure.close()
    told = {
        **asdict(outcome),
        "stdout": (home / "stdout").read_text(errors="replace"),
        "stderr": (home / "stderr").read_text(errors="replace")[:2000],
        "outputs": {
            name: (directories.sandbox / name).read_text()
            for name in payload["outputs"]
            if (directories.sandbox / name).is_file()
        },
    }
    sandbox.remove(home)
    return {**told, "is_removed": not home.exists()}


if __name__ == "__main__":
    main()
