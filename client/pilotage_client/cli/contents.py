"""Commands that read what was written: tail and fetch."""

from __future__ import annotations

import hashlib
import sys
import tarfile
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from time import sleep
from typing import Any

from ..client import Client
from ..errors import NotFound, PilotageError, UsageError
from ..files.sinks import FileSink, place_below
from ..flows.contents import file_path
from ..model import LogPart
from .printing import say, say_json, tell
from .targets import Target, target

_PAUSE_S, _PEEK_S = 1.0, 5.0
_PIECE_BYTES = 1024 * 1024
_NOTHING = 1
_NODE_ENDS = frozenset({"done", "failed", "futile", "skipped"})
Part = Callable[..., LogPart]


def tail(client: Client, options: Namespace) -> int:
    """Print the end of a log; with -f what comes, until it has ended."""
    named = target(options.target, "job", "node", "pilot")
    stream = "stderr" if options.stderr else "stdout"
    if named.kind == "pilot":
        path, job = file_path("pilots", named.name, "log"), 0
    else:
        job = _job_of(client, named, waits=options.follow)
        path = file_path("jobs", job, stream)
    more = {"attempt": options.attempt} if job else {}
    part = _first_part(client, path, job, options, more)
    sys.stdout.write(part.text)
    sys.stdout.flush()
    if options.follow:
        _follow(client, path, part, job, more)
    return 0


def _first_part(
    client: Client, path: str, job: int, options: Namespace, more: Mapping[str, Any]
) -> LogPart:
    """The end of a log; one that is followed may begin later, unless its job has ended."""
    while True:
        has_ended = not (options.follow and job) or client.job(job).has_ended
        try:
            return client.log_part(path, tail=min(options.bytes, _PIECE_BYTES), **more)
        except NotFound:
            if has_ended:
                raise
        sleep(_PAUSE_S)


def _follow(client: Client, path: str, part: LogPart, job: int, more: Mapping[str, Any]) -> None:
    quiet_s = _PEEK_S
    while part.is_growing:
        if not part.text:
            # Its pilot sends what is there sooner if somebody looks.
            if job and quiet_s >= _PEEK_S:
                quiet_s = 0.0
                with suppress(PilotageError):
                    client.peek(job)
            sleep(_PAUSE_S)
            quiet_s += _PAUSE_S
        begin = part.next_offset
        part = client.log_part(path, offset=begin, **more)
        if part.offset > begin:
            tell(f"[{part.offset - begin} bytes are not here]")
        sys.stdout.write(part.text)
        sys.stdout.flush()


def _job_of(client: Client, named: Target, *, waits: bool) -> int:
    """Number of a job, or of the latest one of a node; of one that has none yet if it `waits`."""
    if named.kind == "job":
        return named.id
    while True:
        node = client.node(named.id, named.name)
        if node["job"] is not None:
            return int(node["job"])
        if not waits or node["state"] in _NODE_ENDS:
            raise UsageError(f"{named.text} is {node['state']} and has no job.")
        sleep(_PAUSE_S)


def fetch(client: Client, options: Namespace) -> int:
    """Fetch files into a folder; those that are there already as they are at the portal stay."""
    named = target(options.target, "dag", "cluster", "job")
    folder = Path(options.to)
    if named.kind == "cluster":
        names = _fetch_archive(client, named, folder, options.only)
    else:
        files = (
            _files_of_dag(client, named, options)
            if named.kind == "dag"
            else (_files_of_job(client, named))
        )
        names = _fetch_files(client, files, folder, options.only)
    if options.json:
        say_json(names)
    else:
        for name in names:
            say(str(folder / name))
    if not names:
        tell(f"{named.text} has no such files, yet.")
        return _NOTHING
    return 0


def _files_of_dag(client: Client, named: Target, options: Namespace) -> list[tuple[str, str, str]]:
    """Name, path below the API, and digest of each file."""
    return [
        (each["path"], file_path("dags", named.id, "files", each["path"]), each["sha256"])
        for each in client.dag_file_list(named.id)
        if options.all or each["job"] is not None
    ]


def _files_of_job(client: Client, named: Target) -> list[tuple[str, str, str]]:
    return [
        (each["name"], file_path("jobs", named.id, "outputs", each["name"]), each["sha256"])
        for each in client.job_outputs(named.id)["files"]
    ]


def _fetch_files(
    client: Client, files: Sequence[tuple[str, str, str]], folder: Path, only: Sequence[str]
) -> list[str]:
    names = []
    for name, path, sha256 in sorted(files):
        if not _is_wanted(name, only):
            continue
        place = place_below(folder, name)
        if not (place.is_file() and sha256 and _digest(place) == sha256):
            sink = FileSink(place)
            client.download(path, sink)
            sink.keep(sha256)
        names.append(name)
    return names


def _fetch_archive(client: Client, named: Target, folder: Path, only: Sequence[str]) -> list[str]:
    """Fetch the outputs of a cluster's jobs: one archive, unpacked here."""
    names = []
    with tempfile.TemporaryDirectory(prefix="pilotage-") as temporary:
        sink = FileSink(Path(temporary, "outputs.tar"))
        client.download(file_path("clusters", named.id, "outputs.tar"), sink)
        with tarfile.open(sink.keep("")) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None or not _is_wanted(member.name, only):
                    continue
                inside = FileSink(place_below(folder, member.name))
                inside.begin(member.size)
                while piece := content.read(_PIECE_BYTES):
                    inside.write(piece)
                inside.keep("")
                names.append(member.name)
    return names


def _is_wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(
        fnmatch(name, pattern) or fnmatch(name.rpartition("/")[2], pattern) for pattern in only
    )


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()
