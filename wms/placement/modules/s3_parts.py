"""Large objects of `s3:` addresses, written by parts: what a cut attempt has sent is not lost.

The source is read from its beginning, which the checksums need: a part that the store has already,
by the MD5 that it tells, is not sent again. So it never matters whether the source is still the
same. The object appears when it is complete, of the parts that were read.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from http.client import HTTPException
from typing import Final, Protocol
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from wms.core.storage.s3_signing import EMPTY, UNSIGNED, query_of
from wms.placement.modules.connections import Endpoint
from wms.placement.modules.protocol import FAILED, ModuleFailed, TransferTask
from wms.placement.modules.streaming import CHUNK_BYTES, Reading
from wms.placement.modules.web import Answer, Client, require

#: Smaller files are written by one request.
LARGE_BYTES: Final = 64 * 1024 * 1024
#: Of a very large file they are larger: there are 10,000 at most.
PART_BYTES: Final = 16 * 1024 * 1024
_MOST_PARTS: Final = 10_000
#: A list of a thousand parts or writes.
_LIST_BYTES: Final = 2 * 1024 * 1024


class SignedObject(Protocol):
    """An object of a store, and the signatures of requests for it."""

    endpoint: Endpoint
    #: That of the bucket.
    bucket: Endpoint
    key: str

    def headers(
        self,
        method: str,
        content_sha256: str = EMPTY,
        *,
        query: dict[str, str] | None = None,
        of_bucket: bool = False,
    ) -> dict[str, str]:
        """Headers that sign a request."""


def write_parts(reading: Reading, target: SignedObject, client: Client) -> None:
    """Write a file by parts. Raises ModuleFailed, and what reading raises."""
    upload = _Upload(reading.task, target, client)
    try:
        upload.begin()
        for part in _parts(reading, _part_bytes(reading.source.size_bytes)):
            upload.add(part)
        upload.complete()
    except BaseException:
        # The next attempt goes on with it, or another one does at this moment.
        if reading.task.is_last:
            upload.abort()
        raise


def _part_bytes(size_bytes: int | None) -> int:
    return max(PART_BYTES, -(-(size_bytes or 0) // _MOST_PARTS))


def _parts(pieces: Iterable[bytes], part_bytes: int) -> Iterator[bytes]:
    """Pieces put together to parts of equal size; the last may be smaller, and there is one."""
    part = bytearray()
    is_first = True
    for piece in pieces:
        part += piece
        while len(part) >= part_bytes:
            yield bytes(part[:part_bytes])
            del part[:part_bytes]
            is_first = False
    if part or is_first:
        yield bytes(part)


class _Upload:
    """A write by parts: one that was begun before, or a new one."""

    def __init__(self, task: TransferTask, target: SignedObject, client: Client) -> None:
        self._task, self._target, self._client = task, target, client
        self._id = ""
        self._tags: list[str] = []
        self._there: dict[int, str] = {}

    def begin(self) -> None:
        """Go on with the latest write of this object that was broken off, or begin one."""
        self._id = self._begun()
        if self._id:
            for part in self._listed({"uploadId": self._id}, "Part"):
                tag = (part.findtext("{*}ETag") or "").strip('"')
                self._there[int(part.findtext("{*}PartNumber") or 0)] = tag
            return
        answer = self._ask("POST", {"uploads": ""})
        self._id = answer.findtext("{*}UploadId") or ""

    def _begun(self) -> str:
        """The latest write of this object that was begun; none where the key may not ask."""
        begun: dict[datetime, str] = {}
        with suppress(ModuleFailed):
            for each in self._listed({"uploads": "", "prefix": self._target.key}, "Upload"):
                if each.findtext("{*}Key") == self._target.key:
                    began_at = datetime.fromisoformat(each.findtext("{*}Initiated") or "")
                    begun[began_at] = each.findtext("{*}UploadId") or ""
        return begun[max(begun)] if begun else ""

    def add(self, part: bytes) -> None:
        """Send the next part, if the store has it not."""
        number = len(self._tags) + 1
        if number > _MOST_PARTS:
            raise ModuleFailed(FAILED, f"the file has more than {_MOST_PARTS} parts")
        digest = hashlib.md5(part, usedforsecurity=False)
        tag = digest.hexdigest()
        if self._there.get(number) != tag:
            headers = {
                "Content-Length": str(len(part)),
                "Content-MD5": base64.b64encode(digest.digest()).decode(),
            }
            query = {"partNumber": str(number), "uploadId": self._id}
            answer = self._answer("PUT", query, self._pulsed(part), headers)
            # A store that encrypts tells another mark than the MD5.
            tag = answer.getheader("ETag", tag).strip('"')
            answer.read()
        self._tags.append(tag)

    def _pulsed(self, part: bytes) -> Iterator[bytes]:
        for begin in range(0, len(part), CHUNK_BYTES):
            self._task.pulse()
            yield part[begin : begin + CHUNK_BYTES]

    def complete(self) -> None:
        """Let the object appear."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{escape(tag)}&quot;</ETag></Part>"
            for number, tag in enumerate(self._tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        answer = self._ask("POST", {"uploadId": self._id}, body)
        # A store may begin its answer with 200 before it knows the end.
        if answer.tag.rpartition("}")[2] == "Error":
            raise ModuleFailed(FAILED, f"the store joined no parts: {answer.findtext('{*}Code')}")

    def abort(self) -> None:
        """Have the store forget what was sent; where that fails, its own rules have to."""
        if self._id:
            with suppress(ModuleFailed, OSError, HTTPException):
                query = {"uploadId": self._id}
                self._answer("DELETE", query, good={200, 204, 404}).read()

    def _listed(self, query: dict[str, str], name: str) -> Iterator[ElementTree.Element]:
        """Entries of a list: of writes in the bucket, or of parts of one."""
        of_bucket, more = "uploads" in query, dict[str, str]()
        marks = (
            {"key-marker": "NextKeyMarker", "upload-id-marker": "NextUploadIdMarker"}
            if of_bucket
            else {"part-number-marker": "NextPartNumberMarker"}
        )
        while True:
            page = self._ask("GET", query | more, of_bucket=of_bucket)
            yield from page.iterfind(f"{{*}}{name}")
            if page.findtext("{*}IsTruncated") != "true":
                return
            more = {each: page.findtext(f"{{*}}{mark}") or "" for each, mark in marks.items()}

    def _ask(
        self, method: str, query: dict[str, str], body: bytes = b"", *, of_bucket: bool = False
    ) -> ElementTree.Element:
        headers = {"Content-Length": str(len(body))} if body else {}
        answer = self._answer(method, query, [body] if body else None, headers, of_bucket=of_bucket)
        content = answer.read(_LIST_BYTES)
        try:
            return ElementTree.fromstring(content)
        except ElementTree.ParseError:
            raise ModuleFailed(FAILED, "the store's answer is no XML") from None

    def _answer(
        self,
        method: str,
        query: dict[str, str],
        body: Iterable[bytes] | None = None,
        headers: dict[str, str] | None = None,
        *,
        of_bucket: bool = False,
        good: frozenset[int] | set[int] = frozenset({200}),
    ) -> Answer:
        place = self._target.bucket if of_bucket else self._target.endpoint
        content = EMPTY if body is None else UNSIGNED
        signed = self._target.headers(method, content, query=query, of_bucket=of_bucket)
        endpoint = place.at(f"{place.path}?{query_of(query)}")
        answer = self._client.ask(method, endpoint, signed | (headers or {}), body)
        require(answer, endpoint, set(good))
        return answer
