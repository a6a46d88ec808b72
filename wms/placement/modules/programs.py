"""Programs that move files, as Stork has them: `stork.transfer.http-file` and the like.

They lie in the folder of `PILOTAGE_PLACEMENT_MODULES` and are found whenever one is needed. One
between two other hosts does its whole transfer; one from or to `file` is of use with the other
modules too, which read or write the file of this host.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from wms.placement.addresses import SCHEME
from wms.placement.modules.protocol import TransferResult, TransferTask
from wms.placement.modules.streaming import Reader, Reading, Source, Worker, Writer
from wms.placement.modules.workplaces import plain_name, transfer_place

_NAME: Final = re.compile(
    rf"stork\.(transfer)\.({SCHEME.pattern})-({SCHEME.pattern})"
    rf"|stork\.(stage|remove|reserve|release)\.({SCHEME.pattern})"
)
_FILE: Final = "file"


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs by what they do; `unusable` are, by name, those that cannot be run, and why."""

    readers: Mapping[str, Reader]
    writers: Mapping[str, Writer]
    #: Transfers between two hosts.
    direct: Mapping[tuple[str, str], Worker]
    stagers: Mapping[str, Worker]
    removers: Mapping[str, Worker]
    #: Paths of those that reserve and release space.
    reservers: Mapping[str, Path]
    releasers: Mapping[str, Path]
    unusable: Mapping[str, str]


def find_programs(folder: Path | None) -> Programs:
    """The programs in a folder, now."""
    unusable: dict[str, str] = {}
    named = list(_named(folder, unusable))
    transfers = {(each[2], each[3]): path for each, path in named if each[1]}
    works: dict[str, dict[str, Path]] = defaultdict(dict)
    for each, path in named:
        if each[4]:
            works[each[4]][each[5]] = path
    return Programs(
        readers={
            source: partial(_opened, path)
            for (source, target), path in transfers.items()
            if target == _FILE
        },
        writers={
            target: partial(_written, path)
            for (source, target), path in transfers.items()
            if source == _FILE
        },
        direct={
            pair: partial(_transferred, path)
            for pair, path in transfers.items()
            if _FILE not in pair
        },
        stagers={scheme: partial(_worked, path) for scheme, path in works["stage"].items()},
        removers={scheme: partial(_worked, path) for scheme, path in works["remove"].items()},
        reservers=works["reserve"],
        releasers=works["release"],
        unusable=unusable,
    )


def _named(folder: Path | None, unusable: dict[str, str]) -> Iterator[tuple[re.Match[str], Path]]:
    """The programs that can be run, with the parts of their names; the others are noted."""
    for path in _files(folder, unusable):
        found = _NAME.fullmatch(path.name)
        if found is None:
            continue
        why = fault_of(path)
        if (found[2], found[3]) == (_FILE, _FILE):
            why = "is of no use: the portal itself copies files of this host"
        if why:
            unusable[path.name] = f"{path.name} {why}"
        else:
            yield found, path


def _files(folder: Path | None, unusable: dict[str, str]) -> list[Path]:
    try:
        return [] if folder is None else sorted(folder.iterdir())
    except OSError as error:
        unusable[""] = f"the folder PILOTAGE_PLACEMENT_MODULES cannot be read: {error.strerror}"
        return []


def fault_of(path: Path) -> str:
    """Why a path is no program that can be run; empty for one that can."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(mode):
        return "is no file"
    # Not asked of the system: root may execute what the account behind the fence may not.
    return "" if mode & 0o111 and os.access(path, os.X_OK) else "is not executable"


@contextmanager
def _opened(path: Path, task: TransferTask) -> Iterator[Source]:
    """The file at the source address, as the program has fetched it. Raises ModuleFailed."""
    name = name_of(task.source_url)
    file = plain_name(name)
    with transfer_place(task, [str(path.parent)], {"source": task.source_url}) as place:
        arguments = [task.source_url, place.url(file), *task.arguments.split()]
        place.require_success(place.run(str(path), arguments), path.name)
        with place.source(file, path.name, name) as source:
            yield source


def _written(path: Path, reading: Reading) -> TransferResult:
    """Have the program send what is read, whole and checked. Raises ModuleFailed."""
    task, file = reading.task, plain_name(reading.source.name)
    target = named_target(task.destination_url, reading.source.name)
    with transfer_place(task, [str(path.parent)], {"destination": target}) as place:
        place.fill(file, reading)
        arguments = [place.url(file), target, *task.arguments.split()]
        place.require_success(place.run(str(path), arguments), path.name)
    return TransferResult(reading.size_bytes, note=f"sent by {path.name}")


def _transferred(path: Path, task: TransferTask) -> TransferResult:
    """Have the program move the file between two hosts; nobody has read it here."""
    target = named_target(task.destination_url, name_of(task.source_url))
    ends = {"source": task.source_url, "destination": target}
    with transfer_place(task, [str(path.parent)], ends) as place:
        end = place.run(str(path), [*ends.values(), *task.arguments.split()])
        place.require_success(end, path.name)
    return TransferResult(None, note=f"moved by {path.name}")


def _worked(path: Path, task: TransferTask) -> TransferResult:
    """Have the program stage or remove the file at the source address. Raises ModuleFailed."""
    with transfer_place(task, [str(path.parent)], {"source": task.source_url}) as place:
        end = place.run(str(path), [task.source_url, *task.arguments.split()])
        place.require_success(end, path.name)
    return TransferResult(None, note=f"done by {path.name}")


def name_of(url: str) -> str:
    """The last part of an address, decoded."""
    return posixpath.basename(unquote(urlsplit(url).path).rstrip("/")) or "file"


def named_target(url: str, name: str) -> str:
    """The address of a destination; in one that ends with a slash the file keeps its name."""
    return url + quote(name) if url.endswith("/") else url
