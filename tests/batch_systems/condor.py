"""Real HTCondor pool of one machine for tests, from Debian's package, reached by port and token.

    python -m tests.batch_systems.condor start FOLDER
    python -m tests.batch_systems.condor stop FOLDER

Only root can start it: it runs in a chroot of unpacked packages. The cores are pretended. For tests
and for trying things out only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.batch_systems.chroot import Chroot, ensure_namespaces
from tests.batch_systems.debian_root import CONDOR_UID, PILOT_UID, debian_root
from tests.batch_systems.services import (
    Unavailable,
    free_ports,
    locked,
    require_chosen,
    wait_until,
)

SUITE, PACKAGES = "trixie", ("condor",)
START_LIMIT_S = 60.0
SLOTS = 16
#: What the collector calls the schedd.
SCHEDD = "submit.example.org"
#: The schedd takes no pilot with more cores, and says this.
TOO_MANY_CORES = "no machine here has more than 64 cores"
_FOLDERS = ("var", "tmp", "etc/condor")

_CONFIGURATION = """\
RELEASE_DIR = /usr
BIN = /usr/bin
SBIN = /usr/sbin
LIB = /usr/lib
LIBEXEC = /usr/libexec/condor
ETC = /etc/condor
LOCAL_DIR = /var
RUN = /var/run/condor
LOCK = /var/lock/condor
LOG = /var/log/condor
SPOOL = /var/spool/condor
EXECUTE = /var/lib/condor/execute
CONDOR_IDS = {condor_uid}.{condor_uid}
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD

COLLECTOR_HOST = 127.0.0.1:{port}
SHARED_PORT_PORT = {port}
NETWORK_INTERFACE = 127.0.0.1
NETWORK_HOSTNAME = {schedd}
FULL_HOSTNAME = {schedd}
BIND_ALL_INTERFACES = False
NO_DNS = True
ENABLE_IPV6 = False
DEFAULT_DOMAIN_NAME = example.org
UID_DOMAIN = example.org
FILESYSTEM_DOMAIN = example.org
TRUST_DOMAIN = example.org

SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS
SEC_DEFAULT_ENCRYPTION = REQUIRED
SEC_DEFAULT_INTEGRITY = REQUIRED
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_NEGOTIATOR = *
ALLOW_ADMINISTRATOR = *

SUBMIT_REQUIREMENT_NAMES = Cores
SUBMIT_REQUIREMENT_Cores = RequestCpus <= 64
SUBMIT_REQUIREMENT_Cores_REASON = "{too_many_cores}"

NUM_CPUS = {slots}
MEMORY = 16000
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
START = True
SUSPEND = False
PREEMPT = False
KILL = False
RESERVED_DISK = 0

# The machine's speed is of no interest, and no job has files at addresses: programs for them would
# be started for each job.
RunBenchmarks = False
ENABLE_URL_TRANSFERS = False

# Tests wait for each step.
NEGOTIATOR_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
UPDATE_INTERVAL = 2
POLLING_INTERVAL = 1
PERIODIC_EXPR_INTERVAL = 2
JOB_START_DELAY = 0
JOB_STOP_DELAY = 0

# No systemd, no control groups, no kernel settings of the host.
ENABLE_KERNEL_TUNING = False
LINUX_KERNEL_TUNING_SCRIPT =
USE_PID_NAMESPACES = False
DISCARD_SESSION_KEYRING_ON_STARTUP = False
CREATE_LOCKS_ON_LOCAL_DISK = False
CGROUP_TRACKING = False
BASE_CGROUP =
"""


@dataclass(frozen=True, slots=True)
class Condor:
    """Collector, negotiator, schedd and startd behind one loopback port; jobs run as `pilot`."""

    folder: Path
    port: int
    chroot: Chroot

    @property
    def collector(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def token_directory(self) -> Path:
        return self.folder / "tokens"

    def run(self, *argv: str) -> str:
        """Return what a command of the pool's own prints."""
        return self.chroot.run(*argv)

    def kill(self) -> None:
        """End all daemons and jobs at once; `start` brings back what the schedd's disk has."""
        self.chroot.kill()


def start(folder: Path) -> Condor:
    """Start the pool if it is not up, and return when it answers; raise `Unavailable`."""
    ensure_namespaces()
    with locked(folder / "lock"):
        root = debian_root(SUITE, PACKAGES)
        port = _configure(folder)
        pool = Condor(folder, port, Chroot(root, folder, _FOLDERS))
        if not pool.chroot.is_up():
            pool.chroot.start("rm -rf /var/run/condor/* /var/lock/condor/*; condor_master -f &")
        if not wait_until(lambda: _is_complete(pool), START_LIMIT_S):
            raise Unavailable(f"the pool did not come up; see {folder}/var/log/condor")
        _make_token(pool)
    return pool


def plugin(name: str, folder: Path) -> tuple[Path, Path]:
    """A file-transfer plugin of the package as a program of this host, and the folder it needs.

    It is run by the loader and libraries that it was built with. Raises `Unavailable`.
    """
    require_chosen("condor")
    root = debian_root(SUITE, PACKAGES)
    if root.is_relative_to("/tmp"):
        raise Unavailable(f"the fence of scripts hides {root}: set PILOTAGE_TEST_CACHE elsewhere")
    [loader] = root.glob("usr/lib64/ld-linux-*.so.*")
    libraries = f"{root}/usr/lib/{platform.machine()}-linux-gnu:{root}/usr/lib"
    path = folder / name
    path.write_text(
        f"#!/bin/sh\nexec {loader} --library-path {libraries} {root}/usr/libexec/condor/{name} "
        '"$@"\n'
    )
    path.chmod(0o755)
    return path, root


def stop(folder: Path) -> None:
    """End the pool that `start` started in this folder, with all its jobs."""
    Chroot(Path("/"), folder, ()).kill()


def _configure(folder: Path) -> int:
    """Lay out the folder once, and return the port of the pool."""
    configuration, port_file = folder / "etc/condor/condor_config", folder / "port"
    if port_file.exists():
        return int(port_file.read_text())
    [port] = free_ports(1)
    for name, owner, mode in (
        ("tmp", 0, 0o1777),
        ("tokens", 0, 0o700),
        ("etc/condor/passwords.d", 0, 0o700),
        ("var/home/pilot", PILOT_UID, 0o755),
        *((f"var/{each}/condor", CONDOR_UID, 0o755) for each in ("run", "lock", "log", "spool")),
        ("var/lib/condor/execute", CONDOR_UID, 0o755),
    ):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name).chmod(mode)
        os.chown(folder / name, owner, owner)
    key = folder / "etc/condor/passwords.d/POOL"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(64))
    configuration.write_text(
        _CONFIGURATION.format(
            port=port,
            condor_uid=CONDOR_UID,
            schedd=SCHEDD,
            slots=SLOTS,
            too_many_cores=TOO_MANY_CORES,
        )
    )
    port_file.write_text(str(port))
    return port


def _is_complete(pool: Condor) -> bool:
    try:
        found = pool.run("condor_status", "-any", "-af", "MyType").split()
    except (subprocess.SubprocessError, OSError):
        return False
    return {"Scheduler", "Machine", "Negotiator"} <= set(found)


def _make_token(pool: Condor) -> None:
    token = pool.token_directory / "pool"
    if not token.exists():
        token.touch(mode=0o600)
        token.write_text(pool.run("condor_token_create", "-identity", "pilot@example.org"))


def _main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.batch_systems.condor")
    parser.add_argument("command", choices=["start", "stop"])
    parser.add_argument("folder", type=Path, help="all of its state; it may be removed after stop")
    parsed = parser.parse_args(arguments)
    folder = parsed.folder.resolve()
    if parsed.command == "stop":
        stop(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        pool = start(folder)
    except Unavailable as error:
        sys.exit(f"condor: {error}")
    settings = {"collector": pool.collector, "token_directory": str(pool.token_directory)}
    sys.stdout.write(f"settings of a queue with the element htcondor:\n{json.dumps(settings)}\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
