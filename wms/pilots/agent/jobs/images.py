"""Images of a pilot's jobs: found on the node, come with the job, or fetched from a registry.

Also who is at fault where no container starts from one, and whether jobs with images may come.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..fence.base import Enclosure, LaunchPlan, resource_limits
from ..fence.container import Containers, ImageEnclosure
from ..fence.host_view import PATH, is_below, is_hidden
from ..files import sandbox
from ..files.disk_usage import Entries, entries_below
from ..files.image_files import why_no_image
from ..files.job_directories import JobDirectories
from ..payload.execution import Outcome
from ..resources.limits import Limits

#: What jobs with images ask of a pilot.
TAG = "apptainer"
#: Images at fault, one after the other, after which a pilot takes no more jobs with images: the
#: fault is rather the node's, or its way to the registries.
MOST_FAULTS = 3
#: Fetched images that are kept for later jobs.
_MOST_KEPT = 8
_FETCHED_BY_SCHEME = ("docker://", "oras://")
#: Variables of the pilot's environment that a fetch needs.
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_SAID_BYTES = 2000
_SAID_LENGTH = 500

log = logging.getLogger("pilot")

#: Runs the program of a launch plan for a job, measured by an enclosure, with output in a file.
Run = Callable[[LaunchPlan, Enclosure, Limits, Path], Outcome]


class ImageFault(Exception):
    """No container can be made of a job's image; the text says why."""


class Images:
    """Images of the jobs of one pilot; used by the threads of all jobs.

    `containers` is None where none are started; `try_again` tries a container that needs no image,
    and raises OSError or FenceUnusable where it does not start.
    """

    def __init__(
        self,
        work_dir: Path,
        containers: Containers | None = None,
        try_again: Callable[[], None] = lambda: None,
    ) -> None:
        self._work_dir = work_dir
        self._kept = work_dir / "images"
        self._containers = containers
        self._try_again = try_again
        self._faults = 0
        self._lock = threading.Lock()

    def tags(self) -> list[str]:
        """Tags with which the pilot claims jobs."""
        return [TAG] if self._containers is not None and self._faults < MOST_FAULTS else []

    def enclose(self, directories: JobDirectories, image: str) -> ImageEnclosure:
        """Enclose one job in a container. Raises OSError where none are started."""
        if self._containers is None:
            raise OSError(0, "this pilot starts no containers")
        is_of_node = image.startswith("/")
        place = os.path.realpath(image) if is_of_node else str(_place(directories))
        return self._containers.enclose(directories, place)

    def prepare(
        self, image: str, directories: JobDirectories, limits: Limits, run: Run
    ) -> Outcome | None:
        """Have the image where its enclosure expects it; the attempt's outcome where it cannot."""
        try:
            if image.startswith("/"):
                self._check_of_node(image, directories)
            elif "://" in image:
                return self._fetch(image, directories, limits, run)
            else:
                # Where its payload cannot change it while it is used.
                os.replace(sandbox.inside(directories.sandbox, image), _place(directories))
                _check_file(_place(directories), image)
        except ImageFault as error:
            return self._faulty(str(error))
        return None

    def judged(self, outcome: Outcome, stderr: Path) -> Outcome:
        """Outcome of a payload in a container, or that of an image of which none was started.

        Raises OSError and FenceUnusable where it is rather the node's fault.
        """
        if outcome.is_inside or outcome.reason:
            if outcome.is_inside:
                self._faults = 0
            return outcome
        self._try_again()
        faulty = self._faulty(f"no container starts from it: {_end_of(stderr)}")
        return replace(faulty, usage=outcome.usage)

    def _faulty(self, reason: str) -> Outcome:
        with self._lock:
            self._faults += 1
        if self._faults == MOST_FAULTS:
            log.warning("%d images in a row were at fault: no more jobs with images", MOST_FAULTS)
        return Outcome(None, None, reason=f"the image of the job: {reason}", is_image_at_fault=True)

    def _check_of_node(self, image: str, directories: JobDirectories) -> None:
        """Raise ImageFault for what payloads do not see anyway, or may change."""
        path = os.path.realpath(image)
        if is_hidden(path, directories) or is_below(path, os.path.realpath(self._work_dir)):
            raise ImageFault(f"{image} is not in a folder that payloads see")
        for each in directories.shared:
            if each.is_writable and is_below(path, os.path.realpath(each.path)):
                raise ImageFault(f"{image} is in a folder that payloads can write")
        if not os.path.exists(path):
            raise ImageFault(f"{image} is not on this node")
        if not os.path.isdir(path):
            _check_file(Path(path), image)

    def _fetch(
        self, address: str, directories: JobDirectories, limits: Limits, run: Run
    ) -> Outcome | None:
        if not address.startswith(_FETCHED_BY_SCHEME):
            raise ImageFault(f"{address} is no image of a registry")
        kept = self._kept / f"{hashlib.sha256(address.encode()).hexdigest()}.sif"
        place = _place(directories)
        with self._lock:
            if kept.exists():
                os.utime(kept)
                os.link(kept, place)
                return None
        log.info("the image %s is fetched", address)
        said = directories.home / "fetch.log"
        outcome = run(
            self._fetch_plan(address, directories, limits), _Home(directories), limits, said
        )
        if outcome.reason:
            # Stopped, by a limit or on request.
            return outcome
        if outcome.exit_code != 0:
            raise ImageFault(f"{address} cannot be fetched: {_end_of(said)}")
        _check_file(place, address)
        self._keep(place, kept)
        return None

    def _fetch_plan(self, address: str, directories: JobDirectories, limits: Limits) -> LaunchPlan:
        assert self._containers is not None
        home = str(directories.home)
        proxies = {name: os.environ[name] for name in _PROXIES if name in os.environ}
        return LaunchPlan(
            argv=[
                *(self._containers.program, "-s", "pull", "--disable-cache", "--"),
                *(str(_place(directories)), address),
            ],
            environment={
                **proxies,
                "PATH": PATH,
                "APPTAINER_TMPDIR": home,
                "APPTAINER_CONFIGDIR": f"{home}/apptainer",
            },
            directory=home,
            limits=resource_limits(limits),
        )

    def _keep(self, place: Path, kept: Path) -> None:
        """Keep a fetched image for later jobs, which may remove it for others."""
        with self._lock:
            self._kept.mkdir(exist_ok=True)
            if not kept.exists():
                os.link(place, kept)
            others = sorted(self._kept.iterdir(), key=lambda each: each.stat().st_mtime)
            for each in others[:-_MOST_KEPT]:
                each.unlink()


class _Home(Enclosure):
    """Measures all that is fetched for a job."""

    def entries(self) -> Entries:
        return entries_below([self.directories.home])


def _place(directories: JobDirectories) -> Path:
    """The file of a job's image, outside of what its payload can write."""
    return directories.home / "image.sif"


def _check_file(path: Path, image: str) -> None:
    if why := why_no_image(path):
        raise ImageFault(f"{image}: {why}")


def _end_of(file: Path) -> str:
    """The end of what a program has said."""
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - _SAID_BYTES))
        words = source.read().decode("utf-8", "replace").split()
    return " ".join(words)[-_SAID_LENGTH:] or "Apptainer says nothing"
