"""Session of SFTP with another host, by a process of the system's `ssh` that ends with it.

`ssh` proves the host's key against the file that the settings name, and nothing else: it reads no
settings, keys or agents of this account. It connects to an address that was checked before.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from wms.core.public_addresses import NotPublic, public_addresses
from wms.elements.logins import in_memory
from wms.elements.runner import clean_environment
from wms.placement.modules.connections import Endpoint, credential_of, not_reachable
from wms.placement.modules.protocol import FAILED, Credential, ModuleFailed, TransferTask

_USUAL_PORT: Final = 22
#: So long a pulse is not waited for.
_STEP_S: Final = 1.0
#: So much of what `ssh` says is read, and so long it has to end by itself.
_WORDS_BYTES: Final = 4096
_END_S: Final = 5.0
_MOST_BYTES: Final = 2**20


class Session:
    """Bytes to and from the other side; nothing stalls for longer than the settings say.

    What comes or goes in parts has a pulse for each: the other side may give its bytes one by one.
    """

    def __init__(self, task: TransferTask, into: int, source: int, words: int) -> None:
        self._task, self._into, self._from, self._words = task, into, source, words
        for each in (into, source, words):
            os.set_blocking(each, False)
        self._came = bytearray()
        self._said = b""

    def send(self, data: bytes | bytearray) -> None:
        """Send all of it. Raises OSError."""
        left = memoryview(data)
        while left:
            try:
                size = os.write(self._into, left)
            except BlockingIOError:
                self._wait(self._into, select.POLLOUT)
                continue
            left = left[size:]
            if left:
                self._task.pulse()

    def receive(self, size: int) -> bytes:
        """So many bytes. Raises OSError, also where the other side ends before."""
        while len(self._came) < size:
            try:
                piece = os.read(self._from, _MOST_BYTES)
            except BlockingIOError:
                self._wait(self._from, select.POLLIN)
                continue
            if not piece:
                raise ConnectionAbortedError("the connection ended")
            self._came += piece
            if len(self._came) < size:
                self._task.pulse()
        wanted = bytes(memoryview(self._came)[:size])
        del self._came[:size]
        return wanted

    def said(self) -> str:
        """The first words of `ssh`, and of the other side."""
        while self._hear():
            pass
        return self._said.decode(errors="replace").strip()

    def _hear(self) -> bool:
        """Take what was said, so that nobody waits for it to be read; False if it was nothing."""
        try:
            words = os.read(self._words, _MOST_BYTES)
        except BlockingIOError:
            return False
        self._said += words[: _WORDS_BYTES - len(self._said)]
        return bool(words)

    def _wait(self, descriptor: int, event: int) -> None:
        poll, deadline = select.poll(), time.monotonic() + self._task.conf.stall_s
        poll.register(descriptor, event)
        poll.register(self._words, select.POLLIN)
        while True:
            ready = dict(poll.poll(1000 * min(_STEP_S, self._task.conf.stall_s)))
            if self._words in ready and not self._hear():
                poll.unregister(self._words)
            if descriptor in ready:
                return
            self._task.pulse()
            if time.monotonic() > deadline:
                raise TimeoutError


@contextmanager
def session_with(task: TransferTask, endpoint: Endpoint) -> Iterator[Session]:
    """A session with the SFTP server of an endpoint. Raises ModuleFailed.

    What breaks off inside of the block is told in the words of `ssh` where it has ended.
    """
    known_hosts, given = task.conf.known_hosts, credential_of(task, endpoint)
    if known_hosts is None:
        raise ModuleFailed(FAILED, "no file of hosts' keys is set (PILOTAGE_PLACEMENT_KNOWN_HOSTS)")
    if given is None or not given.key:
        raise ModuleFailed(FAILED, f"no key is stored for {endpoint.scheme}://{endpoint.authority}")
    address = _address(task, endpoint)
    with in_memory(given.key) as key_file:
        argv = _argv(task, endpoint, address, given, key_file, known_hosts)
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, env=clean_environment(), start_new_session=True,
        )  # fmt: skip
        assert process.stdin
        assert process.stdout
        assert process.stderr
        pipes = [process.stdin, process.stdout, process.stderr]
        session = Session(task, *(each.fileno() for each in pipes))
        try:
            yield session
        except (ConnectionError, BrokenPipeError) as error:
            _end(process)
            _raise_why(session.said(), endpoint, given)
            raise ConnectionAbortedError("the connection ended") from error
        finally:
            _end(process)
            process.stderr.close()


def _address(task: TransferTask, endpoint: Endpoint) -> str:
    try:
        return public_addresses(endpoint.host, endpoint.port, allowed=task.conf.allowed)[0]
    except NotPublic:
        raise not_reachable(endpoint.host) from None


def _argv(
    task: TransferTask,
    endpoint: Endpoint,
    address: str,
    given: Credential,
    key_file: Path,
    known_hosts: Path,
) -> list[str]:
    is_usual = endpoint.port == _USUAL_PORT
    options = {
        "HostName": address,
        # As known hosts are written, whatever address was connected to.
        "HostKeyAlias": endpoint.host if is_usual else f"[{endpoint.host}]:{endpoint.port}",
        "Port": str(endpoint.port),
        "User": given.user,
        "IdentityFile": _word(key_file),
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "PreferredAuthentications": "publickey",
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": _word(known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "UpdateHostKeys": "no",
        "CheckHostIP": "no",
        "VerifyHostKeyDNS": "no",
        "ProxyCommand": "none",
        "ControlPath": "none",
        "ClearAllForwardings": "yes",
        "ForwardAgent": "no",
        "ConnectTimeout": str(max(1, int(task.conf.stall_s))),
        "ServerAliveInterval": str(max(1, int(task.conf.stall_s / 2))),
        "ServerAliveCountMax": "2",
        "LogLevel": "ERROR",
    }
    chosen = [f"-o{name}={value}" for name, value in options.items()]
    return ["ssh", "-T", "-F", "none", *chosen, "-s", "--", endpoint.host, "sftp"]


def _word(path: Path) -> str:
    """A path as one word of an option, without the meaning that `%` has there."""
    return '"' + str(path).replace("%", "%%") + '"'


def _raise_why(said: str, endpoint: Endpoint, given: Credential) -> None:
    """Raise ModuleFailed where `ssh` was not let in, with what it says of it."""
    if not said:
        return
    if "Host key verification failed" in said:
        told = f"the key of {endpoint.host} is not among those of PILOTAGE_PLACEMENT_KNOWN_HOSTS"
    elif "Permission denied" in said:
        told = f"{endpoint.host} refuses the key of {given.user!r}"
    elif "subsystem request failed" in said:
        told = f"{endpoint.host} serves no SFTP"
    elif "Connection refused" in said or "timed out" in said or "No route" in said:
        told = f"{endpoint.host}:{endpoint.port} cannot be reached: {said.splitlines()[-1]}"
    else:
        # It broke off later: what has come is of use.
        return
    raise ModuleFailed(FAILED, told[:500])


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and close the pipes of bytes; it has some time to go by itself."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
