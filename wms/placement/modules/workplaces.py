"""Workplaces of transfers by programs: a file in or out, credentials, one run, its end as ours.

The end that is a file of this host is in the workplace while the program runs: it is put there
before, or taken from there after, by the modules that know files and checksums.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from wms.core.public_addresses import NotPublic, UnknownHost, public_addresses
from wms.placement.addresses import scheme_of
from wms.placement.modules.connections import not_reachable
from wms.placement.modules.fenced import (
    NoWorkplace,
    Program,
    ProgramEnd,
    ProgramLimits,
    Workplace,
    workplace,
)
from wms.placement.modules.ports import port_of
from wms.placement.modules.protocol import (
    FAILED,
    NO_MODULE,
    TIME_IS_OVER,
    Credential,
    ModuleFailed,
    TransferTask,
)
from wms.placement.modules.streaming import CHUNK_BYTES, Reading, Source

#: Variable with the folder of credentials, one secret a file: `source.token`.
CREDENTIALS: Final = "PILOTAGE_CREDENTIALS"
_CREDENTIALS_FOLDER: Final = "credentials"
#: What HTCondor calls the service whose token a plugin is given.
CONDOR_SERVICE: Final = "pilotage"
#: Names of other files in the workplace begin so.
OURS: Final = "pilotage-"
_OUTPUT_BYTES: Final = 64 * 1024
_MESSAGE_CHARACTERS: Final = 500
#: The heartbeat of the attempt ends it at its limit; this one is for when it does not beat.
_SPARE_S: Final = 60.0
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")


@dataclass(slots=True)
class TransferPlace:
    """The workplace of one transfer, with what its owner has stored for the ends."""

    _place: Workplace
    _task: TransferTask
    _environment: Mapping[str, str]
    _secrets: Sequence[str]
    _tokens: Mapping[str, str]

    def path(self, name: str) -> str:
        """Path of a file, as the program sees it."""
        return f"{self._place.root}/{name}"

    def url(self, name: str) -> str:
        """The `file:` address of a file, as the program sees it."""
        return f"file://{self.path(name)}"

    def has_token(self, end: str) -> bool:
        """Whether the owner has a token for an end."""
        return end in self._tokens

    def write(self, name: str, content: bytes) -> None:
        """Put a small file there."""
        descriptor = new_file(self._place, name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)

    def fill(self, name: str, reading: Reading) -> None:
        """Put what is read there. Raises ModuleFailed for what the request does not tell of."""
        descriptor = new_file(self._place, name)
        try:
            reading.write_to(descriptor)
        finally:
            os.close(descriptor)

    def content(self, name: str, most_bytes: int) -> bytes:
        """A small file that the program has left; nothing where there is none."""
        try:
            with self._place.open_file(name) as file:
                return file.read(most_bytes)
        except OSError:
            return b""

    @contextmanager
    def source(self, file: str, program: str, name: str) -> Iterator[Source]:
        """The file that the program has left, under its name elsewhere.

        Raises ModuleFailed where there is none.
        """
        try:
            stream = self._place.open_file(file)
        except OSError as error:
            told = f"{program} has left no file: {error.strerror or error}"
            raise ModuleFailed(FAILED, told) from None
        with stream:
            size = os.fstat(stream.fileno()).st_size
            read = Source(lambda _: (0, _pieces(stream)), name, size, note=f"fetched by {program}")
            yield read

    def run(
        self,
        executable: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
    ) -> ProgramEnd:
        """Run a program, whatever its end is."""
        conf = self._task.conf
        limits = ProgramLimits(
            conf.limit_s + _SPARE_S, conf.stall_s, conf.file_bytes, _OUTPUT_BYTES
        )
        program = Program(executable, arguments, {**self._environment, **(environment or {})})
        return self._place.run(program, limits, heartbeat=self._task.pulse)

    def require_success(self, end: ProgramEnd, program: str, message: str = "") -> None:
        """Raise ModuleFailed for a run that did not succeed, with its code and first line."""
        if end.failure:
            raise ModuleFailed(FAILED, self.told(program, end.failure))
        if end.exit_code == 0:
            return
        code = end.exit_code if end.exit_code > 0 else 128 - end.exit_code
        told = message or first_line(end.output) or _MEANINGS.get(code, f"exit code {code}")
        raise ModuleFailed(code, self.told(program, told))

    def told(self, program: str, text: str) -> str:
        """Words of a program for the record: without secrets, cut."""
        for secret in self._secrets:
            text = text.replace(secret, "(secret)")
        return f"{program}: {text}"[:_MESSAGE_CHARACTERS]


_MEANINGS: Final = {NO_MODULE: "it knows no module for this", TIME_IS_OVER: "it took too long"}


def first_line(output: bytes) -> str:
    """The first line that a program said, without control characters."""
    for line in output.decode(errors="replace").splitlines():
        said = " ".join("".join(c if c.isprintable() else " " for c in line).split())
        if said:
            return said
    return ""


@contextmanager
def transfer_place(
    task: TransferTask, readable: Sequence[str], ends: Mapping[str, str]
) -> Iterator[TransferPlace]:
    """A workplace for a transfer between these `ends`, addresses by their names.

    Raises ModuleFailed for an end that must not be reached, or where no program can be run.
    """
    others = {name: url for name, url in ends.items() if scheme_of(url) != "file"}
    for url in others.values():
        _require_public(task, url)
    given = {name: found for name, url in others.items() if (found := _credential(task, url))}
    try:
        with workplace(readable, has_network=True) as place:
            environment = _hand_over(place, given, others)
            secrets = [each for found in given.values() for each in _secrets_of(found)]
            tokens = {name: found.token for name, found in given.items() if found.token}
            yield TransferPlace(place, task, environment, secrets, tokens)
    except NoWorkplace as error:
        raise ModuleFailed(FAILED, str(error)) from None


def plain_name(name: str) -> str:
    """The name of a file in the workplace, of which nothing has to be quoted."""
    is_ours = name == _CREDENTIALS_FOLDER or name.startswith(OURS)
    return name if _PLAIN_NAME.fullmatch(name) and not is_ours else "file"


def _require_public(task: TransferTask, url: str) -> None:
    """Raise ModuleFailed for an address that must not be reached.

    A name that nobody knows may mean something to the program alone.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    try:
        public_addresses(host, parts.port or 0, allowed=task.conf.allowed)
    except UnknownHost:
        return
    except NotPublic:
        raise not_reachable(host) from None


def _credential(task: TransferTask, url: str) -> Credential | None:
    parts = urlsplit(url)
    return task.credential(
        parts.scheme, (parts.hostname or "").lower(), parts.port or port_of(parts.scheme)
    )


def _secrets_of(found: Credential) -> list[str]:
    return [each for each in (found.secret, found.token, found.key) if each]


def _hand_over(
    place: Workplace, given: Mapping[str, Credential], ends: Collection[str]
) -> dict[str, str]:
    """Write the credentials into files of the workplace; the variables that name them.

    What shows the token of `BEARER_TOKEN_FILE` may show it to each end.
    """
    if not given:
        return {}
    (place.folder / _CREDENTIALS_FOLDER).mkdir(mode=0o700)
    names = {"secret": "password"}
    for end, found in given.items():
        for each in fields(found):
            value = getattr(found, each.name)
            if value:
                name = f"{end}.{names.get(each.name, each.name)}"
                _put(place, name, value)
    folder = f"{place.root}/{_CREDENTIALS_FOLDER}"
    environment = {CREDENTIALS: folder}
    tokens = {given[end].token if end in given else "" for end in ends}
    if len(tokens) == 1 and (token := tokens.pop()):
        _put(place, f"{CONDOR_SERVICE}.use", json.dumps({"access_token": token}))
        end = next(iter(ends))
        environment |= {"BEARER_TOKEN_FILE": f"{folder}/{end}.token", "_CONDOR_CREDS": folder}
    return environment


def _put(place: Workplace, name: str, value: str) -> None:
    with os.fdopen(new_file(place, f"{_CREDENTIALS_FOLDER}/{name}"), "w") as file:
        file.write(value)


def new_file(place: Workplace, name: str) -> int:
    """Descriptor of a new file in a workplace, for its program's account alone."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(place.folder / name, flags, 0o600)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    stream.seek(0)
    while piece := stream.read(CHUNK_BYTES):
        yield piece
