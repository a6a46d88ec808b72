"""Real Slurm of one node for tests, from Debian's packages: munged, slurmctld, slurmd.

    python -m tests.batch_systems.slurm start FOLDER [--cpus N]
    python -m tests.batch_systems.slurm stop FOLDER

Run by root it takes jobs of every user of the machine, else only those of the user who started it.
The CPUs are pretended. Jobs go on while the controller is down. For tests and for trying things out
only: it protects nobody from anybody.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from contextlib import suppress
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

PACKAGES = {
    "munge": "munged",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurm-client": "sbatch",
}
START_LIMIT_S = 60.0
#: The path of a Unix socket has at most 107 characters, and Slurm appends to the folder.
MAX_FOLDER_LENGTH = 80
CPUS = 64
#: Devices that play GPUs.
GPUS = ("/dev/null", "/dev/zero")
#: More than this many tasks are no array; far below a site's usual 1001, so that tests can meet it.
MAX_ARRAY_SIZE = 101

_CONFIGURATION = """\
ClusterName=pilotage
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
CredType=cred/munge
SlurmctldPort={controller_port}
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SwitchType=switch/none
MpiDefault=none
# Neither cgroups nor systemd.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
# CPUs, memory and GPUs that the host has not.
GresTypes=gpu
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=5,default_queue_depth=1000
MinJobAge=3600
MaxArraySize={max_array_size}
ReturnToService=2
KillWait=10
InactiveLimit=0
Waittime=0
CompleteWait=0
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs={cpus} Boards=1 \
SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory_mb} \
Gres=gpu:{gpus} State=UNKNOWN
PartitionName=main Nodes=node1 Default=YES MaxTime=2-00:00:00 DefaultTime=01:00:00 State=UP
PartitionName=short Nodes=node1 MaxTime=00:05:00 DefaultTime=00:05:00 State=UP
"""
#: From this version on a cgroup plugin starts whatever else is set; older ones do not know how to
#: switch it off.
_CGROUP_PLUGIN_SINCE = (23, 11)


@dataclass(frozen=True, slots=True)
class Slurm:
    """A Slurm that is up."""

    folder: Path
    cpus: int

    @property
    def configuration(self) -> Path:
        return _configuration(self.folder)

    def run(self, *argv: str) -> str:
        """Run a client program with the configuration and return its output."""
        environment = {"PATH": "/usr/bin:/bin", "SLURM_CONF": str(self.configuration)}
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout

    def signal_controller(self, number: int) -> None:
        """Send the controller a signal; running jobs do not notice."""
        pid = own_pid(self.folder / "run/slurmctld.pid", self.folder)
        if pid is not None:
            os.kill(pid, number)

    def stop_controller(self, number: int = signal.SIGTERM) -> None:
        """End the controller; running jobs go on, and `start` brings it back.

        Ended by SIGKILL it forgets what happened in its last seconds.
        """
        end(self.folder / "run/slurmctld.pid", self.folder, number=number)


def start(folder: Path, *, cpus: int = CPUS) -> Slurm:
    """Start what is not up, and return when the node takes jobs; raise `Unavailable`."""
    ensure_programs(PACKAGES)
    if len(str(folder)) > MAX_FOLDER_LENGTH:
        raise Unavailable(f"{folder}: at most {MAX_FOLDER_LENGTH} characters, because of sockets")
    for name in ("etc", "run", "log", "state", "spool", "munge"):
        (folder / name).mkdir(mode=0o755, parents=True, exist_ok=True)
    (folder / "munge").chmod(0o700)
    with locked(folder / "lock"):
        _configure(folder, cpus)
        _start_munge(folder)
        for name in ("slurmctld", "slurmd"):
            if own_pid(folder / f"run/{name}.pid", folder) is None:
                node = ["-N", "node1"] if name == "slurmd" else []
                argv = [program(name), "-f", str(_configuration(folder)), *node]
                run_daemon(argv, log=folder / f"log/{name}.start")
    slurm = Slurm(folder, cpus)
    if not wait_until(lambda: _takes_jobs(slurm), START_LIMIT_S):
        raise Unavailable(f"Slurm did not come up within {START_LIMIT_S:g} s; see {folder}/log")
    return slurm


def stop(folder: Path) -> None:
    """End the jobs, then the daemons that `start` started in this folder."""
    if own_pid(folder / "run/slurmctld.pid", folder) is not None:
        slurm = Slurm(folder, 0)
        with suppress(subprocess.SubprocessError):
            ids = slurm.run("squeue", "-h", "-t", "PD,R,S,CF,CG", "-o", "%A").split()
            if ids:
                slurm.run("scancel", "--quiet", *sorted(set(ids)))
                # The step daemons end with their jobs, and only slurmd would restart them.
                wait_until(lambda: not slurm.run("squeue", "-h", "-t", "R,CG,S").split(), 10.0)
    for name in ("slurmd", "slurmctld", "munged"):
        end(folder / f"run/{name}.pid", folder, number=signal.SIGTERM)


def _configuration(folder: Path) -> Path:
    return folder / "etc" / "slurm.conf"


def _configure(folder: Path, cpus: int) -> None:
    if _configuration(folder).exists():
        return
    controller_port, node_port = free_ports(2)
    text = _CONFIGURATION.format(
        folder=folder,
        host=socket.gethostname().split(".")[0],
        user=_user(),
        controller_port=controller_port,
        node_port=node_port,
        cpus=cpus,
        memory_mb=cpus * 1000,
        gpus=len(GPUS),
        max_array_size=MAX_ARRAY_SIZE,
    )
    version = subprocess.run(
        [program("slurmd"), "-V"], capture_output=True, text=True, check=True, timeout=10
    )
    found = re.search(r"(\d+)\.(\d+)", version.stdout)
    if found and (int(found[1]), int(found[2])) >= _CGROUP_PLUGIN_SINCE:
        (folder / "etc" / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    gres = "".join(f"NodeName=node1 Name=gpu File={each}\n" for each in GPUS)
    (folder / "etc" / "gres.conf").write_text(gres)
    _configuration(folder).write_text(text)


def _user() -> str:
    done = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def _start_munge(folder: Path) -> None:
    run = folder / "run"
    if own_pid(run / "munged.pid", folder) is not None:
        return
    key = folder / "munge" / "munge.key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
    argv = [
        program("munged"), "--force", f"--key-file={key}", f"--socket={run}/munge.socket",
        f"--pid-file={run}/munged.pid", f"--log-file={folder}/log/munged.log",
        f"--seed-file={folder}/munge/munge.seed",
    ]  # fmt: skip
    run_daemon(argv, log=folder / "log" / "munged.start")


def _takes_jobs(slurm: Slurm) -> bool:
    try:
        state = slurm.run("sinfo", "-h", "-N", "-p", "main", "-o", "%T").strip()
    except subprocess.SubprocessError:
        return False
    return state in {"idle", "mixed", "allocated", "completing"}


def _main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.batch_systems.slurm")
    parser.add_argument("command", choices=["start", "stop"])
    parser.add_argument("folder", type=Path, help="all of its state; it may be removed after stop")
    parser.add_argument("--cpus", type=int, default=CPUS, help="how many to pretend")
    parsed = parser.parse_args(arguments)
    folder = parsed.folder.resolve()
    if parsed.command == "stop":
        stop(folder)
        return
    try:
        slurm = start(folder, cpus=parsed.cpus)
    except Unavailable as error:
        sys.exit(f"slurm: {error}")
    settings = {"log_directory": str(folder / "pilots"), "slurm_conf": str(slurm.configuration)}
    sys.stdout.write(
        f"export SLURM_CONF={slurm.configuration}\n"
        f"# settings of a queue with the element slurm:\n# {json.dumps(settings)}\n"
    )


if __name__ == "__main__":
    _main(sys.argv[1:])
