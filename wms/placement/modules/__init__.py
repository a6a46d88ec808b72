"""Modules that carry out requests: they read and write files by the schemes of their addresses.

Another protocol is a module of this package with functions like those of `local_files`, and a line
in `READERS`, `WRITERS` and `REMOVERS` for what it can do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Final

from wms.core.errors import PilotageError
from wms.placement.conf import placement_conf
from wms.placement.modules import ftp, local_files, s3, sftp, third_party, web
from wms.placement.modules.protocol import (
    FAILED,
    NO_MODULE,
    ModuleFailed,
    TransferResult,
    TransferTask,
)
from wms.placement.modules.streaming import Reading, Source
from wms.placement.modules.web import DAV
from wms.placement.states import RequestKind

#: What opens a file, by scheme.
READERS: Final[Mapping[str, Callable[[TransferTask], AbstractContextManager[Source]]]] = {
    "file": local_files.opened,
    **dict.fromkeys(("http", "https", "dav", "davs"), web.opened),
    **dict.fromkeys(("ftp", "ftps"), ftp.opened),
    **dict.fromkeys(("sftp", "scp"), sftp.opened),
    "s3": s3.opened,
}
#: What writes one.
WRITERS: Final[Mapping[str, Callable[[Reading], TransferResult]]] = {
    "file": local_files.write,
    **dict.fromkeys(("http", "https", "dav", "davs"), web.write),
    **dict.fromkeys(("ftp", "ftps"), ftp.write),
    **dict.fromkeys(("sftp", "scp"), sftp.write),
    "s3": s3.write,
}
#: What removes one.
REMOVERS: Final[Mapping[str, Callable[[TransferTask], TransferResult]]] = {
    "file": local_files.remove,
    **dict.fromkeys(("http", "https", "dav", "davs"), web.remove),
    **dict.fromkeys(("ftp", "ftps"), ftp.remove),
    **dict.fromkeys(("sftp", "scp"), sftp.remove),
    "s3": s3.remove,
}
#: The pairs of schemes of transfers.
PAIRS: Final = frozenset((source, target) for source in READERS for target in WRITERS)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What can be carried out here: pairs of schemes, other work on files, folders and spaces."""

    pairs: Collection[tuple[str, str]]
    works: Mapping[RequestKind, Collection[str]]
    #: None where nobody looks at the settings of the portal.
    roots: tuple[Path, ...] | None
    spaces: Collection[str] | None
    #: Names of those where logical names may be written.
    storages: Collection[str] | None
    longest_lease_s: int
    #: What is reached although it is not public; None where nobody looks.
    allowed: tuple[str, ...] | None
    #: Whether there are keys by which hosts of SSH are known.
    knows_hosts: bool = True
    #: Whether files of a DAG may be named.
    has_workspace: bool = True


def abilities(
    *,
    has_workspace: bool = True,
    is_here: bool = True,
    spaces: Collection[str] | None = None,
    storages: Collection[str] | None = None,
) -> Abilities:
    """What the modules and the settings allow; folders only where it `is_here`.

    `spaces` are names under which space may be allocated, `storages` those that there are; None:
    nobody looks.
    """
    conf = placement_conf()
    return Abilities(
        pairs=PAIRS,
        works={RequestKind.STAGE: READERS.keys(), RequestKind.REMOVE: REMOVERS.keys()},
        roots=conf.roots if is_here else None,
        spaces=spaces,
        storages=storages,
        longest_lease_s=conf.longest_lease_s,
        allowed=conf.allowed if is_here else None,
        knows_hosts=conf.known_hosts is not None or not is_here,
        has_workspace=has_workspace,
    )


def carry_out(kind: RequestKind, pair: tuple[str, str], task: TransferTask) -> TransferResult:
    """Do a transfer or other work on a file by its module. Raises ModuleFailed."""
    try:
        if kind == RequestKind.TRANSFER:
            return _transfer(pair, task)
        if kind == RequestKind.STAGE:
            return _stage(pair[0], task)
        if pair[0] not in REMOVERS:
            raise _no_module(f"does {kind} for {pair[0]}", REMOVERS)
        return REMOVERS[pair[0]](task)
    except PilotageError as error:
        raise ModuleFailed(FAILED, str(error)) from None
    except TimeoutError:
        raise ModuleFailed(FAILED, f"nothing came for {task.conf.stall_s:g} s") from None
    except (HTTPException, EOFError) as error:
        raise ModuleFailed(FAILED, f"the connection broke: {type(error).__name__}") from None
    except OSError as error:
        told = f"{error.filename or 'file'}: {error.strerror}" if error.strerror else str(error)
        raise ModuleFailed(FAILED, told or type(error).__name__) from None


def _transfer(pair: tuple[str, str], task: TransferTask) -> TransferResult:
    if pair not in PAIRS:
        known = map("-".join, PAIRS)
        raise _no_module(f"transfers from {pair[0]} to {pair[1]}", known)
    if not DAV.issuperset(pair):
        return _streamed(pair, task)
    try:
        return third_party.copied(task)
    except third_party.Unable as error:
        note = f"streamed, because {error}"
    try:
        return replace(_streamed(pair, task), note=note)
    except ModuleFailed as error:
        error.message = f"{error.message} ({note})"
        raise


def _streamed(pair: tuple[str, str], task: TransferTask) -> TransferResult:
    source, target = pair
    with READERS[source](task) as opened:
        reading = Reading(task, opened)
        return replace(WRITERS[target](reading), sha256=reading.sha256)


def _stage(scheme: str, task: TransferTask) -> TransferResult:
    """Read the file, so that a storage with tapes has it at hand, and compare its checksum."""
    if scheme not in READERS:
        raise _no_module(f"does stage for {scheme}", READERS)
    with READERS[scheme](task) as opened:
        reading = Reading(task, opened)
        for _ in reading:
            pass
    return TransferResult(reading.size_bytes)


def _no_module(what: str, known: Collection[str] | map[str]) -> ModuleFailed:
    return ModuleFailed(NO_MODULE, f"no module {what}; there is: {', '.join(sorted(known))}")
