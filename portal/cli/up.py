"""`manage.py up`: prepare everything a portal needs on this host, then become supervisord.

With DATABASE_URL or REDIS_URL in the environment that server is used, and none is started for it.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from portal.cli.listening import Listen, UnusableListen, configured_listen
from portal.cli.self_test import begin_self_test
from portal.cli.state_directory import BASE, StateDirectory
from portal.cli.steps import Steps
from portal.cli.supervision import (
    Program,
    UnusablePath,
    portal_programs,
    supervisor_configuration,
)
from portal.embedded.identity import NoIdentity
from portal.embedded.ports import LOOPBACK, kept_ports
from portal.embedded.postgres import Postgres, PostgresUnusable
from portal.embedded.private import kept_secret, make_private_folder, write_private
from portal.embedded.redis import Redis, RedisUnusable

PREFERRED_PORTS = {"web": 8000}


class AlreadyRunning(Exception):
    """Another portal runs on the same folder; the text says where."""


class HalfRestored(Exception):
    """A restore was broken off on the folder; the text says what to do."""


class MissingProgram(Exception):
    """A program of the host that every supervised program needs; the text says which."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Values for supervisord, the portal's addresses, and the chosen broker with the reason."""

    configuration: Path
    public_url: str
    broker: str
    listen: Listen


#: What keeps a portal from starting; each tells in its text what to do.
PREVENTIONS = (
    AlreadyRunning, HalfRestored, MissingProgram, NoIdentity, PostgresUnusable, RedisUnusable,
    UnusableListen, UnusablePath,
)  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="manage.py up", description=__doc__)
    parser.parse_args(arguments)
    state_dir = StateDirectory.from_environment()
    try:
        lock = take_lock(state_dir)
        prepared = prepare(state_dir)
    except PREVENTIONS as error:
        sys.stderr.write(f"up: {error}\n")
        return 1
    sys.stdout.write(
        f"Broker and cache: {prepared.broker}\n"
        f"{prepared.public_url} will answer in less than a minute. Ctrl-C stops it. "
        f"Logs: {state_dir.log}\n"
    )
    sys.stdout.flush()
    become_supervisor(state_dir, prepared, lock)


def take_lock(state_dir: StateDirectory) -> int:
    """Lock the folder until the process ends, whatever program it has become; the descriptor."""
    make_private_folder(state_dir.var)
    make_private_folder(state_dir.run)
    make_private_folder(state_dir.log)
    lock = os.open(state_dir.run / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        address = state_dir.run / "public.url"
        where = address.read_text(encoding="utf-8").strip() if address.exists() else "starting"
        raise AlreadyRunning(f"a portal already runs on {state_dir.var} ({where})") from None
    return lock


def prepare(state_dir: StateDirectory) -> Prepared:
    """Make ports, passwords, servers' folders and addresses, keeping what an earlier run made."""
    if shutil.which("setpriv") is None:
        raise MissingProgram("the program setpriv is missing; it is in the package util-linux")
    if state_dir.is_restoring.exists():
        backup = state_dir.is_restoring.read_text(encoding="utf-8").strip()
        raise HalfRestored(
            f"the restore of {backup} into {state_dir.var} was broken off: run it again"
        )
    state_dir.is_migrated.unlink(missing_ok=True)
    steps = Steps(state_dir)
    steps.begin()
    steps.tell("preparing the servers")
    kept_secret(state_dir.run / "secret_key", length_bytes=48)
    kept_secret(state_dir.run / "credential_keys", length_bytes=32)
    wanted = configured_listen()
    ports = kept_ports(
        state_dir.run / "ports.json",
        ("web", "postgres"),
        PREFERRED_PORTS,
        given={"web": wanted.port} if wanted else None,
    )
    listen = wanted or Listen(LOOPBACK, ports["web"])
    redis_programs, broker = _redis_program(state_dir)
    programs = [
        *_postgres_program(state_dir, ports["postgres"]),
        *redis_programs,
        *portal_programs(listen),
    ]
    public_url = os.environ.get("PILOTAGE_PUBLIC_URL") or f"http://{LOOPBACK}:{ports['web']}"
    write_private(state_dir.run / "public.url", public_url + "\n")
    configuration = state_dir.run / "supervisord.conf"
    password = kept_secret(state_dir.run / "supervisor.password")
    write_private(configuration, supervisor_configuration(state_dir, programs, password))
    steps.tell(f"broker and cache: {broker}")
    steps.tell("starting the programs")
    return Prepared(configuration, public_url, broker, listen)


def become_supervisor(state_dir: StateDirectory, prepared: Prepared, lock: int) -> NoReturn:
    """Replace this process by supervisord; it keeps the lock and stops all on SIGINT or TERM."""
    os.set_inheritable(lock, True)
    os.environ["PILOTAGE_VAR"] = str(state_dir.var)
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    os.environ["PYTHONUNBUFFERED"] = "1"
    os.environ["PILOTAGE_LISTEN"] = str(prepared.listen)
    os.environ["PILOTAGE_METRICS_DIR"] = str(begin_counts(state_dir))
    os.chdir(BASE)
    begin_self_test()
    command = [
        sys.executable, "-m", "supervisor.supervisord", "--nodaemon",
        "--configuration", str(prepared.configuration),
    ]  # fmt: skip
    os.execv(command[0], command)


def begin_counts(state_dir: StateDirectory) -> Path:
    """The folder in which the programs will count, without what earlier ones counted."""
    folder = Path(os.environ.get("PILOTAGE_METRICS_DIR") or state_dir.run / "metrics").absolute()
    for left in folder.glob("*.db*"):
        left.unlink(missing_ok=True)
    return folder


def _postgres_program(state_dir: StateDirectory, port: int) -> list[Program]:
    address = state_dir.run / "database.url"
    if "DATABASE_URL" in os.environ:
        address.unlink(missing_ok=True)
        return []
    postgres = Postgres.at(state_dir.var / "postgres", port)
    postgres.prepare()
    write_private(address, postgres.url + "\n")
    return [Program("postgres", postgres.command(), 1, stop_signal="INT")]


def _redis_program(state_dir: StateDirectory) -> tuple[list[Program], str]:
    """The server to be started, if one is, and a line that says which is used."""
    address = state_dir.run / "redis.url"
    if "REDIS_URL" in os.environ:
        address.unlink(missing_ok=True)
        return [], "the server of REDIS_URL"
    redis = Redis.at(state_dir.var / "redis")
    redis.prepare()
    write_private(address, redis.url + "\n")
    return [Program("redis", redis.command(), 2)], str(redis.program)
