"""Real sshd for tests on a loopback port, with throw-away keys, for the account of who starts it.

python -m tests.batch_systems.sshd start FOLDER
python -m tests.batch_systems.sshd stop FOLDER
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.batch_systems.packages import ensure_programs, program
from tests.batch_systems.services import (
    Unavailable,
    end,
    free_ports,
    locked,
    own_pid,
    run_daemon,
    wait_until,
)

PACKAGES = {"openssh-server": "sshd", "openssh-client": "ssh"}
START_LIMIT_S = 20.0

_CONFIGURATION = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/client.pub
PidFile {folder}/sshd.pid
AllowUsers {user}
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
PrintLastLog no
Subsystem sftp internal-sftp
MaxSessions 64
MaxStartups 100:30:200
"""


@dataclass(frozen=True, slots=True)
class Sshd:
    """An sshd that is up."""

    folder: Path
    port: int
    user: str

    def settings(self) -> dict[str, object]:
        """Return the `ssh` settings of an element that reaches it."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "key_file": str(self.folder / "client"),
            "known_hosts_file": str(self.folder / "known_hosts"),
        }


def start(folder: Path) -> Sshd:
    """Start it if it is not up, and return when it lets us in; raise `Unavailable`."""
    ensure_programs(PACKAGES)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        for name in ("host", "client"):
            if not (folder / name).exists():
                make_key(folder / name)
        port = _configure(folder)
        if own_pid(folder / "sshd.pid", folder) is None:
            if os.geteuid() == 0:
                # Fixed when it was built: where it goes before it knows who is there.
                Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
            # By its full path, because it executes itself anew.
            argv = [program("sshd"), "-f", f"{folder}/sshd_config", "-E", f"{folder}/sshd.log"]
            run_daemon(argv, log=folder / "sshd.start")
    sshd = Sshd(folder, port, getpass.getuser())
    if not wait_until(lambda: _lets_in(sshd), START_LIMIT_S):
        raise Unavailable(f"no login within {START_LIMIT_S:g} s; see {folder}/sshd.log")
    return sshd


def stop(folder: Path) -> None:
    """End the sshd that `start` started in this folder, with its sessions."""
    pid = own_pid(folder / "sshd.pid", folder)
    sessions = [] if pid is None else _children(pid)
    end(folder / "sshd.pid", folder, number=signal.SIGTERM)
    for session in sessions:
        try:
            os.kill(session, signal.SIGTERM)
        except ProcessLookupError:
            continue


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def make_key(path: Path) -> None:
    """Make a key without a passphrase, and `.pub` beside it."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "pilotage-test", "-f", str(path)]
    subprocess.run(argv, check=True, capture_output=True, timeout=30)


def _configure(folder: Path) -> int:
    """Write the configuration if there is none yet, and return the port."""
    known_hosts = folder / "known_hosts"
    if not known_hosts.exists():
        [port] = free_ports(1)
        text = _CONFIGURATION.format(port=port, folder=folder, user=getpass.getuser())
        (folder / "sshd_config").write_text(text)
        key = " ".join((folder / "host.pub").read_text().split()[:2])
        known_hosts.write_text(f"[127.0.0.1]:{port} {key}\n")
    return int(known_hosts.read_text().partition("]:")[2].split()[0])


def _lets_in(sshd: Sshd) -> bool:
    settings: Mapping[str, object] = sshd.settings()
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": 5,
        "IdentityAgent": "none",
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": settings["known_hosts_file"],
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
    }
    argv = ["ssh", "-F", "none", *(f"-o{key}={value}" for key, value in options.items())]
    argv += ["-i", str(settings["key_file"]), "-p", str(sshd.port), f"{sshd.user}@127.0.0.1"]
    done = subprocess.run([*argv, "true"], capture_output=True, check=False, timeout=20)
    return done.returncode == 0


def _main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.batch_systems.sshd")
    parser.add_argument("command", choices=["start", "stop"])
    parser.add_argument("folder", type=Path, help="all of its state; it may be removed after stop")
    parsed = parser.parse_args(arguments)
    folder = parsed.folder.resolve()
    if parsed.command == "stop":
        stop(folder)
        return
    try:
        sshd = start(folder)
    except Unavailable as error:
        sys.exit(f"sshd: {error}")
    sys.stdout.write(f"# in the settings of a queue:\n{json.dumps({'ssh': sshd.settings()})}\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
