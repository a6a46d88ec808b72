"""Fence of payloads by Apptainer: a container made of the node's own system, read-only.

The image is a folder of empty mount points, on which the same is shown as behind bubblewrap. For
nodes where Apptainer may make namespaces and others may not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..files.job_directories import FILE_NAME, JobDirectories
from ..resources.limits import Limits
from .base import (
    Enclosure,
    Fence,
    LaunchPlan,
    Reservation,
    confinement_command,
    denied_calls_filter,
    inner_confinement,
    outer_confinement,
    resource_limits,
    shell_script,
)
from .host_view import ATTRIBUTES_FOLDER, ETC, HOME, PATH, TMP, is_hidden, program, shown_folders
from .network import NODE, NONE, OPEN, PORTAL, Network


class ApptainerFence(Fence):
    """In a container of Apptainer; payloads keep the pilot's account, without its view."""

    name = "apptainer"
    networks = (NODE, OPEN, PORTAL, NONE)

    def __init__(self, work_dir: Path, network: Network | None = None) -> None:
        super().__init__(network)
        self._denied = denied_calls_filter()
        self._program = program("apptainer")
        self._image = _make_image(work_dir / "image")

    def enclose(
        self, directories: JobDirectories, reservation: Reservation | None = None
    ) -> Enclosure:
        return _ApptainerEnclosure(
            directories, self.network, self._program, self._image, self._denied
        )


def _make_image(image: Path) -> Path:
    """Make the folder of empty mount points."""
    for name in ("dev", "proc", "sys", "root", "etc", "var", HOME, TMP, ATTRIBUTES_FOLDER):
        (image / name.lstrip("/")).mkdir(parents=True, exist_ok=True, mode=0o755)
    for path in shown_folders():
        mount_point = image / path.lstrip("/")
        if os.path.islink(path):
            mount_point.unlink(missing_ok=True)
            mount_point.symlink_to(os.readlink(path))
        else:
            mount_point.mkdir(parents=True, exist_ok=True, mode=0o755)
    for path in _shown_of_etc():
        mount_point = image / path.lstrip("/")
        if os.path.isdir(path):
            mount_point.mkdir(exist_ok=True, mode=0o755)
        else:
            mount_point.touch()
    return image


def _shown_of_etc() -> list[str]:
    return [f"/etc/{name}" for name in ETC if os.path.exists(f"/etc/{name}")]


class _ApptainerEnclosure(Enclosure):
    """One job in a container."""

    name = "apptainer"

    def __init__(
        self,
        directories: JobDirectories,
        network: Network,
        apptainer: str,
        image: Path,
        denied: bytes,
    ) -> None:
        super().__init__(directories, network)
        self._denied = denied
        self._program = apptainer
        self._image = image

    @property
    def home(self) -> str:
        return HOME

    @property
    def tmp(self) -> str:
        return TMP

    @property
    def attributes_file(self) -> str:
        return f"{ATTRIBUTES_FOLDER}/{FILE_NAME}"

    def hides(self, path: str) -> bool:
        return is_hidden(path, self.directories)

    def plan(
        self, command: Sequence[str], environment: Mapping[str, str], limits: Limits
    ) -> LaunchPlan:
        words = ["--containall", "--cleanenv", "--no-home", "--no-privs", "--pwd", HOME]
        if self.directories.gpus:
            words.append("--nv")
        addresses = self.network.addresses()
        if self.network.is_own:
            self._hosts.write_text(self.network.hosts(addresses))
        python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        return LaunchPlan(
            argv=[
                self._program,
                "-s",
                "exec",
                *words,
                str(self._image),
                *confinement_command(python),
            ],
            # Apptainer takes folders from its environment too, where other accounts do not look.
            environment={"PATH": PATH, "APPTAINER_BIND": self._binds()},
            directory="/",
            stdin=shell_script(command, environment, HOME, limits.processes),
            confinement=replace(
                outer_confinement(self.network, addresses), watched=b"", may_connect=True
            ),
            inner_confinement=inner_confinement(self.network, self._denied),
            guard=self.network.guard,
            portal=self.network.portal,
            helpers=2,
            limits=resource_limits(limits),
            is_signal_in_code=True,
        )

    @property
    def _hosts(self) -> Path:
        return self.directories.home / "hosts"

    def _binds(self) -> str:
        shown = [each for each in shown_folders() if not os.path.islink(each)]
        binds = [f"{path}:{path}:ro" for path in [*shown, *_shown_of_etc()]]
        directories = self.directories
        binds += [f"{directories.tmp}:{TMP}", f"{directories.shm}:/dev/shm"]
        if self.network.is_own:
            binds.append(f"{self._hosts}:/etc/hosts:ro")
        binds += [
            f"{directories.attributes_folder}:{ATTRIBUTES_FOLDER}",
            f"{directories.sandbox}:{HOME}",
        ]
        for each in directories.shared:
            if os.path.isdir(each.path):
                # A place for it in the image, which no payload can write.
                (self._image / each.path.lstrip("/")).mkdir(parents=True, exist_ok=True, mode=0o755)
                binds.append(f"{each.path}:{each.path}:{'rw' if each.is_writable else 'ro'}")
        return ",".join(binds)
