"""A fence of Apptainer: a container that is made of the node's own system, read-only.

The image is a folder of empty places, on which the same is shown as behind bubblewrap. For nodes
where Apptainer may make namespaces and others may not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..files.job_directories import FILE_NAME, Room
from ..resources.limits import Limits
from .base import (
    Enclosure,
    Fence,
    Place,
    Plan,
    filter_of_calls,
    gate_words,
    inner_gate,
    outer_gate,
    resource_limits,
    shell_lines,
)
from .host_view import ETC, HOME, PATH, TMP, TOLD, is_hidden, program, shown_folders
from .network import NODE, NONE, OPEN, PORTAL, Network


class ApptainerFence(Fence):
    """In a container of Apptainer; payloads keep the pilot's account, without its view."""

    name = "apptainer"
    networks = (NODE, OPEN, PORTAL, NONE)

    def __init__(self, work_dir: Path, network: Network | None = None) -> None:
        super().__init__(network)
        self._denied = filter_of_calls()
        self._program = program("apptainer")
        self._image = _make_image(work_dir / "image")

    def enclose(self, room: Room, place: Place | None = None) -> Enclosure:
        return _Contained(room, self.network, self._program, self._image, self._denied)


def _make_image(image: Path) -> Path:
    """Make the folder of empty places."""
    for name in ("dev", "proc", "sys", "root", "etc", "var", HOME, TMP, TOLD):
        (image / name.lstrip("/")).mkdir(parents=True, exist_ok=True, mode=0o755)
    for path in shown_folders():
        place = image / path.lstrip("/")
        if os.path.islink(path):
            place.unlink(missing_ok=True)
            place.symlink_to(os.readlink(path))
        else:
            place.mkdir(parents=True, exist_ok=True, mode=0o755)
    for path in _shown_of_etc():
        place = image / path.lstrip("/")
        if os.path.isdir(path):
            place.mkdir(exist_ok=True, mode=0o755)
        else:
            place.touch()
    return image


def _shown_of_etc() -> list[str]:
    return [f"/etc/{name}" for name in ETC if os.path.exists(f"/etc/{name}")]


class _Contained(Enclosure):
    """One job in a container."""

    name = "apptainer"

    def __init__(
        self, room: Room, network: Network, apptainer: str, image: Path, denied: bytes
    ) -> None:
        super().__init__(room, network)
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
        return f"{TOLD}/{FILE_NAME}"

    def hides(self, path: str) -> bool:
        return is_hidden(path, self.room)

    def plan(self, command: Sequence[str], environment: Mapping[str, str], limits: Limits) -> Plan:
        words = ["--containall", "--cleanenv", "--no-home", "--no-privs", "--pwd", HOME]
        if self.room.gpus:
            words.append("--nv")
        addresses = self.network.addresses()
        if self.network.is_own:
            self._hosts.write_text(self.network.hosts(addresses))
        python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        return Plan(
            argv=[self._program, "-s", "exec", *words, str(self._image), *gate_words(python)],
            # Apptainer takes folders from its environment too, where other accounts do not look.
            environment={"PATH": PATH, "APPTAINER_BIND": self._binds()},
            directory="/",
            stdin=shell_lines(command, environment, HOME, limits.processes),
            gate=replace(outer_gate(self.network, addresses), watched=b"", may_connect=True),
            inner=inner_gate(self.network, self._denied),
            guard=self.network.guard,
            portal=self.network.portal,
            helpers=2,
            limits=resource_limits(limits),
            is_signal_in_code=True,
        )

    @property
    def _hosts(self) -> Path:
        return self.room.home / "hosts"

    def _binds(self) -> str:
        shown = [each for each in shown_folders() if not os.path.islink(each)]
        binds = [f"{path}:{path}:ro" for path in [*shown, *_shown_of_etc()]]
        room = self.room
        binds += [f"{room.tmp}:{TMP}", f"{room.shm}:/dev/shm"]
        if self.network.is_own:
            binds.append(f"{self._hosts}:/etc/hosts:ro")
        binds += [f"{room.told}:{TOLD}", f"{room.sandbox}:{HOME}"]
        for each in room.shared:
            if os.path.isdir(each.path):
                # A place for it in the image, which no payload can write.
                (self._image / each.path.lstrip("/")).mkdir(parents=True, exist_ok=True, mode=0o755)
                binds.append(f"{each.path}:{each.path}:{'rw' if each.is_writable else 'ro'}")
        return ",".join(binds)
