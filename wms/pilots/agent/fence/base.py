"""Base classes of payload fences (`Fence`, `Enclosure`, `LaunchPlan`), which fence nothing.

A `Fence` is chosen once for a pilot; it makes an `Enclosure` for each job. The enclosure has the
paths that a payload sees, and the `LaunchPlan` of the program that starts the payload inside. Also
what fences have in common: errors, confinement, limits of processes, scripts, change of owners.
"""

from __future__ import annotations

import logging
import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..files import sandbox
from ..files.disk_usage import Entries, entries_below
from ..files.job_directories import JobDirectories
from ..inline_program import program_of
from ..resources.limits import Limits
from ..supervisor import network_guard
from . import syscall_filter
from .network import OPEN, Network

#: File with a payload's bearer token, beside that of its attributes.
TOKEN_FILE = "bearer_token"

log = logging.getLogger("pilot")


class FenceUnusable(Exception):
    """This fence cannot be used on this node; the text says why."""


class NoFreeAccount(OSError):
    """All accounts for payloads are in use."""


@dataclass(frozen=True)
class Confinement:
    """Confinement of a process before it becomes a payload (see `supervisor.confinement`)."""

    has_own_keys: bool = True
    has_own_network: bool = False
    #: Addresses in a network of its own that lead out.
    listens_at: Sequence[tuple[str, int]] = ()
    #: Account that it changes to, where it is root's.
    account: int | None = None
    has_no_capabilities: bool = False
    #: Filters of system calls: what a guard is asked of, and what is denied.
    watched: bytes = b""
    denied: bytes = b""
    #: Else the kernel lets it open no connection of TCP: a guard does.
    may_connect: bool = True


@dataclass(frozen=True)
class LaunchPlan:
    """Launch of a payload's first program; in `argv`, names of `files` stand for their descriptors.

    It is started confined by `confinement`. With `inner_confinement` it is a fence that starts the
    program of that confinement (see `confinement_command`), and `stdin` is for what comes after, or
    it becomes `program`.
    `guard` is the method of the network guard, `uid` the payload's account where the supervisor's
    is root's, `portal` what a relay leads to. `helpers` are the levels of processes that belong to
    the fence; `signal_argv` is what signals the payload where the pilot itself may not, with
    `@SIGNAL@` for the signal's name.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    stdin: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    confinement: Confinement | None = None
    guard: str = ""
    inner_confinement: Confinement | None = None
    #: `argv`, `environment`, `directory` and most `processes` of a program.
    program: Mapping[str, Any] | None = None
    uid: int | None = None
    portal: tuple[str, int] | None = None
    helpers: int = 0
    signal_argv: Sequence[str] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    descriptors: Sequence[int] = ()
    #: The fence tells a signal as 128 and its number.
    is_signal_in_code: bool = False


class Enclosure:
    """Enclosure of one job without any fence: under the pilot's account, with all that it sees."""

    name = "none"

    def __init__(self, directories: JobDirectories, network: Network | None = None) -> None:
        self.directories = directories
        self.network = network or Network()
        #: A folder on the disk where the payload writes.
        self.disk = directories.home
        # Account of the payload, where the pilot is root's and it has another.
        self._uid: int | None = None

    @property
    def home(self) -> str:
        """Working directory, as the payload sees it."""
        return str(self.directories.sandbox)

    @property
    def tmp(self) -> str:
        """Directory for temporary files, as the payload sees it."""
        return str(self.directories.tmp)

    @property
    def attributes_file(self) -> str:
        """File for attributes, as the payload sees it."""
        return str(self.directories.attributes_file)

    @property
    def token_file(self) -> str:
        """File with the payload's bearer token, as the payload sees it."""
        return f"{os.path.dirname(self.attributes_file)}/{TOKEN_FILE}"

    def write_token(self, text: str) -> None:
        """Put a bearer token where the payload alone reads it, in place of the one before.

        Call it after `enter`. Raises OSError.
        """
        write_private(self.directories.attributes_folder, TOKEN_FILE, text.encode(), self._uid)

    def executable(self, name: str) -> str:
        """Path of the executable as the payload sees it; raises `BadPath` where it cannot exist."""
        path = sandbox.locate_executable(self.directories.sandbox, name)
        if path == name:
            return name
        return f"{self.home}/{os.path.relpath(path, os.path.realpath(self.directories.sandbox))}"

    @property
    def has_node_system(self) -> bool:
        """Whether the payload sees the node's programs under their paths."""
        return True

    def hides(self, path: str) -> bool:
        """Tell whether a file of the node cannot be seen inside."""
        return False

    def enter(self) -> None:
        """Hand the directories over to the payload, with all that is in them now."""

    def plan(
        self, command: Sequence[str], environment: Mapping[str, str], limits: Limits
    ) -> LaunchPlan:
        """Launch plan of `command`, with exactly this environment."""
        return LaunchPlan(
            argv=command,
            environment=environment,
            directory=str(self.directories.sandbox),
            limits=resource_limits(limits),
        )

    def entries(self) -> Entries:
        """Sizes of its files on disk, one after the other. Raises TooDeep."""
        return entries_below(self.directories.folders())

    def leave(self, outputs: Sequence[str]) -> None:
        """Take the directories back when nothing of the payload runs, with these outputs."""

    def close(self) -> None:
        """Give back what was held for this job."""


class Reservation:
    """Reservation of a fence for one job: empty, where the fence takes in any number."""

    def refused(self) -> dict[str, list[str]]:
        """Users and groups whose jobs it is not for, as a claim tells them."""
        return {}

    def choose(self, owner: str, group: str) -> Reservation:
        """Reservation for a job of this owner, in this group; what else was reserved is free."""
        return self

    def close(self) -> None:
        """Release it; may be called again."""


class Fence:
    """No fence, and the base class of all fences."""

    name = "none"
    #: Networks that its payloads can have. Nothing keeps one without a fence from the node's.
    networks: tuple[str, ...] = (OPEN,)
    #: Others on this node may have taken the last place at any moment.
    needs_reservation = False
    #: Why accounts that the queue maps users to cannot be used on this node.
    account_faults: Sequence[str] = ()

    def __init__(self, network: Network | None = None) -> None:
        """Raises FenceUnusable, and OSError, where it cannot give payloads this network."""
        self.network = (network or Network()).guarded(has_other_account=self.needs_reservation)
        if self.network.name not in self.networks:
            raise FenceUnusable(
                f"payloads cannot be given the network {self.network.name!r}: "
                f"{self.name} leaves them in the node's"
            )

    def reserve(self) -> Reservation:
        """Make a reservation for one job. Raises `NoFreeAccount`."""
        return Reservation()

    def enclose(
        self, directories: JobDirectories, reservation: Reservation | None = None
    ) -> Enclosure:
        """Enclose one job, under the reservation that was made for it. Raises OSError."""
        return Enclosure(directories, self.network)


def outer_confinement(network: Network, addresses: Sequence[str]) -> Confinement:
    """Confinement before a fence is set up, for a payload in this network. Raises OSError."""
    port = network.portal[1] if network.portal else 0
    confinement = Confinement(
        has_own_network=network.is_own, listens_at=[(each, port) for each in addresses]
    )
    return replace(confinement, **_watching(network.guard))


def inner_confinement(network: Network, denied: bytes, account: int | None = None) -> Confinement:
    """Confinement behind a fence that is another's program. Raises OSError."""
    confinement = Confinement(has_no_capabilities=True, denied=denied, account=account)
    return replace(confinement, **_watching(network.guard))


def _watching(method: str) -> dict[str, Any]:
    if not method:
        return {}
    watched = syscall_filter.watched(gives_sockets=method == network_guard.FILTERS)
    return {"watched": watched, "may_connect": method != network_guard.CONNECTS}


def confinement_command(python: Sequence[str]) -> list[str]:
    """Command of the first program behind a fence that is another's program."""
    return [*python, "-I", "-S", "-c", program_of("supervisor.confinement")]


def denied_calls_filter() -> bytes:
    """Filter of system calls denied behind a fence; empty where none is known for this machine."""
    try:
        return syscall_filter.denied()
    except syscall_filter.NoFilter as error:
        log.warning("system calls of payloads are not filtered: %s", error)
        return b""


def resource_limits(limits: Limits, *, has_own_account: bool = False) -> dict[str, int]:
    """Limits (rlimits) of each process. RLIMIT_NPROC counts the processes of a whole account."""
    rlimits = {"RLIMIT_CORE": 0}
    if limits.disk_mb is not None:
        # Of a single file; stdout is one too. A little more, so that the watchdog tells the reason.
        rlimits["RLIMIT_FSIZE"] = int(limits.disk_mb * 2**20) + 2**20
    if limits.cpu_s is not None:
        # For each process: the watchdog looks at their sum, and is to be the first to act.
        rlimits["RLIMIT_CPU"] = int(limits.cpu_s + limits.grace_s) + 60
    if has_own_account and limits.processes is not None:
        rlimits["RLIMIT_NPROC"] = int(limits.processes)
    return rlimits


def shell_script(
    command: Sequence[str], environment: Mapping[str, str], directory: str, processes: float | None
) -> str:
    """Script for /bin/sh that becomes `command` with this environment, in this directory.

    A variable whose name no shell knows is left out.
    """
    lines = [f"cd -- {shlex.quote(directory)} || exit 126"]
    for name, value in environment.items():
        if name.isidentifier() and name.isascii():
            lines.append(f"export {name}={shlex.quote(value)}")
    if processes is not None:
        # The letter is one thing in bash and another in dash.
        most = int(processes)
        lines.append(f"ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null")
    lines.append(f"exec {shlex.join(command)} </dev/null")
    return "\n".join(lines) + "\n"


def write_private(folder: Path, name: str, content: bytes, uid: int | None) -> None:
    """Put a file that its owner alone reads into a folder that a payload may change at will.

    No link in there is followed, and readers see the old content or the new one.
    """
    new = f".{name}-{secrets.token_hex(8)}"
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(new, flags, 0o600, dir_fd=directory)
        with open(descriptor, "wb") as sink:
            if uid is not None:
                os.fchown(descriptor, uid, uid)
            sink.write(content)
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        os.close(directory)


def change_owner(folders: Sequence[Path], uid: int) -> None:
    """Give folders and all that is in them to an account; root can."""
    unseen = [os.fspath(each) for each in folders]
    while unseen:
        path = unseen.pop()
        os.chown(path, uid, uid, follow_symlinks=False)
        if os.path.isdir(path) and not os.path.islink(path):
            unseen += [os.path.join(path, name) for name in os.listdir(path)]
