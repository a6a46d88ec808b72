"""A fence of bubblewrap: namespaces of its own, and a file system made of what it may see.

Inside there are the system's folders, read-only, and the job's own. The processes of the payload
see no others, and all die with the first of them, whatever they do. System calls are filtered.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .fence import (
    FILE_NAME,
    Enclosure,
    Fence,
    FenceFails,
    Place,
    Plan,
    Room,
    filter_of_calls,
    outer_gate,
    owned_by,
    resource_limits,
    shell_lines,
)
from .network import NODE, NONE, OPEN, PORTAL, Network
from .watchdog import Limits

HOME = "/job"
TMP = "/tmp"
TOLD = "/run/pilotage"
#: Numbers that no distribution gives to accounts, for payloads of root's pilots.
ACCOUNTS = range(60_710, 65_000)

#: What every fenced program sees of its host, where it is there: scripts of nodes too.
BASE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: A payload sees the software of its site besides.
SYSTEM = (*BASE, "/opt", "/cvmfs", "/sw")
ETC = (
    *("alternatives", "ca-certificates", "crypto-policies", "group", "grid-security", "host.conf"),
    *("hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "passwd", "pki", "protocols", "resolv.conf", "services", "ssl", "timezone"),
)
#: What gives the payload its account, and takes all of this from it.
_SETPRIV_MAY = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
_GPU_DEVICES = ("/dev/nvidia", "/dev/dri", "/dev/kfd")
#: Where the programs of fences are looked for.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class BwrapFence(Fence):
    """Behind bubblewrap; root's payloads besides under an account of who submitted them."""

    name = "bwrap"
    networks = (NODE, OPEN, PORTAL, NONE)

    def __init__(self, network: Network | None = None) -> None:
        super().__init__(network)
        self._program = program("bwrap")
        self._denied = filter_of_calls()
        self._setpriv = ""
        if os.geteuid() == 0:
            self._setpriv = program("setpriv")

    def enclose(self, room: Room, place: Place | None = None) -> Enclosure:
        return _Bwrapped(room, self.network, [self._program, self._setpriv], self._denied)


def account_of(owner: str) -> int:
    """The account of an owner's payloads: the same on every node, so that they can work on the
    same files in folders that the node shares.
    """
    digest = hashlib.sha256(owner.encode(errors="replace")).digest()
    return ACCOUNTS[int.from_bytes(digest[:8], "big") % len(ACCOUNTS)]


class _Bwrapped(Enclosure):
    """One job behind bubblewrap."""

    name = "bwrap"

    def __init__(
        self, room: Room, network: Network, programs: Sequence[str], denied: bytes
    ) -> None:
        super().__init__(room, network)
        self._program, self._setpriv = programs
        self._denied = denied
        self._uid = account_of(room.owner) if self._setpriv else None

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

    def enter(self) -> None:
        if self._uid is not None:
            owned_by(self.room.folders(), self._uid)

    def plan(self, command: Sequence[str], environment: Mapping[str, str], limits: Limits) -> Plan:
        addresses = self.network.addresses()
        files = {"@OPTIONS@": b"".join(os.fsencode(word) + b"\0" for word in self._words())}
        words = ["--args", "@OPTIONS@"]
        if self._denied:
            files["@DENIED@"] = self._denied
            words += ["--seccomp", "@DENIED@"]
        if self.network.is_own:
            files["@HOSTS@"] = self.network.hosts(addresses).encode()
            words += ["--perms", "0644", "--ro-bind-data", "@HOSTS@", "/etc/hosts"]
        return Plan(
            # The payload's own environment must reach nothing that runs with more rights than it:
            # a variable like LD_PRELOAD would be code of its own there.
            argv=[self._program, *words, "--", *self._become(), "/bin/sh", "-s"],
            environment={"PATH": PATH},
            directory="/",
            stdin=shell_lines(command, environment, HOME, self._most_processes(limits)),
            files=files,
            gate=outer_gate(self.network, addresses),
            guard=self.network.guard,
            uid=self._uid,
            portal=self.network.portal,
            helpers=2,
            limits=resource_limits(limits, has_own_account=self._uid is not None),
            is_signal_in_code=True,
        )

    def _become(self) -> list[str]:
        """What gives the payload its account, under root."""
        if self._uid is None:
            return []
        account = str(self._uid)
        words = ["--reuid", account, "--regid", account, "--clear-groups", "--no-new-privs"]
        words += ["--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all"]
        return [self._setpriv, *words, "--"]

    def _most_processes(self, limits: Limits) -> float | None:
        """What is to be set inside: only there the processes of this namespace alone count."""
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
        room = self.room
        words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(room.shm), "/dev/shm"]
        words += self._gpu_words()
        words += ["--remount-ro", "/dev", "--bind", str(room.tmp), TMP]
        words += ["--bind", str(room.told), TOLD, "--bind", str(room.sandbox), HOME]
        # On top of the others: it may be below the place of one of them.
        words += shared_words(room)
        return [*words, "--remount-ro", "/", "--chdir", "/"]

    def _gpu_words(self) -> list[str]:
        if not self.room.gpus:
            return []
        devices = [os.path.join("/dev", name) for name in sorted(os.listdir("/dev"))]
        wanted = [each for each in devices if each.startswith(_GPU_DEVICES)]
        return [word for each in wanted for word in ("--dev-bind-try", each, each)]


def shown_folders(system: Sequence[str] = SYSTEM) -> list[str]:
    """The folders of the host that are there and seen, that of our interpreter included."""
    prefix = os.path.realpath(sys.base_prefix)
    shown = [each for each in system if os.path.isdir(each)]
    if prefix == "/" or any(is_below(prefix, each) for each in shown):
        return shown
    return [*shown, prefix]


def host_words(folders: Sequence[str]) -> list[str]:
    """The options that show folders of the host, and of `/etc` what programs need, read-only."""
    words: list[str] = []
    for path in folders:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
            continue
        # What is made on the way by itself would be closed to other accounts.
        for parent in _folders_above(path):
            words += ["--dir", parent]
        words += ["--ro-bind", path, path]
    words += ["--dir", "/etc"]
    for name in ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def system_words() -> list[str]:
    """The options that show the system to a payload."""
    words = host_words(shown_folders())
    return [*words, "--dir", "/var", "--dir", "/run", "--symlink", TMP, "/var/tmp"]


def _folders_above(path: str) -> list[str]:
    """From the top down, without the top. Parents of a path have no slices in Python 3.9."""
    return [str(each) for each in reversed(Path(path).parents)][1:]


def shared_words(room: Room) -> list[str]:
    """The options that show what a job shares with the node; what is not there is left out."""
    words: list[str] = []
    for each in room.shared:
        for parent in _folders_above(each.path):
            words += ["--dir", parent]
        words += ["--bind-try" if each.is_writable else "--ro-bind-try", each.path, each.path]
    return words


def is_hidden(path: str, room: Room) -> bool:
    """Tell whether a path of the node is not there for a payload."""
    seen = [*shown_folders(), *(each.path for each in room.shared)]
    return not any(is_below(path, each) for each in seen)


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path lies in a folder or is it."""
    return os.path.commonpath([path, folder]) == folder


def program(name: str) -> str:
    """Where a program of the system is; raises `FenceFails`."""
    found = shutil.which(name, path=PATH)
    if found is None:
        raise FenceFails(f"{name} is not installed on this node")
    return found
