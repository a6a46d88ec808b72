"""Configuration of supervisord: the programs of a portal on one host and their command lines.

Programs start by ascending and stop by descending priority, each fully stopped before the next:
whatever uses a server is gone before the server. Those of a group, which need nothing of each
other, stop at the same time. supervisord does not wait until a started program is ready, so every
program waits for what it needs (`portal.cli.run_when_ready`).

If supervisord itself is killed, the kernel ends its programs (`setpriv --pdeathsig`).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from portal.cli.listening import Listen
from portal.cli.state_directory import BASE, StateDirectory
from portal.config import env

#: A socket's path may have 107 characters, and supervisord appends its process id for a moment.
SOCKET_PATH_LIMIT = 95
#: The group of those that work on what is due: what one of them leaves, the next start takes up.
_WORKERS = "workers"


class UnusablePath(Exception):
    """A path cannot be written into the configuration of supervisord; the text says which."""


@dataclass(frozen=True, slots=True)
class Program:
    """One supervised program; it is restarted whenever it ends, unless `is_one_shot`."""

    name: str
    command: Sequence[str]
    priority: int
    stop_signal: str = "TERM"
    stop_wait_s: int = 30
    is_one_shot: bool = False
    group: str = ""

    def section(self, log_folder: Path) -> str:
        lines = {
            "command": shlex.join(self.command),
            "directory": str(BASE),
            "priority": str(self.priority),
            "stopsignal": self.stop_signal,
            "stopwaitsecs": str(self.stop_wait_s),
            "killasgroup": "true",
            # A one-shot program that fails is repeated; one that succeeds is not.
            "autorestart": "unexpected" if self.is_one_shot else "true",
            "startsecs": "0" if self.is_one_shot else "1",
            "startretries": "1000000",
            "redirect_stderr": "true",
            "stdout_logfile": str(log_folder / f"{self.name}.log"),
            "stdout_logfile_maxbytes": "10MB",
            "stdout_logfile_backups": "3",
        }
        return _section(f"program:{self.name}", lines)


def portal_programs(listen: Listen) -> list[Program]:
    """The programs of Pilotage itself; all find their servers through the settings."""
    python = sys.executable
    manage = [python, str(BASE / "manage.py")]
    celery = [python, "-m", "celery", "--app", "portal"]
    worker = [
        *celery, "worker", "--concurrency", "4", "--loglevel", "INFO",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "--hostname", "worker@%h",
    ]  # fmt: skip
    # Two processes: while one is at a DAG that takes long, the other one moves the others on.
    engine = [
        *celery, "worker", "--queues", "engine", "--concurrency", "2", "--loglevel", "INFO",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "--hostname", "engine@%h",
    ]  # fmt: skip
    # How many scripts run at once, the settings say. Those that take longer than the time to stop
    # are ended, and their records tell of it.
    scripts = [
        *celery, "worker", "--queues", "scripts", "--loglevel", "INFO",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "--hostname", "scripts@%h",
    ]  # fmt: skip
    # Not the same worker: a transfer that takes long keeps no script waiting.
    placement = [
        *celery, "worker", "--queues", "placement", "--loglevel", "INFO",
        "--concurrency", str(int(env.number("PILOTAGE_PLACEMENT_CONCURRENCY", 4))),
        "--without-gossip", "--without-mingle", "--without-heartbeat",
        "--hostname", "placement@%h",
    ]  # fmt: skip
    # Speaks with batch systems; each that is slow keeps one of these processes busy.
    elements = [
        *celery, "worker", "--queues", "elements", "--concurrency", "4", "--loglevel", "INFO",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "--hostname", "elements@%h",
    ]  # fmt: skip
    beat = [*celery, "beat", "--pidfile", "", "--loglevel", "INFO"]
    pilots = [*manage, "guard_host_pilots"]
    migrate = when_ready("migrate", [*manage, "prepare_data"], migrated=False)
    return [
        Program("migrate", migrate, 5, is_one_shot=True),
        Program("web", when_ready("web", web_command(listen)), 10),
        Program("host-pilots", when_ready("host-pilots", pilots), 15, stop_wait_s=60),
        Program("scripts", when_ready("scripts", scripts), 20, stop_wait_s=60, group=_WORKERS),
        Program(
            "placement", when_ready("placement", placement), 20, stop_wait_s=60, group=_WORKERS
        ),
        Program("elements", when_ready("elements", elements), 20, stop_wait_s=60, group=_WORKERS),
        Program("engine", when_ready("engine", engine), 20, stop_wait_s=60, group=_WORKERS),
        Program("worker", when_ready("worker", worker), 20, stop_wait_s=60, group=_WORKERS),
        Program("beat", when_ready("beat", beat), 20, group=_WORKERS),
    ]


def web_command(listen: Listen) -> list[str]:
    """Command line of the web server that listens at these addresses."""
    binds = [word for bind in listen.binds() for word in ("--bind", bind)]
    return [
        sys.executable, "-m", "gunicorn", "portal.wsgi", *binds,
        # Twelve threads may be held by claims of pilots and followers, which wait and do nothing,
        # five work (PILOTAGE_WEB_PLACES), and six wait for that: refusals need one that is free.
        "--workers", "2", "--threads", "24", "--worker-tmp-dir", "/dev/shm",
        # Loaded once for all: a worker that is started again serves at once.
        "--preload", "--timeout", "120", "--graceful-timeout", "10", "--no-control-socket",
    ]  # fmt: skip


def when_ready(name: str, command: Sequence[str], *, migrated: bool = True) -> list[str]:
    """`command`, started when the servers answer and (unless told otherwise) tables are there."""
    needs = ["--migrated"] if migrated else []
    return [
        "setpriv", "--pdeathsig", "TERM", "--",
        sys.executable, "-m", "portal.cli.run_when_ready", *needs, name, "--", *command,
    ]  # fmt: skip


def supervisor_configuration(
    state_dir: StateDirectory, programs: Sequence[Program], password: str
) -> str:
    """The text of supervisord's configuration file; it holds the password of its control socket."""
    supervisor = {
        "nodaemon": "true",
        "directory": str(BASE),
        "logfile": str(state_dir.log / "supervisord.log"),
        "logfile_maxbytes": "10MB",
        "logfile_backups": "3",
        "pidfile": str(state_dir.run / "supervisord.pid"),
        "childlogdir": str(state_dir.log),
    }
    if os.geteuid() == 0:
        # Said explicitly, because supervisord warns about root otherwise.
        supervisor["user"] = "root"
    sections = [_section("supervisord", supervisor), *_control_socket(state_dir, password)]
    sections += [program.section(state_dir.log) for program in programs]
    return "\n".join(sections + _group_sections(programs))


def _group_sections(programs: Sequence[Program]) -> list[str]:
    grouped: dict[str, list[Program]] = {}
    for program in programs:
        if program.group:
            grouped.setdefault(program.group, []).append(program)
    return [
        _section(
            f"group:{name}",
            {
                "programs": ",".join(program.name for program in members),
                "priority": str(min(program.priority for program in members)),
            },
        )
        for name, members in grouped.items()
    ]


def _control_socket(state_dir: StateDirectory, password: str) -> list[str]:
    """The socket for `supervisorctl`; none in a folder too deep for a socket's path."""
    socket = state_dir.run / "supervisor.sock"
    if len(os.fsencode(socket)) > SOCKET_PATH_LIMIT:
        return []
    login = {"username": "pilotage", "password": password}
    factory = {
        "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface",
    }
    return [
        _section("unix_http_server", {"file": str(socket), "chmod": "0700"} | login),
        _section("rpcinterface:supervisor", factory),
        _section("supervisorctl", {"serverurl": f"unix://{socket}"} | login),
    ]


def _section(name: str, lines: dict[str, str]) -> str:
    for value in lines.values():
        if re.search(r"\s[;#]|[\r\n]", value):
            raise UnusablePath(f"supervisord cannot read this, move the folder elsewhere: {value}")
    text = "\n".join(f"{key}={value.replace('%', '%%')}" for key, value in lines.items())
    return f"[{name}]\n{text}\n"
