"""Enclosure of a payload in a container of its job's own image, read-only.

The image is taken for hostile: nothing of it runs or is loaded before the payload is confined, and
it says nothing about mounts, variables or options. What confines is a Python of the node, shown at
a place that no image can foresee.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..files.job_directories import JobDirectories
from ..resources.limits import Limits
from .apptainer import ContainerEnclosure, make_open
from .base import FenceUnusable, LaunchPlan, confinement_command, denied_calls_filter
from .host_view import HOME, program
from .network import Network
from .node_python import node_python

#: Search path of payloads in an image, unless their jobs say another.
IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Where Apptainer shows the libraries of the node's GPUs.
_GPU_LIBRARIES = "/.singularity.d/libs"


class Containers:
    """What containers of jobs are made with on this node. Raises FenceUnusable, OSError."""

    def __init__(self, work_dir: Path, network: Network, fence: str) -> None:
        if os.geteuid() == 0:
            # Its Apptainer would have the kernel read file systems that users have made.
            raise FenceUnusable("a pilot of root starts no containers of users' images")
        if fence == "sudo":
            # The container would run under the pilot's account, which sudo keeps from payloads.
            raise FenceUnusable("behind the fence sudo there are no containers")
        self._network = network.guarded(has_other_account=False)
        self._denied = denied_calls_filter()
        self.program = program("apptainer")
        self._python = node_python()
        self._masks = work_dir / "masks"
        make_open(self._masks / "folder", self._masks)
        (self._masks / "file").touch()
        #: Image of the trial: nothing is in it but what is mounted.
        self.trial_image = work_dir / "trial-image"
        for name in ("dev", "proc", "sys", "tmp"):
            make_open(self.trial_image / name, self.trial_image)

    def enclose(self, directories: JobDirectories, image: str) -> ImageEnclosure:
        """Enclose one job in a container of an image: the path of a file or folder."""
        return ImageEnclosure(
            directories, self._network, self.program, image, self._denied, self._binds()
        )

    def _binds(self) -> _HiddenBinds:
        place = f"/.pilotage-{secrets.token_hex(8)}"
        # Last of all, so that no other mount changes where they are.
        masks = [
            f"{self._masks}/folder:/.singularity.d/env:ro",
            f"{self._masks}/file:/etc/ld.so.preload:ro",
        ]
        return _HiddenBinds(self._python.command(place), self._python.binds(place), masks)


class _HiddenBinds:
    """The node's Python in a container, and what hides parts of the image that would act there.

    They are the scripts that Apptainer reads variables from, and the list of libraries that every
    program loads.
    """

    def __init__(self, command: Sequence[str], binds: Sequence[str], masks: Sequence[str]) -> None:
        self.command, self.binds, self.masks = command, binds, masks


class ImageEnclosure(ContainerEnclosure):
    """One job in a container of its own image."""

    name = "image"

    def __init__(
        self,
        directories: JobDirectories,
        network: Network,
        apptainer: str,
        image: str,
        denied: bytes,
        hidden: _HiddenBinds,
    ) -> None:
        super().__init__(directories, network, apptainer, image, denied)
        self._hidden = hidden

    @property
    def has_node_system(self) -> bool:
        return False

    @property
    def python(self) -> list[str]:
        """Command of the node's Python inside."""
        return [*self._hidden.command, "-I", "-S"]

    def plan(
        self, command: Sequence[str], environment: Mapping[str, str], limits: Limits
    ) -> LaunchPlan:
        variables = dict(environment)
        if self.directories.gpus:
            given = variables.get("LD_LIBRARY_PATH")
            variables["LD_LIBRARY_PATH"] = ":".join(filter(None, [given, _GPU_LIBRARIES]))
        home = self.directories.home
        return self._plan(
            confinement_command(self._hidden.command),
            [*self._own_binds(), *self._hidden.binds, *self._hidden.masks],
            limits,
            # Where it cannot mount a file it unpacks it.
            {"APPTAINER_TMPDIR": str(home), "APPTAINER_CONFIGDIR": str(home / "apptainer")},
            program={
                "argv": list(command),
                "environment": variables,
                "directory": HOME,
                "processes": self._most_processes(limits),
            },
        )
