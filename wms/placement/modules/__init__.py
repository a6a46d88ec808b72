"""Modules that carry out requests: they read and write files by the schemes of their addresses.

Another protocol is a module of this package with functions like those of `local_files`, and a line
in `READERS`, `WRITERS` and `REMOVERS` for what it can do; or a package of its own (`installed`), a
program (`programs`) or a plugin of HTCondor (`plugins`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path

from wms.core.errors import PilotageError
from wms.placement.conf import placement_conf
from wms.placement.modules import third_party
from wms.placement.modules.found import Modules, found_modules
from wms.placement.modules.programs import name_of, named_target
from wms.placement.modules.protocol import (
    FAILED,
    NO_MODULE,
    ModuleFailed,
    TransferResult,
    TransferTask,
)
from wms.placement.modules.streaming import Reading, Worker
from wms.placement.modules.web import DAV
from wms.placement.request_ad import Checksums
from wms.placement.states import RequestKind


@dataclass(frozen=True, slots=True)
class Abilities:
    """Work that can be done here: pairs of schemes, other work on files, folders and spaces."""

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
    #: Modules of others that are here and cannot be used, and why, by their names.
    unusable: Mapping[str, str] = field(default_factory=dict)


def abilities(
    *,
    has_workspace: bool = True,
    is_here: bool = True,
    spaces: Collection[str] | None = None,
    storages: Collection[str] | None = None,
) -> Abilities:
    """Abilities by the modules and the settings; folders only where it `is_here`.

    `spaces` are names under which space may be allocated, `storages` those that there are; None:
    nobody looks.
    """
    conf = placement_conf()
    modules = found_modules(conf)
    return Abilities(
        pairs=modules.pairs,
        works={
            RequestKind.STAGE: modules.stagers.keys() | modules.readers.keys(),
            RequestKind.REMOVE: modules.removers.keys(),
        },
        roots=conf.roots if is_here else None,
        spaces=spaces,
        storages=storages,
        longest_lease_s=conf.longest_lease_s,
        allowed=conf.allowed if is_here else None,
        knows_hosts=conf.known_hosts is not None or not is_here,
        has_workspace=has_workspace,
        unusable=modules.unusable,
    )


def carry_out(kind: RequestKind, pair: tuple[str, str], task: TransferTask) -> TransferResult:
    """Do a transfer or other work on a file by its module. Raises ModuleFailed."""
    try:
        modules = found_modules(task.conf)
        if kind == RequestKind.TRANSFER:
            return _transfer(modules, pair, task)
        if kind == RequestKind.STAGE:
            return _stage(modules, pair[0], task)
        if pair[0] not in modules.removers:
            raise _no_module(f"does {kind} for {pair[0]}", modules.removers)
        return modules.removers[pair[0]](task)
    except PilotageError as error:
        raise ModuleFailed(FAILED, str(error)) from None
    except TimeoutError:
        raise ModuleFailed(FAILED, f"nothing came for {task.conf.stall_s:g} s") from None
    except (HTTPException, EOFError) as error:
        raise ModuleFailed(FAILED, f"the connection broke: {type(error).__name__}") from None
    except OSError as error:
        told = f"{error.filename or 'file'}: {error.strerror}" if error.strerror else str(error)
        raise ModuleFailed(FAILED, told or type(error).__name__) from None


def _transfer(modules: Modules, pair: tuple[str, str], task: TransferTask) -> TransferResult:
    if pair in modules.direct:
        return _moved(modules, pair, task)
    if pair[0] not in modules.readers or pair[1] not in modules.writers:
        known = map("-".join, modules.pairs)
        raise _no_module(f"transfers from {pair[0]} to {pair[1]}", known)
    if not DAV.issuperset(pair) or not modules.has_own(pair):
        return _streamed(modules, pair, task)
    try:
        return third_party.copied(task)
    except third_party.Unable as error:
        note = f"streamed, because {error}"
    try:
        return replace(_streamed(modules, pair, task), note=note)
    except ModuleFailed as error:
        error.message = f"{error.message} ({note})"
        raise


def _streamed(modules: Modules, pair: tuple[str, str], task: TransferTask) -> TransferResult:
    read, write = modules.ends(pair)
    with read(task) as opened:
        reading = Reading(task, opened)
        result = write(reading)
        note = "; ".join(filter(None, (opened.note, result.note)))
        return replace(result, sha256=reading.sha256, note=note)


def _moved(modules: Modules, pair: tuple[str, str], task: TransferTask) -> TransferResult:
    """Have a program move the file between two hosts; what has to be known of it is read there."""
    read = modules.readers.get(pair[1])
    is_read = task.needs_sha256 or task.checksums != Checksums() or task.expected_bytes is not None
    if is_read and read is None:
        told = f"nothing reads {pair[1]}, so that size and checksum could be compared"
        raise ModuleFailed(FAILED, told)
    most = task.hold(task.expected_bytes, task.conf.file_bytes)
    result = modules.direct[pair](task)
    if not is_read or read is None:
        return result
    target = named_target(task.destination_url, name_of(task.source_url))
    there = replace(task, source_url=target, hold=lambda size, _: most)
    try:
        with read(there) as opened:
            reading = Reading(there, opened)
            for _ in reading:
                pass
    except ModuleFailed:
        remove = modules.removers.get(pair[1])
        if remove is not None:
            with suppress(ModuleFailed, OSError, HTTPException):
                remove(there)
        raise
    return replace(result, size_bytes=reading.size_bytes, sha256=reading.sha256)


def _stage(modules: Modules, scheme: str, task: TransferTask) -> TransferResult:
    """Have the file at hand: by a program, else by reading it; its checksum is compared."""
    stage: Worker | None = modules.stagers.get(scheme)
    if stage is not None:
        result = stage(task)
        if task.checksums == Checksums() and task.expected_bytes is None:
            return result
    if scheme not in modules.readers:
        raise _no_module(f"reads {scheme}", modules.readers)
    with modules.readers[scheme](task) as opened:
        reading = Reading(task, opened)
        for _ in reading:
            pass
    return TransferResult(reading.size_bytes)


def _no_module(what: str, known: Collection[str] | map[str]) -> ModuleFailed:
    return ModuleFailed(NO_MODULE, f"no module {what}; there is: {', '.join(sorted(known))}")
