"""Flows that send large files before what names them, and go on after an interruption.

Nothing is kept on this host: the portal has a list of the caller's uploads, in which one of the
same content is found, from wherever it was begun.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from ..errors import NoAnswer, PilotageError, Problem, UsageError, decoded, good
from ..files.bodies import FilePiece, Progress, size_of
from ..wire import Answer, Flow, Pause, Request, is_put_off, query_of, told
from ..wire import path as at
from .asking import PATIENCE, ask, new_key

#: Larger files go by uploads of their own.
LARGE_BYTES = 8 * 1024 * 1024
#: Others go together, and the largest of them by uploads if they are more than this.
_MOST_TOGETHER_BYTES = 128 * 1024 * 1024
#: By the usual settings of a portal, twice as many of a user may wait.
_MOST_UPLOADS = 500
#: A request may be larger; but a proxy may pass it on as a whole or not at all.
_PIECE_BYTES = 16 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_MOST_BEGINNINGS = 3
_LIMIT = re.compile(r"max-append-size=([0-9]{1,15})")
#: Told how many bytes of the file are there.
Sent = Optional[Callable[[int], None]]


class UploadBroken(NoAnswer):
    """The portal went away while a file was sent; what came of it is kept."""

    code = "upload-broken"


@dataclass(frozen=True)
class _Upload:
    """An upload as the portal tells it, and the largest piece that it takes."""

    id: int
    size: int
    offset: int
    is_complete: bool
    most_bytes: int = _PIECE_BYTES

    @classmethod
    def of(cls, raw: Mapping[str, Any], answer: Answer) -> _Upload:
        limit = _LIMIT.search(answer.headers.get("upload-limit", ""))
        most_bytes = min(int(limit[1]), _PIECE_BYTES) if limit else _PIECE_BYTES
        return cls(
            int(raw["id"]), int(raw["size_bytes"]), int(raw["offset"]), bool(raw["is_complete"]),
            max(1, most_bytes),
        )  # fmt: skip


def large_files(files: Mapping[str, Path]) -> dict[str, Path]:
    """Files that go by uploads: the largest, if they are large or the rest is too much at once."""
    sizes = {name: size_of(path) for name, path in files.items()}
    left = sum(sizes.values())
    chosen: dict[str, Path] = {}
    for name in sorted(sizes, key=lambda each: (-sizes[each], each)):
        is_enough = sizes[name] <= LARGE_BYTES and left <= _MOST_TOGETHER_BYTES
        if is_enough or not sizes[name] or len(chosen) == _MOST_UPLOADS:
            break
        chosen[name] = files[name]
        left -= sizes[name]
    return chosen


def upload(path: os.PathLike[str] | str, progress: Progress = None) -> Flow[int]:
    """Number of a complete upload of a file, for submissions; one broken off before is resumed."""
    numbers = yield from upload_all({"": Path(path)}, progress)
    return numbers[""]


def upload_all(
    files: Mapping[str, Path], progress: Progress = None, *, rest_bytes: int = 0
) -> Flow[dict[str, int]]:
    """Numbers of uploads by the names of the files; `rest_bytes` are sent afterwards.

    Raises UsageError, before anything is sent, if the portal does not take so much at once.
    """
    if rest_bytes > _MOST_TOGETHER_BYTES:
        yield from _check_rest(len(files), rest_bytes)
    sizes = {name: size_of(path) for name, path in files.items()}
    total, before, numbers = sum(sizes.values()) + rest_bytes, 0, {}
    for name, path in files.items():
        numbers[name] = yield from _whole(path, _shifted(progress, before, total))
        before += sizes[name]
    return numbers


def _check_rest(count: int, rest_bytes: int) -> Flow[None]:
    answer = yield from ask(Request("GET", at("uploads"), query_of({"page_size": 1})))
    limit = _LIMIT.search(answer.headers.get("upload-limit", ""))
    if limit and rest_bytes > int(limit[1]):
        raise UsageError(
            f"The {count} largest files would go by uploads, and the others are {rest_bytes} "
            f"bytes, of which the portal takes {limit[1]} at once: pack small files together."
        )


def _shifted(progress: Progress, before: int, total: int) -> Sent:
    if progress is None:
        return None
    tell = progress
    return lambda sent: tell(before + sent, total)


def _whole(path: Path, sent: Sent) -> Flow[int]:
    sha256, size = _sha256_of(path), size_of(path)
    if not size:
        raise UsageError(f"{path} is empty: it needs no upload.")
    for _ in range(_MOST_BEGINNINGS):
        now: _Upload | None = yield from _begun(sha256, size)
        while now is not None and not now.is_complete:
            now = yield from _further(path, now, sent)
        if now is not None:
            if sent is not None:
                sent(size)
            return now.id
    raise UsageError(f"{path} cannot be uploaded: its upload is cancelled again and again.")


def _begun(sha256: str, size: int) -> Flow[_Upload]:
    """The upload of this content that is furthest, or a new one."""
    answer = yield from ask(Request("GET", at("uploads"), query_of({"sha256": sha256})))
    found = [_Upload.of(raw, answer) for raw in decoded(answer)["results"]]
    same = [each for each in found if each.size == size]
    if same:
        return max(same, key=lambda each: (each.is_complete, each.offset))
    given = {"sha256": sha256, "size_bytes": size}
    answer = yield from ask(Request("POST", at("uploads"), json=given, key=new_key()))
    return _Upload.of(decoded(answer), answer)


def _further(path: Path, now: _Upload, sent: Sent) -> Flow[_Upload | None]:
    """The upload after its next piece; None if it is gone."""
    for place in range(PATIENCE.repetitions + 1):
        outcome = yield _piece(path, now, sent)
        if not is_put_off(outcome):
            return _after(now, outcome)
        if place == PATIENCE.repetitions:
            break
        asked_s = outcome.retry_after_s if isinstance(outcome, Answer) else 0.0
        yield Pause(PATIENCE.pause_s(place, asked_s), told(outcome))
        there = yield from _there(path, now)
        if there is None or there.is_complete or there.offset > now.offset:
            return there
    try:
        good(outcome)
    except PilotageError as error:
        raise _broken(path, now, error) from error
    raise AssertionError("an outcome that is put off is never good")


def _piece(path: Path, now: _Upload, sent: Sent) -> Request:
    length = min(now.most_bytes, now.size - now.offset)
    is_last = now.offset + length == now.size
    headers = (("Upload-Offset", str(now.offset)), ("Upload-Complete", "?1" if is_last else "?0"))
    body = FilePiece(path, now.offset, length, now.size, sent)
    return Request("PATCH", at("uploads", now.id), body=body, more_headers=headers)


def _after(now: _Upload, outcome: Any) -> _Upload | None:
    try:
        answer = good(outcome)
    except Problem as problem:
        if problem.status == 404:
            return None
        expected = problem.document.get("expected_offset")
        if problem.code != "upload-offset" or expected in (None, now.offset):
            raise
        # Another client is at the same file, or an answer was lost.
        return _Upload(now.id, now.size, int(expected), False, now.most_bytes)
    return _Upload.of(decoded(answer), answer)


def _there(path: Path, now: _Upload) -> Flow[_Upload | None]:
    """The upload as the portal has it; None if it is gone."""
    try:
        answer = yield from ask(Request("GET", at("uploads", now.id)))
    except NoAnswer as error:
        raise _broken(path, now, error) from error
    except Problem as problem:
        if problem.status == 404:
            return None
        raise
    return _Upload.of(decoded(answer), answer)


def _broken(path: Path, now: _Upload, error: PilotageError) -> PilotageError:
    return UploadBroken(
        f"{error} At least {now.offset} of the {now.size} bytes of {path.name} are there: the same "
        "once more goes on from there."
    )


def _sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(_READ_BYTES):
                digest.update(piece)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    return digest.hexdigest()
