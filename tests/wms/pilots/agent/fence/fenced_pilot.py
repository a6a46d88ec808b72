"""Pilot of the tests: runs payloads behind a fence, and prints their outcomes.

A program of its own, so that it can run under another account than the tests. Its standard input
brings JSON: the fence, and the payloads, of which so many run at the same time as are said.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import threading
import time
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
#: It tells processes of this pilot from those that another one on this host has started alike.
_NUMBER = time.time_ns()


def main() -> None:
    task = json.loads(sys.stdin.read())
    os.umask(0o077)
    work_dir = Path(task["work_dir"])
    (work_dir / "secret").write_text(TOKEN)
    pilot = FencedPilot(task["fence"], work_dir, task["shared"])

    def run(number: int, payload: dict[str, Any]) -> Any:
        try:
            return pilot.run(work_dir / f"job-{number}", payload)
        except FenceUnusable as error:
            return {"fails": str(error)}

    with ThreadPoolExecutor(task["at_once"]) as pool:
        results = list(pool.map(run, itertools.count(), task["payloads"]))
    sys.stdout.write(json.dumps({"results": results}))


class FencedPilot:
    """Starters of payloads: a fence for each network that they have, and containers of images."""

    def __init__(self, fence: str, work_dir: Path, shared: list[str]) -> None:
        self._name, self._work_dir, self._shared = fence, work_dir, tuple(map(SharedFolder, shared))
        self._fences: dict[Network, Fence | FenceUnusable] = {}
        self._containers: dict[Network, Images] = {}
        self._lock = threading.Lock()

    def run(self, home: Path, payload: dict[str, Any]) -> dict[str, Any]:
        """Run one payload in a folder. Raises FenceUnusable."""
        network, image = Network(payload["network"], payload["server_url"]), payload["image"]
        with self._lock:
            fence = self._fence(network)
            images = self._images(network, fence) if image else None
        inside = None if images is None else InImage(images, image)
        directories = JobDirectories(home, shared=self._shared if inside else ())
        return run_one(fence, directories, payload, inside)

    def _fence(self, network: Network) -> Fence:
        if network not in self._fences:
            try:
                made: Any = fence_selection.fence_named(self._name, self._work_dir, network)
            except FenceUnusable as error:
                made = error
            self._fences[network] = made
        found = self._fences[network]
        if isinstance(found, FenceUnusable):
            raise found
        return found

    def _images(self, network: Network, fence: Fence) -> Images:
        if network not in self._containers:
            containers = fence_selection.working_containers(self._work_dir, fence)
            trial = partial(fence_selection.try_containers, containers, self._work_dir)
            self._containers[network] = Images(self._work_dir, containers, trial)
        return self._containers[network]


@dataclass(frozen=True)
class InImage:
    """The image that a payload runs in."""

    images: Images
    image: str


def run_one(
    fence: Fence, directories: JobDirectories, payload: dict[str, Any], inside: InImage | None
) -> dict[str, Any]:
    limits = Limits(**{"wall_s": 60.0, **payload["limits"]})
    home = directories.home
    directories.make()
    traces = {each: f"{each}{_NUMBER}" for each in payload["traces"]}
    write_inputs(directories.sandbox, payload["inputs"], traces)
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
        left = processes_with(list(traces.values()))
        enclosure.leave(payload["outputs"])
    finally:
        enclosure.close()
    told = {
        **asdict(outcome),
        "left": left,
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


def write_inputs(folder: Path, inputs: dict[str, str], traces: dict[str, str]) -> None:
    """Write the files of a payload, with the traces of this pilot's processes."""
    for name, content in inputs.items():
        for trace, own in traces.items():
            content = content.replace(trace, own)
        (folder / name).write_text(content)


def processes_with(texts: list[str]) -> list[str]:
    """Command lines of this host's processes with one of these texts."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline") if texts else ():
        try:
            line = file.read_bytes().decode(errors="replace")
        except OSError:
            continue
        found += [line for each in texts if each in line]
    return found


if __name__ == "__main__":
    main()
