"""Fence of payloads by Apptainer: a container made of the node's own system, read-only.

The image is a folder of empty mount points, on which the same is shown as behind bubblewrap. For
nodes where Apptainer may make namespaces and others may not. Under root payloads have the accounts
that they have behind bubblewrap. Also what containers of other images have in common with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..files.job_directories import FILE_NAME, JobDirectories
from ..resources.limits import Limits
from .base import (
    Enclosure,
    Fence,
    LaunchPlan,
    Reservation,
    change_owner,
    confinement_command,
    denied_calls_filter,
    inner_confinement,
    outer_confinement,
    resource_limits,
    shell_script,
)
from .bwrap import account_of
from .host_view import ATTRIBUTES_FOLDER, ETC, HOME, PATH, TMP, is_hidden, program, shown_folders
from .network import NODE, NONE, OPEN, PORTAL, Network

#: All that root may, but for changing its account and giving up its rights.
_TO_DROP = (
    "CAP_AUDIT_CONTROL,CAP_AUDIT_READ,CAP_AUDIT_WRITE,CAP_BLOCK_SUSPEND,CAP_BPF,"
    "CAP_CHECKPOINT_RESTORE,CAP_CHOWN,CAP_DAC_OVERRIDE,CAP_DAC_READ_SEARCH,CAP_FOWNER,CAP_FSETID,"
    "CAP_IPC_LOCK,CAP_IPC_OWNER,CAP_KILL,CAP_LEASE,CAP_LINUX_IMMUTABLE,CAP_MAC_ADMIN,"
    "CAP_MAC_OVERRIDE,CAP_MKNOD,CAP_NET_ADMIN,CAP_NET_BIND_SERVICE,CAP_NET_BROADCAST,CAP_NET_RAW,"
    "CAP_PERFMON,CAP_SETFCAP,CAP_SYSLOG,CAP_SYS_ADMIN,CAP_SYS_BOOT,CAP_SYS_CHROOT,CAP_SYS_MODULE,"
    "CAP_SYS_NICE,CAP_SYS_PACCT,CAP_SYS_PTRACE,CAP_SYS_RAWIO,CAP_SYS_RESOURCE,CAP_SYS_TIME,"
    "CAP_SYS_TTY_CONFIG,CAP_WAKE_ALARM"
)


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
            directories, self.network, self._program, str(self._image), self._denied
        )


def make_open(folder: Path, top: Path) -> None:
    """Make a folder in `top`; it and all above it are open to other accounts, whatever the mask."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        folder.chmod(0o755)
        if folder == top:
            return
        folder = folder.parent


def _make_image(image: Path) -> Path:
    """Make the folder of empty mount points."""
    for name in ("dev", "proc", "sys", "root", "etc", "var", HOME, TMP, ATTRIBUTES_FOLDER):
        make_open(image / name.lstrip("/"), image)
    for path in shown_folders():
        mount_point = image / path.lstrip("/")
        if os.path.islink(path):
            mount_point.unlink(missing_ok=True)
            mount_point.symlink_to(os.readlink(path))
        else:
            make_open(mount_point, image)
    for path in _shown_of_etc():
        mount_point = image / path.lstrip("/")
        if os.path.isdir(path):
            make_open(mount_point, image)
        else:
            mount_point.touch()
    return image


def _shown_of_etc() -> list[str]:
    return [f"/etc/{name}" for name in ETC if os.path.exists(f"/etc/{name}")]


class ContainerEnclosure(Enclosure):
    """One job in a container of Apptainer: what does not depend on the image."""

    name = "apptainer"

    def __init__(
        self,
        directories: JobDirectories,
        network: Network,
        apptainer: str,
        image: str,
        denied: bytes,
    ) -> None:
        super().__init__(directories, network)
        self._denied = denied
        self._program = apptainer
        self._image = image
        self._uid = account_of(directories.owner) if os.geteuid() == 0 else None

    @property
    def home(self) -> str:
        return HOME

    @property
    def tmp(self) -> str:
        return TMP

    @property
    def attributes_file(self) -> str:
        return f"{ATTRIBUTES_FOLDER}/{FILE_NAME}"

    def enter(self) -> None:
        if self._uid is not None:
            change_owner(self.directories.folders(), self._uid)

    def _plan(
        self,
        first: Sequence[str],
        binds: Sequence[str],
        limits: Limits,
        variables: Mapping[str, str],
        **then: Any,
    ) -> LaunchPlan:
        """Launch plan whose first program inside is `first`; `then` says what it becomes."""
        words = ["--containall", "--cleanenv", "--no-home", "--pwd", "/", *self._rights()]
        if self.directories.gpus:
            words.append("--nv")
        addresses = self.network.addresses()
        if self.network.is_own:
            self._hosts.write_text(self.network.hosts(addresses))
            self._hosts.chmod(0o644)
        return LaunchPlan(
            argv=[self._program, "-s", "exec", *words, self._image, *first],
            # Apptainer takes folders from its environment too, where other accounts do not look.
            environment={"PATH": PATH, "APPTAINER_BIND": ",".join(binds), **variables},
            directory="/",
            confinement=replace(
                outer_confinement(self.network, addresses), watched=b"", may_connect=True
            ),
            inner_confinement=inner_confinement(self.network, self._denied, self._uid),
            guard=self.network.guard,
            uid=self._uid,
            portal=self.network.portal,
            helpers=2,
            limits=resource_limits(limits, has_own_account=self._uid is not None),
            is_signal_in_code=True,
            **then,
        )

    def _rights(self) -> list[str]:
        """Options for what the first program inside may: under root, give itself its account."""
        if self._uid is None:
            return ["--no-privs"]
        return ["--drop-caps", _TO_DROP]

    def _most_processes(self, limits: Limits) -> float | None:
        """Limit to set inside: only there the processes of this namespace alone count."""
        return limits.processes if self._uid is None else None

    @property
    def _hosts(self) -> Path:
        return self.directories.home / "hosts"

    def _own_binds(self) -> list[str]:
        """What shows the job's folders, and those that it shares with the node."""
        directories = self.directories
        binds = [f"{directories.tmp}:{TMP}", f"{directories.shm}:/dev/shm"]
        if self.network.is_own:
            binds.append(f"{self._hosts}:/etc/hosts:ro")
        binds += [
            f"{directories.attributes_folder}:{ATTRIBUTES_FOLDER}",
            f"{directories.sandbox}:{HOME}",
        ]
        for each in directories.shared:
            if os.path.isdir(each.path):
                binds.append(f"{each.path}:{each.path}:{'rw' if each.is_writable else 'ro'}")
        return binds


class _ApptainerEnclosure(ContainerEnclosure):
    """One job in a container made of the node's own system."""

    def hides(self, path: str) -> bool:
        return is_hidden(path, self.directories)

    def plan(
        self, command: Sequence[str], environment: Mapping[str, str], limits: Limits
    ) -> LaunchPlan:
        image = Path(self._image)
        for each in self.directories.shared:
            if os.path.isdir(each.path):
                # A place for it in the image, which no payload can write.
                make_open(image / each.path.lstrip("/"), image)
        shown = [each for each in shown_folders() if not os.path.islink(each)]
        binds = [f"{path}:{path}:ro" for path in [*shown, *_shown_of_etc()]]
        python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        return self._plan(
            confinement_command([python]),
            [*binds, *self._own_binds()],
            limits,
            {},
            stdin=shell_script(command, environment, HOME, self._most_processes(limits)),
        )
