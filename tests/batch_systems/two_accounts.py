"""Real sshd on a loopback port that lets in two accounts, each by a key of its own.

The accounts exist in a mount namespace of the sshd alone, and nowhere on this host: for that the
tests have to run as root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.batch_systems.packages import ensure_programs, program
from tests.batch_systems.services import Unavailable, free_ports, wait_until
from tests.batch_systems.sshd import PACKAGES, START_LIMIT_S, _children, make_key

#: Accounts with their user ids.
ACCOUNTS = {"pilots-a": 64_998, "pilots-b": 64_999}
_CONFIGURATION = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/%u.pub
PidFile none
AllowUsers {accounts}
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
PrintLastLog no
"""


@dataclass(frozen=True, slots=True)
class TwoAccounts:
    """An sshd that is up; in the folder each account has a directory and a key."""

    folder: Path
    port: int

    def settings(self) -> dict[str, object]:
        """Return the `ssh` settings of a queue that by themselves let nobody in."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": "nobody",
            "key_file": "/dev/null",
            "known_hosts_file": str(self.folder / "known_hosts"),
        }

    def key(self, account: str) -> str:
        """Return the private key of an account."""
        return (self.folder / account).read_text()

    def directory(self, account: str) -> Path:
        """Return a directory that only the account can write to."""
        return self.folder / f"{account}.home"


@contextmanager
def two_accounts() -> Iterator[TwoAccounts]:
    """Start the sshd for a block; raise `Unavailable`."""
    if os.geteuid() != 0:
        raise Unavailable("accounts can be had by root only")
    ensure_programs(PACKAGES)
    folder = Path(tempfile.mkdtemp(prefix="pts-accounts-"))
    folder.chmod(0o755)
    try:
        [port] = free_ports(1)
        _furnish(folder, port)
        with _running(folder) as process:
            if not wait_until(lambda: _listens(port) or process.poll() is not None, START_LIMIT_S):
                raise Unavailable("the sshd does not listen")
            if process.poll() is not None:
                raise Unavailable("no mount namespace can be made here")
            yield TwoAccounts(folder, port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _furnish(folder: Path, port: int) -> None:
    for name in ("host", *ACCOUNTS):
        make_key(folder / name)
    lines = [Path("/etc/passwd").read_text()]
    for name, uid in ACCOUNTS.items():
        home = folder / f"{name}.home"
        home.mkdir(mode=0o700)
        os.chown(home, uid, uid)
        lines.append(f"{name}:*:{uid}:{uid}::{home}:/bin/sh\n")
    (folder / "passwd").write_text("".join(lines))
    configuration = _CONFIGURATION.format(port=port, folder=folder, accounts=" ".join(ACCOUNTS))
    (folder / "sshd_config").write_text(configuration)
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}\n")


@contextmanager
def _running(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    # Fixed when it was built: where it goes before it knows who is there.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    start = 'mount --bind "$1/passwd" /etc/passwd && exec "$2" -D -f "$1/sshd_config"'
    argv = ["unshare", "-m", "sh", "-c", f'{start} -E "$1/log"', "sh", folder, program("sshd")]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        sessions = [] if process.poll() is not None else _children(process.pid)
        process.terminate()
        process.wait(10)
        for session in sessions:
            _end(session)


def _end(pid: int) -> None:
    """End a process that may have ended by itself."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


def _listens(port: int) -> bool:
    argv = ["ssh-keyscan", "-T", "1", "-p", str(port), "127.0.0.1"]
    return bool(subprocess.run(argv, capture_output=True, check=False, timeout=10).stdout)
