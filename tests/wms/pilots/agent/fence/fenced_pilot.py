"""Pilot of the tests: runs payloads behind a fence, and prints their outcomes.

A program of its own, so that it can run under another account than the tests. Its standard input
brings JSON: the fence, and the payloads. All payloads run at the same time.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wms.pilots.agent.control import Control
from wms.pilots.agent.fence.base import Enclosure, Fence, FenceUnusable, LaunchPlan
from wms.pilots.agent.fence.network import Network
from wms.pilots.agent.files import sandbox
from wms.pilots.agent.files.job_directories import JobDirectories, SharedFolder
from wms.pilots.agent.jobs.images import Images
from wms.pilots.agent.payload.execution import Outcome, run_payload
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
    images = None
    if "image" in task:
        try:
            containers = fence_selection.working_containers(work_dir, fence)
        except FenceUnusable as error:
            sys.stdout.write(json.dumps({"fails": str(error)}))
            return
        trial = partial(fence_selection.try_containers, containers, work_dir)
        images = InImage(Images(work_dir, containers, trial), task["image"], task["shared"])

    def run(number: int, payload: dict[str, Any]) -> Any:
        return run_one(fence, work_dir / f"job-{number}", payload, images)

    with ThreadPoolExecutor(len(task["payloads"])) as pool:
        results = list(pool.map(run, itertools.count(), task["payloads"]))
    sys.stdout.write(json.dumps({"results": results}))


@dataclass(frozen=True)
class InImage:
    """The image that all payloads run in, and folders that they share with the node."""

    images: Images
    image: str
    shared: list[str]


def run_one(
    fence: Fence, home: Path, payload: dict[str, Any], inside: InImage | None
) -> dict[str, Any]:
    limits = Limits(**{"wall_s": 60.0, **payload["limits"]})
    shared = () if inside is None else tuple(map(SharedFolder, inside.shared))
    directories = JobDirectories(home, shared=shared)
    directories.make()
    for name, content in payload["inputs"].items():
        (directories.sandbox / name).write_text(content)
    for name, place in payload["copied"].items():
        shutil.copy(place, directories.sandbox / name)
    if inside is None:
        enclosure = fence.enclose(directories)
    else:
        enclosure = inside.images.enclose(directories, inside.image)
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

    def fetch(plan: LaunchPlan, measured: Enclosure, limits: Limits, said: Path) -> Outcome:
        return run_payload(
            plan,
            stdout=said,
            stderr=said,
            limits=limits,
            meter=Meter(measured, [said], limits),
            attempt=(1, 1),
            control=control,
            waker=control.waker,
        )

    for stream in ("stdout", "stderr"):
        (home / stream).touch()
    ended = inside.images.prepare(inside.image, directories, limits, fetch) if inside else None
    try:
        outcome = ended or run_payload(
            enclosure.plan([enclosure.executable("run.sh"), "marker"], environment, limits),
            stdout=home / "stdout",
            stderr=home / "stderr",
            limits=limits,
            meter=Meter(enclosure, [home / "stdout", home / "stderr"], limits),
            attempt=(1, 1),
            control=control,
            waker=control.waker,
        )
        if inside is not None and ended is None:
            outcome = inside.images.judged(outcome, home / "stderr")
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
    if inside is not None:
        told["tags"] = inside.images.tags()
    sandbox.remove(home)
    return {**told, "is_removed": not home.exists()}


if __name__ == "__main__":
    main()
