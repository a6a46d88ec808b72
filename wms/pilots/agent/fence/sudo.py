"""Fence of payloads by accounts: `sudo -u` runs each under one of the node's accounts for them.

The accounts are called `pilotage1`, `pilotage2` and so on; who runs the node makes them, and lets
the pilot's account act for them. A queue may map users and groups to accounts of their own (see
`mapped_accounts`). Folders of a payload belong to its account, closed to all others.
Files go in and out through programs of that account.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..files.disk_usage import Entries
from ..files.job_directories import FILE_NAME, JobDirectories
from ..programs import NoAnswer, answer_of
from ..resources.limits import Limits
from .base import (
    TOKEN_FILE,
    Confinement,
    Enclosure,
    Fence,
    FenceUnusable,
    LaunchPlan,
    Reservation,
    confinement_command,
    denied_calls_filter,
    inner_confinement,
    resource_limits,
    shell_script,
)
from .host_view import PATH, program
from .mapped_accounts import NO_MAP, AccountMap, Unaccounted, reserve_for_all, usable_map
from .network import NODE, OPEN, Network
from .unix_accounts import AccountPool, PayloadAccount, folder_of_locks

ACCOUNT = "pilotage"
MOST_ACCOUNTS = 1024
_TIME_LIMIT_S = 600.0
#: For each account of a map, and for all of them.
_TRIAL_TIMEOUT_S = 10.0
_TRIALS_TIMEOUT_S = 60.0
_IS_NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 9))"
_SIGNAL = 'kill -s "$1" -- -1'
# Open to all accounts, and on disk.
_BASE = "/var/tmp"
# Where everybody may write; what an account left there, its next payload would find.
_OWN = 'find /tmp /var/tmp /dev/shm -mindepth 1 -maxdepth 1 -user "$(id -u)" -exec'
_COUNT = f"{_OWN} find {{}} -printf '%k\\n' ';' 2>/dev/null"
# Whatever still runs, because its supervisor was killed, would write on; what is closed is opened.
_REMOVE = (
    "kill -s KILL -- -1 2>/dev/null; "
    f'{_OWN} chmod -R u+rwx {{}} + -exec rm -rf {{}} + 2>/dev/null; rm -rf -- "$1"'
)

# The token comes through a pipe: no list of processes shows it.
_WRITE = 'umask 077; new=$(mktemp "$1-XXXXXXXX") && cat >"$new" && mv -f -T -- "$new" "$1"'

log = logging.getLogger("pilot")


class SudoFence(Fence):
    """Another account for each payload that runs at a time."""

    name = "sudo"
    networks = (NODE, OPEN)
    needs_reservation = True

    def __init__(self, network: Network | None = None, accounts: AccountMap = NO_MAP) -> None:
        super().__init__(network)
        self._program = program("sudo")
        self._denied = denied_calls_filter()
        names = _existing_accounts()
        if not names:
            raise FenceUnusable(f"this node has no account {ACCOUNT}1")
        self._accounts = AccountPool(names, folder_of_locks())
        self._python = _python_of(self._program, names[0])
        self._trials_until = time.monotonic() + _TRIALS_TIMEOUT_S
        self._map, self.account_faults = usable_map(accounts, self._why_refused)

    def reserve(self) -> Reservation:
        return reserve_for_all(self._map, self._accounts)

    def _why_refused(self, account: str) -> str:
        """Reason why no payload can be started under an account; empty when one can."""
        command = [self._program, "-n", "-u", account, "--", self._python, "-I", "-S", "-c", ""]
        if time.monotonic() > self._trials_until:
            return f"{account} was not tried: the others took too long"
        try:
            answer_of(command, _TRIAL_TIMEOUT_S)
        except NoAnswer as error:
            return f"{account}: {error}"
        return ""

    def enclose(
        self, directories: JobDirectories, reservation: Reservation | None = None
    ) -> Enclosure:
        if isinstance(reservation, Unaccounted):
            raise FenceUnusable(reservation.reason)
        account = (
            reservation if isinstance(reservation, PayloadAccount) else self._accounts.acquire()
        )
        inside = inner_confinement(self.network, self._denied)
        return _SudoEnclosure(
            directories, self._program, account, _InnerProgram(self._python, inside, self.network)
        )


@dataclass(frozen=True)
class _InnerProgram:
    """First program under the payload's account: interpreter, confinement, network."""

    python: str
    confinement: Confinement
    network: Network


def _python_of(sudo: str, account: str) -> str:
    """Python that accounts for payloads can run; the pilot's may be closed to them."""
    own = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    for python in (own, "/usr/bin/python3"):
        command = [sudo, "-n", "-u", account, "--", python, "-I", "-S", "-c", _IS_NEW_ENOUGH]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": PATH},
            cwd="/",
            timeout=_TIME_LIMIT_S,
            check=False,
        )
        if done.returncode == 0:
            return python
    said = " ".join(done.stderr.decode(errors="replace").split())
    raise FenceUnusable(f"{account} can run no Python 3.9 or newer: {said or own}")


def _existing_accounts() -> list[str]:
    names = []
    for number in range(1, MOST_ACCOUNTS + 1):
        try:
            pwd.getpwnam(f"{ACCOUNT}{number}")
        except KeyError:
            break
        names.append(f"{ACCOUNT}{number}")
    return names


class _SudoEnclosure(Enclosure):
    """One job under an account of its own."""

    name = "sudo"

    def __init__(
        self, directories: JobDirectories, sudo: str, account: PayloadAccount, inside: _InnerProgram
    ) -> None:
        super().__init__(directories, inside.network)
        self._inside = inside
        self._account = account
        self._as_account = [sudo, "-n", "-u", account.name, "--"]
        # What a pilot that died in the middle has left is not for this job.
        self._signal("KILL")
        self._folder = self._make_folder()
        self.disk = Path(_BASE)

    @property
    def home(self) -> str:
        return f"{self._folder}/sandbox"

    @property
    def tmp(self) -> str:
        return f"{self._folder}/tmp"

    @property
    def attributes_file(self) -> str:
        return f"{self._folder}/attributes/{FILE_NAME}"

    def write_token(self, text: str) -> None:
        path = f"{self._folder}/attributes/{TOKEN_FILE}"
        with tempfile.TemporaryFile() as source:
            source.write(text.encode())
            source.seek(0)
            self._run(["/bin/sh", "-c", _WRITE, "sh", path], stdin=source)

    def enter(self) -> None:
        with subprocess.Popen(
            ["tar", "-C", str(self.directories.sandbox), "-cf", "-", "."],
            stdout=subprocess.PIPE,
            env={"PATH": PATH},
        ) as packing:
            self._run(["tar", "-C", self.home, "-xf", "-"], stdin=packing.stdout)
        if packing.returncode:
            raise OSError(f"the inputs cannot be packed: tar ended with {packing.returncode}")
        # The pilot reads the attributes that the payload tells, and they are no secret.
        self.directories.attributes_folder.rmdir()
        self.directories.attributes_folder.symlink_to(f"{self._folder}/attributes")

    def plan(
        self, command: Sequence[str], environment: Mapping[str, str], limits: Limits
    ) -> LaunchPlan:
        return LaunchPlan(
            argv=[*self._as_account, *confinement_command([self._inside.python])],
            environment={"PATH": PATH},
            directory="/",
            stdin=shell_script(command, environment, self.home, limits.processes),
            inner_confinement=self._inside.confinement,
            guard=self.network.guard,
            helpers=1,
            signal_argv=[*self._as_account, "/bin/sh", "-c", _SIGNAL, "sh", "@SIGNAL@"],
            limits=resource_limits(limits),
            descriptors=[self._account.lock],
        )

    def entries(self) -> Entries:
        with subprocess.Popen(
            [*self._as_account, "/bin/sh", "-c", _COUNT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": PATH},
            cwd="/",
        ) as counting:
            assert counting.stdout is not None
            # When nobody reads on, what counts cannot write on, and ends.
            for line in counting.stdout:
                yield int(line) * 1024 if line.strip().isdigit() else 0

    def leave(self, outputs: Sequence[str]) -> None:
        """Fetch the outputs; those that are no plain files count as missing."""
        if not outputs:
            return
        names = [f"./{name}".rstrip("/") for name in outputs]
        with subprocess.Popen(
            [*self._as_account, "tar", "-C", self.home, "-chf", "-", "--", *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": PATH},
        ) as packing:
            assert packing.stdout is not None
            try:
                _unpack(packing.stdout, self.directories, set(names))
            except (tarfile.TarError, OSError) as error:
                log.warning("not all outputs could be fetched: %s", error)
            # What is left is read, or the other side would wait for ever.
            shutil.copyfileobj(packing.stdout, _Nothing())

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._run(["/bin/sh", "-c", _REMOVE, "sh", self._folder], is_checked=False)
        self._account.close()

    def _make_folder(self) -> str:
        script = (
            "umask 077; "
            'folder=$(mktemp -d "$1/pilotage-job-XXXXXXXXXX") && chmod 711 "$folder" && '
            'cd "$folder" && mkdir sandbox tmp attributes && chmod 755 attributes && pwd'
        )
        return self._run(["/bin/sh", "-c", script, "sh", _BASE]).decode().strip()

    def _signal(self, name: str) -> None:
        self._run(["/bin/sh", "-c", _SIGNAL, "sh", name], is_checked=False)

    def _run(
        self, command: list[str], *, stdin: IO[bytes] | None = None, is_checked: bool = True
    ) -> bytes:
        """Run a program as the payload's account; return what it prints. Raises OSError."""
        try:
            done = subprocess.run(
                [*self._as_account, *command],
                stdin=stdin or subprocess.DEVNULL,
                capture_output=True,
                env={"PATH": PATH},
                cwd="/",
                timeout=_TIME_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(f"{command[0]} takes longer than {_TIME_LIMIT_S:g} s") from error
        if is_checked and done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())
            raise OSError(f"{command[0]} as {self._as_account[3]}: {said or done.returncode}")
        return done.stdout


class _Nothing:
    """A file that keeps nothing."""

    def write(self, content: bytes) -> int:
        return len(content)


def _is_named(path: str, names: set[str]) -> bool:
    """Tell whether a member of an archive has one of these names, or lies in such a folder."""
    parts = path.split("/")
    above = {"/".join(parts[:number]) for number in range(2, len(parts) + 1)}
    return ".." not in parts and not above.isdisjoint(names)


def _unpack(stream: IO[bytes], directories: JobDirectories, names: set[str]) -> None:
    """Extract the named plain files, and those of named folders, from an archive that another
    account has made.
    """
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            target = directories.sandbox / member.name
            if not _is_named(member.name, names):
                continue
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                target.unlink()
            with target.open("wb") as sink:
                shutil.copyfileobj(content, sink)
