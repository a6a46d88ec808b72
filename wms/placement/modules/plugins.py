"""File-transfer plugins of HTCondor, as they are: asked with `-classad` what they serve, then run.

One that takes several files is told the address and the file in an ad of `-infile`, and tells how
it went in one of `-outfile`; an old one is given both as arguments.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, Final

from matching.ads.ad_formats import parse_ad, split_ads
from matching.ads.classads import AdError, build_ad, literal_values, quote
from wms.placement.addresses import SCHEME, scheme_of, with_scheme
from wms.placement.modules.fenced import NoWorkplace, Program, ProgramLimits, workplace
from wms.placement.modules.programs import name_of, named_target
from wms.placement.modules.protocol import (
    FAILED,
    ModuleFailed,
    TransferResult,
    TransferTask,
)
from wms.placement.modules.streaming import Reader, Reading, Source, Writer
from wms.placement.modules.workplaces import (
    CONDOR_SERVICE,
    OURS,
    TransferPlace,
    first_line,
    plain_name,
    transfer_place,
)

#: Never asked of a plugin: the portal knows its own files and names.
_OWN: Final = frozenset({"file", "lfn"})
_ASKING: Final = ProgramLimits(wall_s=60, stall_s=60, file_bytes=2**20, output_bytes=64 * 1024)
_RESULT_BYTES: Final = 256 * 1024
_IN, _OUT = f"{OURS}in.ads", f"{OURS}out.ads"


@dataclass(frozen=True, slots=True)
class Plugin:
    """Answer of a plugin about itself; `fault` is why it cannot be used."""

    path: Path
    methods: tuple[str, ...] = ()
    takes_many: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Plugins:
    """Work of plugins by scheme; of two for one scheme the first one counts.

    Those that are `preferred` for a scheme go before all other modules.
    """

    readers: Mapping[str, Reader]
    writers: Mapping[str, Writer]
    preferred: frozenset[str]
    unusable: Mapping[str, str]


#: What plugins told, while their files stay as they were, and until when it counts.
_asked: dict[tuple[str, int, int, int], tuple[Plugin, float]] = {}
_asking = Lock()
#: One that could not be asked is asked again after so long.
_AGAIN_S: Final = 60.0


def find_plugins(listed: Sequence[tuple[str, Path]]) -> Plugins:
    """The plugins of the settings; those that are new or changed are asked."""
    readers: dict[str, Reader] = {}
    writers: dict[str, Writer] = {}
    unusable: dict[str, str] = {}
    preferred = []
    # Those of one scheme first: they are the ones for it.
    for scheme, path in sorted(listed, key=lambda each: not each[0]):
        plugin = _told(path)
        fault = plugin.fault
        if scheme and not fault and scheme not in plugin.methods:
            fault = f"does not serve {scheme}, but {', '.join(plugin.methods)}"
        if fault:
            unusable[str(path)] = f"the plugin {path} {fault}"
            continue
        preferred += [scheme] if scheme else []
        for method in [scheme] if scheme else plugin.methods:
            readers.setdefault(method, partial(_opened, plugin))
            writers.setdefault(method, partial(_written, plugin))
    return Plugins(readers, writers, frozenset(preferred), unusable)


def _told(path: Path) -> Plugin:
    try:
        status = path.stat()
    except OSError as error:
        return Plugin(path, fault=f"cannot be read: {error.strerror}")
    key = (str(path), status.st_mtime_ns, status.st_size, status.st_ino)
    with _asking:
        plugin, until_s = _asked.get(key, (None, 0.0))
        if plugin is None or time.monotonic() > until_s:
            try:
                plugin = _asked_now(path)
            except (NoWorkplace, OSError) as error:
                # Nobody has asked it: it may answer the next time.
                return Plugin(path, fault=f"cannot be asked: {error}")
            _asked[key] = plugin, time.monotonic() + (_AGAIN_S if plugin.fault else inf)
        return plugin


def _asked_now(path: Path) -> Plugin:
    """Answer of a plugin. Raises NoWorkplace and OSError."""
    if not path.is_absolute() or not path.is_file() or not os.access(path, os.X_OK):
        return Plugin(path, fault="is no executable file under an absolute path")
    with workplace([str(path.parent)], has_network=False) as place:
        end = place.run(Program(str(path), ["-classad"]), _ASKING, heartbeat=lambda: None)
    if end.failure or end.exit_code:
        told = end.failure or first_line(end.output) or f"exit code {end.exit_code}"
        return Plugin(path, fault=f"does not tell what it serves: {told}")
    try:
        ad = _values(end.output.decode(errors="replace"))
    except AdError as error:
        return Plugin(path, fault=f"does not tell what it serves: {error.message}")
    words = [each.strip().lower() for each in str(ad.get("supportedmethods", "")).split(",")]
    methods = tuple(each for each in words if SCHEME.fullmatch(each) and each not in _OWN)
    takes_many = ad.get("multiplefilesupport") is True
    return Plugin(path, methods, takes_many, "" if methods else "serves no scheme")


def _values(text: str) -> dict[str, Any]:
    """The plain values of the first ad of a text, by names in small letters. Raises AdError."""
    [(_, first), *_] = split_ads(text)
    values = literal_values(build_ad(parse_ad(first)))
    return {name.lower(): value for name, value in values.items()}


@contextmanager
def _opened(plugin: Plugin, task: TransferTask) -> Iterator[Source]:
    """The file at the source address, as the plugin has fetched it. Raises ModuleFailed."""
    name = name_of(task.source_url)
    file = plain_name(name)
    with _place(plugin, task, "source", task.source_url) as place:
        url = _for_plugin(place, "source", task.source_url)
        told = _moved(plugin, place, url, file, is_upload=False)
        with place.source(file, plugin.path.name, name) as source:
            _require_size(plugin, told, source.size_bytes)
            yield source


def _written(plugin: Plugin, reading: Reading) -> TransferResult:
    """Have the plugin send what is read, whole and checked. Raises ModuleFailed."""
    task, file = reading.task, plain_name(reading.source.name)
    target = named_target(task.destination_url, reading.source.name)
    with _place(plugin, task, "destination", target) as place:
        place.fill(file, reading)
        url = _for_plugin(place, "destination", target)
        told = _moved(plugin, place, url, file, is_upload=True)
        _require_size(plugin, told, reading.size_bytes)
    return TransferResult(reading.size_bytes, note=f"sent by {plugin.path.name}")


def _place(
    plugin: Plugin, task: TransferTask, end: str, url: str
) -> AbstractContextManager[TransferPlace]:
    return transfer_place(task, [str(plugin.path.parent)], {end: url})


def _for_plugin(place: TransferPlace, end: str, url: str) -> str:
    """The address with the service whose token is to be shown, as HTCondor writes it."""
    if not place.has_token(end):
        return url
    return with_scheme(url, f"{CONDOR_SERVICE}+{scheme_of(url)}")


def _moved(
    plugin: Plugin, place: TransferPlace, url: str, file: str, *, is_upload: bool
) -> Mapping[str, Any]:
    """Run the plugin for one file; what it told of it. Raises ModuleFailed."""
    name = plugin.path.name
    if not plugin.takes_many:
        ends = (place.path(file), url) if is_upload else (url, place.path(file))
        place.require_success(place.run(str(plugin.path), ends), name)
        return {}
    ad = f"[ LocalFileName = {quote(place.path(file))}; Url = {quote(url)} ]\n"
    place.write(_IN, ad.encode())
    arguments = ["-infile", place.path(_IN), "-outfile", place.path(_OUT)]
    end = place.run(str(plugin.path), [*arguments, *(["-upload"] if is_upload else [])])
    told = _result(place)
    place.require_success(end, name, str(told.get("transfererror", "")))
    if told.get("transfersuccess") is not True:
        why = told.get("transfererror") or "it did not tell that the file was transferred"
        raise ModuleFailed(FAILED, place.told(name, str(why)))
    return told


def _result(place: TransferPlace) -> Mapping[str, Any]:
    try:
        return _values(place.content(_OUT, _RESULT_BYTES).decode(errors="replace"))
    except (AdError, ValueError):
        return {}


def _require_size(plugin: Plugin, told: Mapping[str, Any], size_bytes: int | None) -> None:
    """Raise ModuleFailed where the plugin moved another number of bytes than there are."""
    moved = told.get("transferfilebytes", told.get("transfertotalbytes"))
    if isinstance(moved, int) and not isinstance(moved, bool) and moved != size_bytes:
        why = f"it transferred {moved} bytes of a file that has {size_bytes}"
        raise ModuleFailed(FAILED, f"{plugin.path.name}: {why}")
