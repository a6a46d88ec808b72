"""Command runner of elements on another host, by the system's `ssh`; the choice of the runner.

The first command opens a master connection, which belongs to no process of ours: all commands of
all workers to this host go through it, and it ends by itself some time after the last. Also reads
the settings of the login from a queue.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shlex
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wms.elements.logins import Login, in_memory
from wms.elements.protocol import Unreachable
from wms.elements.runner import (
    TIMEOUT_S,
    CommandRunner,
    Completed,
    LocalRunner,
    check_not_killed,
)
from wms.elements.settings import SettingsReader

CONNECT_LIMIT_S = 10
#: Seconds that the master connection outlives its last command.
PERSIST_S = 120
#: A connection that does not answer twice in a row is closed.
ALIVE_INTERVAL_S = 5
#: Exit code of `ssh` when it could not reach the host or was not let in.
_NO_CONNECTION = 255
#: Exit code of `timeout` on the other host.
_TIME_IS_OVER = 124
#: Output of a login comes before the first mark; an answer that was cut lacks the second.
_FRAMED = (
    "mark=$0; limit=$1; shift; printf '\\n%s\\n' \"$mark\"; "
    'timeout -k 5 "$limit" "$@"; printf \'\\n%s %d\\n\' "$mark" "$?"'
)
_JUMP = r"([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?"
_SETTINGS = (
    "host", "port", "user", "key_file", "known_hosts_file", "config_file", "proxy_jump",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Account to log in to, with the files of this host for it.

    What is not set is left to `config_file`, the only file of settings that `ssh` reads.
    """

    host: str
    user: str = ""
    port: int | None = None
    key_file: Path | None = None
    known_hosts_file: Path | None = None
    config_file: Path | None = None
    proxy_jump: str = ""


def runner_from(reader: SettingsReader, login: Login | None = None) -> CommandRunner:
    """Return what runs the commands of an element: over `ssh` where its settings say so.

    Raises `BadSettings`.
    """
    ssh = reader.group("ssh", _SETTINGS)
    return LocalRunner() if ssh is None else SshRunner(_target(ssh), login=login)


def _target(reader: SettingsReader) -> SshTarget:
    target = SshTarget(
        host=reader.text("host", pattern=r"[A-Za-z0-9][A-Za-z0-9._:-]*", what="a host's name"),
        user=reader.text("user", "", pattern=r"[A-Za-z0-9_][A-Za-z0-9_.@-]*", what="an account"),
        port=reader.number("port", low=1, high=65535) if reader.has("port") else None,
        key_file=reader.optional_path("key_file"),
        known_hosts_file=reader.optional_path("known_hosts_file"),
        config_file=reader.optional_path("config_file"),
        proxy_jump=reader.text("proxy_jump", "", pattern=_JUMP, what="[user@]host[:port]"),
    )
    if target.known_hosts_file is None and target.config_file is None:
        raise reader.bad(
            "known_hosts_file", "is missing: the host's key has to be known beforehand"
        )
    return target


class SshRunner:
    """Runs commands on another host as the account that the target names, or the login.

    The key of a login is read by `ssh` from the memory of this process.
    """

    def __init__(
        self,
        target: SshTarget,
        *,
        control_directory: Path | None = None,
        login: Login | None = None,
    ) -> None:
        account = login.account if login else ""
        self._target = replace(target, user=account) if account else target
        self._login = login
        self._control_directory = control_directory or _default_control_directory()
        self._local = LocalRunner()

    def run(
        self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = TIMEOUT_S
    ) -> Completed:
        mark = f"@{secrets.token_hex(8)}"
        framed = shlex.join(["sh", "-c", _FRAMED, mark, f"{timeout_s:.3f}", *argv])
        with self._key_in_place() as target:
            ssh = [*self._ssh(target, timeout_s), "--", target.host, framed]
            done = self._local.run(ssh, stdin=stdin, timeout_s=timeout_s)
        answer = _unframed(done.stdout, mark)
        if answer is None:
            raise Unreachable(f"{self._target.host}: {_why(done)}")
        returncode, stdout = answer
        if returncode == _TIME_IS_OVER:
            raise Unreachable(f"{self._target.host}: {argv[0]} took too long")
        check_not_killed(f"{self._target.host}: {argv[0]}", returncode)
        return Completed(returncode, stdout, done.stderr)

    @contextlib.contextmanager
    def _key_in_place(self) -> Iterator[SshTarget]:
        """Yield the target with a file of the login's key, if there is a login."""
        if self._login is None:
            yield self._target
            return
        with in_memory(self._login.secret) as key_file:
            yield replace(self._target, key_file=key_file)

    def _ssh(self, target: SshTarget, timeout_s: float) -> list[str]:
        options = _common_options(target, timeout_s) | {
            "ControlMaster": "auto",
            "ControlPersist": str(PERSIST_S),
            "ControlPath": _word(self._control_path()),
        }
        if target.user:
            options["User"] = target.user
        if target.port:
            options["Port"] = str(target.port)
        if target.proxy_jump:
            options["ProxyCommand"] = _proxy_command(target, timeout_s)
        return _ssh_argv(target, options)

    def _control_path(self) -> Path:
        """Return the socket of the master connection to this target, in a folder of ours alone."""
        folder = self._control_directory
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise Unreachable(f"{folder} is not a folder for this account alone")
        # Short: the path of a socket has at most 107 characters.
        # Whoever has another key has another connection, also to the same account.
        named = repr(self._target) + (self._login.mark if self._login else "")
        return folder / hashlib.sha256(named.encode()).hexdigest()[:16]


def _common_options(target: SshTarget, timeout_s: float) -> dict[str, str]:
    """Return what holds for the host and for the one on the way to it."""
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": str(max(1, min(CONNECT_LIMIT_S, int(timeout_s)))),
        "ServerAliveInterval": str(ALIVE_INTERVAL_S),
        "ServerAliveCountMax": "2",
        "StrictHostKeyChecking": "yes",
        "ForwardAgent": "no",
        "LogLevel": "ERROR",
    }
    if target.known_hosts_file:
        options["UserKnownHostsFile"] = _word(target.known_hosts_file)
        options["GlobalKnownHostsFile"] = "/dev/null"
    if target.key_file:
        options["IdentityFile"] = _word(target.key_file)
        options |= {"IdentitiesOnly": "yes", "IdentityAgent": "none"}
    return options


def _proxy_command(target: SshTarget, timeout_s: float) -> str:
    """Return the command that reaches the host from the one on the way.

    The option `ProxyJump` would log in there without our keys and known hosts.
    """
    argv = _ssh_argv(target, _common_options(target, timeout_s))
    return shlex.join([*argv, "-W", "[%h]:%p", f"ssh://{target.proxy_jump}"])


def _ssh_argv(target: SshTarget, options: Mapping[str, str]) -> list[str]:
    chosen = [f"-o{key}={value}" for key, value in options.items()]
    return ["ssh", "-T", "-F", str(target.config_file or "none"), *chosen]


def _word(path: Path) -> str:
    """Return a path as one word of an option, without the meaning that `%` has there."""
    return '"' + str(path).replace("%", "%%") + '"'


def _default_control_directory() -> Path:
    return Path(tempfile.gettempdir(), f"pilotage-ssh-{os.geteuid()}")


def _unframed(stdout: str, mark: str) -> tuple[int, str] | None:
    """Return code and output of the command, or None if the answer is not whole."""
    _, begin, rest = stdout.partition(f"\n{mark}\n")
    output, end, code = rest.rpartition(f"\n{mark} ")
    if not begin or not end or not code.endswith("\n"):
        return None
    return int(code), output


def _why(done: Completed) -> str:
    said = (done.stderr.strip() or done.stdout.strip())[-500:]
    if done.returncode == _NO_CONNECTION:
        return said or "no connection"
    return f"the answer is not whole: {said!r}" if said else "the answer is not whole"
