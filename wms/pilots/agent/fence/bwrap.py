"""Fence of payloads by bubblewrap: namespaces, and a file system of what the payload may see.

Inside there are the system's folders, read-only, and the job's own. The processes of the payload
see no others, and all die with the first of them, whatever they do. System calls are filtered. Also
the Unix account (number) of an owner's payloads where root runs the pilot.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence

from ..files.job_directories import FILE_NAME, JobDirectories
from ..resources.limits import Limits
from .base import (
    Enclosure,
    Fence,
    LaunchPlan,
    Reservation,
    change_owner,
    denied_calls_filter,
    outer_confinement,
    resource_limits,
    shell_script,
)
from .host_view import (
    ATTRIBUTES_FOLDER,
    HOME,
    PATH,
    TMP,
    is_hidden,
    program,
    shared_words,
    system_words,
)
from .network import NODE, NONE, OPEN, PORTAL, Network

#: Numbers that no distribution gives to accounts, for payloads of root's pilots.
ACCOUNTS = range(60_710, 65_000)

#: Capabilities of setpriv, which gives the payload its account and drops them.
_SETPRIV_MAY = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
_GPU_DEVICES = ("/dev/nvidia", "/dev/dri", "/dev/kfd")


class BwrapFence(Fence):
    """Fence of bubblewrap; root's payloads run under an account of who submitted them as well."""

    name = "bwrap"
    networks = (NODE, OPEN, PORTAL, NONE)

    def __init__(self, network: Network | None = None) -> None:
        super().__init__(network)
        self._program = program("bwrap")
        self._denied = denied_calls_filter()
        self._setpriv = ""
        if os.geteuid() == 0:
            self._setpriv = program("setpriv")

    def enclose(
        self, directories: JobDirectories, reservation: Reservation | None = None
    ) -> Enclosure:
        return _BwrapEnclosure(
            directories, self.network, [self._program, self._setpriv], self._denied
        )


def account_of(owner: str) -> int:
    """Account of an owner's payloads: the same on every node.

    So they can work on the same files in folders that the node shares.
    """
    digest = hashlib.sha256(owner.encode(errors="replace")).digest()
    return ACCOUNTS[int.from_bytes(digest[:8], "big") % len(ACCOUNTS)]


class _BwrapEnclosure(Enclosure):
    """One job behind bubblewrap."""

    name = "bwrap"

    def __init__(
        self, directories: JobDirectories, network: Network, programs: Sequence[str], denied: bytes
    ) -> None:
        super().__init__(directories, network)
        self._program, self._setpriv = programs
        self._denied = denied
        self._uid = account_of(directories.owner) if self._setpriv else None

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

    def enter(self) -> None:
        if self._uid is not None:
            change_owner(self.directories.folders(), self._uid)

    def plan(
        self, command: Sequence[str], environment: Mapping[str, str], limits: Limits
    ) -> LaunchPlan:
        addresses = self.network.addresses()
        files = {"@OPTIONS@": b"".join(os.fsencode(word) + b"\0" for word in self._words())}
        words = ["--args", "@OPTIONS@"]
        if self._denied:
            files["@DENIED@"] = self._denied
            words += ["--seccomp", "@DENIED@"]
        if self.network.is_own:
            files["@HOSTS@"] = self.network.hosts(addresses).encode()
            words += ["--perms", "0644", "--ro-bind-data", "@HOSTS@", "/etc/hosts"]
        return LaunchPlan(
            # The payload's own environment must reach nothing that runs with more rights than it:
            # a variable like LD_PRELOAD would be code of its own there.
            argv=[self._program, *words, "--", *self._become(), "/bin/sh", "-s"],
            environment={"PATH": PATH},
            directory="/",
            stdin=shell_script(command, environment, HOME, self._most_processes(limits)),
            files=files,
            confinement=outer_confinement(self.network, addresses),
            guard=self.network.guard,
            uid=self._uid,
            portal=self.network.portal,
            helpers=2,
            limits=resource_limits(limits, has_own_account=self._uid is not None),
            is_signal_in_code=True,
        )

    def _become(self) -> list[str]:
        """Command that gives the payload its account, under root."""
        if self._uid is None:
            return []
        account = str(self._uid)
        words = ["--reuid", account, "--regid", account, "--clear-groups", "--no-new-privs"]
        words += ["--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all"]
        return [self._setpriv, *words, "--"]

    def _most_processes(self, limits: Limits) -> float | None:
        """Limit to set inside: only there the processes of this namespace alone count."""
        return limits.processes if self._uid is None else None

    def _words(self) -> list[str]:
        words = ["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc"]
        words += ["--unshare-uts", "--unshare-cgroup-try", "--clearenv"]
        if self._uid is None:
            words.append("--unshare-user")
        else:
            words += ["--cap-drop", "ALL"]
            words += [word for name in _SETPRIV_MAY for word in ("--cap-add", name)]
        words += system_words()
        directories = self.directories
        words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(directories.shm), "/dev/shm"]
        words += self._gpu_words()
        words += ["--remount-ro", "/dev", "--bind", str(directories.tmp), TMP]
        words += [
            "--bind",
            str(directories.attributes_folder),
            ATTRIBUTES_FOLDER,
            "--bind",
            str(directories.sandbox),
            HOME,
        ]
        # On top of the others: it may be below the place of one of them.
        words += shared_words(directories)
        return [*words, "--remount-ro", "/", "--chdir", "/"]

    def _gpu_words(self) -> list[str]:
        if not self.directories.gpus:
            return []
        devices = [os.path.join("/dev", name) for name in sorted(os.listdir("/dev"))]
        wanted = [each for each in devices if each.startswith(_GPU_DEVICES)]
        return [word for each in wanted for word in ("--dev-bind-try", each, each)]
