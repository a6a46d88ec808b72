"""Interface of transfer modules: a transfer to be done, its result, its failure and exit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wms.placement.conf import PlacementConf
from wms.placement.modules.kept import FoldersToSync, KeptConnections
from wms.placement.request_ad import Checksums

#: Exit codes of attempts. 111 is Stork's, the others are those of the shell and of `timeout`.
FAILED: Final = 1
NO_MODULE: Final = 111
TIME_IS_OVER: Final = 124


class ModuleFailed(Exception):
    """An attempt failed: with which exit code, and why."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.message = message


def _any_size(size_bytes: int | None, most_bytes: int) -> int:
    return most_bytes


class Interrupted(ModuleFailed):
    """The transfer broke off: what has come is of use for the next attempt."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(exit_code, message)


@dataclass(frozen=True, slots=True)
class Credential:
    """Credential of an endpoint: user (or key id) and password, a token, or user and SSH key."""

    user: str = ""
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    #: The private key of the user, for SSH.
    key: str = field(default="", repr=False)


def _no_credential(scheme: str, host: str, port: int) -> Credential | None:
    return None


@dataclass(frozen=True, slots=True)
class TransferTask:
    """One transfer. `pulse` is called for each piece of work; its exception ends the attempt.

    `hold` is told the size of the file, None where nobody knows it, and the most that the settings
    allow; it gives the bytes that may be written, and raises ModuleFailed where there is no room.
    """

    request_id: int
    source_url: str
    destination_url: str
    arguments: str
    workspace_id: int
    directory: str
    checksums: Checksums
    expected_bytes: int | None
    conf: PlacementConf
    pulse: Callable[[], None]
    hold: Callable[[int | None, int], int] = _any_size
    #: What the owner has stored for an endpoint: scheme, host and port.
    credential: Callable[[str, str, int], Credential | None] = _no_credential
    is_last: bool = False
    attempt_number: int = 1
    #: Whether the SHA-256 of what is placed has to be known in the end.
    needs_sha256: bool = False
    #: Connections of transfers that went before, for this one and the next ones; None: none stay.
    kept: KeptConnections | None = None
    #: Folders that the caller has written to the disk before it tells the end; None: it does not.
    folders: FoldersToSync | None = None


@dataclass(frozen=True, slots=True)
class TransferResult:
    """Result of a transfer: `contents` by path are put into the workspace when the attempt ends.

    `removed` are paths that are taken out of it. No size where nothing was read.
    """

    size_bytes: int | None
    contents: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    #: Of what was transferred; of a copy between servers it may not be known.
    sha256: str = ""
    #: How it went, where there is more than one way.
    note: str = ""
