"""Account under which the embedded PostgreSQL runs: this one, one in a user namespace, or another.

PostgreSQL refuses to run as root. An ordinary user has nothing to do. For root there are two ways:

1. A user namespace in which root appears as an ordinary account. Nothing on disk changes: seen from
   outside, the files still belong to root, so it also works in a folder that only root may enter.
2. Where user namespaces are switched off: an unprivileged account of the host, which becomes the
   owner of the database's folder. The account must be able to enter the folders above it.

Each way is tried with the very program and folder that are to be used; if none works, the error
says so and names the way out, a PostgreSQL server of one's own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Accounts that every Debian has. PostgreSQL looks its account's name up, so the number must exist.
ACCOUNTS = ("daemon", "nobody")


class NoIdentity(Exception):
    """Raised where the embedded PostgreSQL can run under no identity on this host."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Account of a program: the prefix of its command line, and the owner of its folders."""

    prefix: tuple[str, ...] = ()
    owner: pwd.struct_passwd | None = None

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """The command that runs `words` under this identity."""
        return [*self.prefix, *(str(word) for word in words)]

    def give(self, folder: Path) -> None:
        """Make `folder` and all in it the property of the account, where there is one.

        The folder above must let the account through; who may list or read it stays the same.
        """
        if self.owner is None:
            return
        folder.parent.chmod(folder.parent.stat().st_mode | 0o011)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.owner.pw_uid, self.owner.pw_gid, follow_symlinks=False)


def choose_identity(program: Path, folder: Path) -> Identity:
    """The first identity under which `program` starts and can enter `folder`, which must exist."""
    if os.geteuid() != 0:
        return Identity()
    for identity in (*_namespaces(), *_accounts()):
        if _works(identity, program, folder):
            return identity
    raise NoIdentity(
        f"PostgreSQL does not run as root, and neither a user namespace nor an unprivileged "
        f"account can use {folder}. Start as an ordinary user, use a folder that every account "
        f"may enter, or set DATABASE_URL to a PostgreSQL server of your own."
    )


def _known_accounts() -> list[pwd.struct_passwd]:
    return [entry for entry in pwd.getpwall() if entry.pw_name in ACCOUNTS]


def _namespaces() -> list[Identity]:
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    return [
        Identity((unshare, "--user", f"--map-user={a.pw_uid}", f"--map-group={a.pw_gid}", "--"))
        for a in _known_accounts()
    ]


def _accounts() -> list[Identity]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return []
    return [
        Identity((setpriv, f"--reuid={a.pw_uid}", f"--regid={a.pw_gid}", "--clear-groups", "--"), a)
        for a in _known_accounts()
    ]


def _works(identity: Identity, program: Path, folder: Path) -> bool:
    probes = (
        identity.command([program, "--version"]),
        # setpriv keeps its powers until it has started the program, so the program's own view of
        # the folders is asked for as well.
        identity.command(["test", "-r", program]),
        identity.command(["test", "-x", folder.parent.parent if identity.owner else folder]),
    )
    return all(subprocess.run(probe, capture_output=True).returncode == 0 for probe in probes)
