"""Store in a bucket of an S3 store: nothing has to be on a disk that hosts share.

An object of up to some MiB is written by one request, a larger one by parts, and appears when it is
complete. What grows at its end is small objects, the last of which is written anew with each piece.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from wms.core.storage.folder import FolderStore, lost
from wms.core.storage.protocol import NOTHING, Growing, Link, Listed, ObjectLost, StoreFailed
from wms.core.storage.s3_multipart import Multipart, abort, begun_before, copied_tag
from wms.core.storage.s3_requests import Bucket, parsed
from wms.core.storage.s3_stream import opened

#: Folder of what is written by links, until it is looked at.
SENT: Final = "sent"
#: Keys of what is swept: a bucket without a prefix may have objects of others, too.
_SENT_KEY: Final = re.compile(rf"{SENT}/[0-9]+/[0-9a-f]{{64}}")
_WRITTEN_BY_PARTS: Final = re.compile(
    r"[0-9a-f]{2}/[0-9a-f]{64}|trials/[0-9a-f]{32}|uploads/[0-9a-f]{2}/[0-9]+\.joined-[0-9]+"
)
#: Larger objects are written in parts of this size, or larger ones: there are 10,000 at most.
PART_BYTES: Final = 16 * 1024 * 1024
_MOST_PARTS: Final = 10_000
#: Objects that are joined first where a file has more than parts can be.
_JOINED_FIRST: Final = 500
_DELETED_AT_ONCE: Final = 1000
_CHUNK_BYTES: Final = 1024 * 1024
#: Answers of servers that have the object, or that are just given it by somebody else.
_IS_THERE: Final = (409, 412)
#: Answers of servers that know no such condition.
_NO_CONDITION: Final = (400, 501)
#: Parts behind the end that a process may have written before it died.
_PARTS_BEYOND: Final = 5
#: Parts up to which they are named, not searched for.
_FEW_PARTS: Final = 64


class S3Store:
    """Objects of a bucket; `scratch` is a folder of this host for what is on its way or counted."""

    def __init__(self, bucket: Bucket, scratch: Path) -> None:
        self._bucket = bucket
        self._scratch = scratch

    def close(self) -> None:
        """End the connections that are kept; the store can be used afterwards."""
        self._bucket.close()

    @property
    def name(self) -> str:
        """Name of the store, for people."""
        return self._bucket.name

    @property
    def has_links(self) -> bool:
        """Yes: objects have addresses."""
        return True

    def size_of(self, key: str) -> int | None:
        """Size of an object; None where there is none."""
        status, told, _ = self._bucket.ask("HEAD", key, good=(200, 404))
        return int(told["content-length"]) if status == 200 else None

    def read(self, key: str, start: int, length: int) -> bytes:
        """Bytes of an object from `start` on; fewer at its end. Raises ObjectLost."""
        if length <= 0:
            return b""
        headers = {"Range": f"bytes={start}-{start + length - 1}"}
        status, _, content = self._bucket.ask(
            "GET", key, headers=headers, good=(200, 206, 404, 416)
        )
        if status == 404:
            raise lost(key)
        # An empty object has no range; and some stores send it whole.
        return {416: b"", 200: content[start : start + length]}.get(status, content)

    def open(self, key: str) -> BinaryIO:
        """An object as a stream with a position. Raises ObjectLost."""
        return opened(self._bucket, key)

    def put(self, key: str, path: Path) -> None:
        """Take a file of the scratch folder over as an object; one of its size there is it."""
        size_bytes = path.stat().st_size
        # Keys of contents are hashes: what has the key is the same.
        if self.size_of(key) != size_bytes:
            self._write(key, path, size_bytes)
        path.unlink()

    def _write(self, key: str, path: Path, size_bytes: int) -> None:
        with path.open("rb") as file:
            if size_bytes <= PART_BYTES:
                self._bucket.ask("PUT", key, body=file.read())
                return
            part_bytes = max(PART_BYTES, -(-size_bytes // _MOST_PARTS))
            with Multipart(self._bucket, key) as parts:
                while piece := file.read(part_bytes):
                    parts.add(piece)

    def put_new(self, key: str, content: bytes) -> bool:
        """Write a small object if there is none, by a condition where the server knows it."""
        condition = {"If-None-Match": "*"}
        status, _, _ = self._bucket.ask(
            "PUT", key, headers=condition, body=content, good=(200, *_IS_THERE, *_NO_CONDITION)
        )
        if status in _NO_CONDITION and self.size_of(key) is None:
            status, _, _ = self._bucket.ask("PUT", key, body=content)
        return status == 200

    def delete(self, keys: Collection[str]) -> None:
        """Delete objects, with what was counted of them on this host."""
        listed = list(keys)
        for begin in range(0, len(listed), _DELETED_AT_ONCE):
            self._delete(listed[begin : begin + _DELETED_AT_ONCE])
        for key in listed:
            (self._scratch / "lines" / key).unlink(missing_ok=True)

    def _delete(self, keys: Sequence[str]) -> None:
        if len(keys) == 1:
            self._bucket.ask("DELETE", keys[0], good=(200, 204, 404))
            return
        names = "".join(
            f"<Object><Key>{escape(self._bucket.prefix + key)}</Key></Object>" for key in keys
        )
        body = f"<Delete><Quiet>true</Quiet>{names}</Delete>".encode()
        md5 = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        _, _, content = self._bucket.ask(
            "POST", None, query={"delete": ""}, headers={"Content-MD5": md5}, body=body
        )
        fault = parsed(content).find(".//{*}Error") if content.strip() else None
        if fault is not None:
            code = fault.findtext("{*}Code")
            raise StoreFailed(f"The store of contents keeps what is to be deleted: {code}.")

    def listed(self, folder: str) -> Iterator[Listed]:
        """Objects whose keys begin with `folder` and a slash."""
        return self._listed(f"{folder}/")

    def folders(self) -> Collection[str]:
        """Beginnings of keys, before their first slash."""
        prefix = self._bucket.prefix
        return {
            (entry.findtext("{*}Prefix") or "").removeprefix(prefix).rstrip("/")
            for page in self._pages({"prefix": prefix, "delimiter": "/"})
            for entry in page.iterfind("{*}CommonPrefixes")
        }

    def _pages(self, query: Mapping[str, str]) -> Iterator[ElementTree.Element]:
        more: dict[str, str] = {}
        while True:
            asked = {"list-type": "2", **query, **more}
            page = parsed(self._bucket.ask("GET", None, query=asked)[2])
            yield page
            token = page.findtext("{*}NextContinuationToken")
            if not token:
                return
            more = {"continuation-token": token}

    def _listed(self, start: str) -> Iterator[Listed]:
        prefix = self._bucket.prefix
        for page in self._pages({"prefix": prefix + start}):
            for entry in page.iterfind("{*}Contents"):
                yield Listed(
                    (entry.findtext("{*}Key") or "").removeprefix(prefix),
                    int(entry.findtext("{*}Size") or 0),
                    datetime.fromisoformat(entry.findtext("{*}LastModified") or ""),
                )

    def append(self, file: Growing, content: bytes, *, at: int, is_durable: bool = False) -> None:
        """Write a piece at a byte: the object that has it is written anew, with what was before."""
        done = 0
        while done < len(content):
            number, offset = divmod(at + done, file.object_bytes)
            end = done + file.object_bytes - offset
            key = _part(file, number)
            before = b""
            if offset:
                with suppress(ObjectLost):
                    before = self.read(key, 0, offset)
            self._bucket.ask("PUT", key, body=before.ljust(offset, b"\0") + content[done:end])
            done = end

    def read_grown(self, file: Growing, start: int, length: int) -> bytes:
        """Bytes of a growing file; fewer at its end. Raises ObjectLost where they are gone."""
        pieces = []
        while length > 0:
            number, offset = divmod(start, file.object_bytes)
            wanted = min(length, file.object_bytes - offset)
            pieces.append(self.read(_part(file, number), offset, wanted))
            if len(pieces[-1]) < wanted:
                break
            start, length = start + wanted, length - wanted
        return b"".join(pieces)

    def keep_grown(self, file: Growing, key: str, *, size_bytes: int) -> bool:
        """Join the objects of a growing file within the store; False where one is another size."""
        if self.size_of(key) == size_bytes:
            return True
        full, rest = divmod(size_bytes, file.object_bytes)
        wanted = {_part(file, number): file.object_bytes for number in range(full)}
        if rest:
            wanted[_part(file, full)] = rest
        found = {each.key: each.size_bytes for each in self._listed(f"{file.key}.")}
        if any(found.get(name) != size for name, size in wanted.items()):
            return False
        self._join(list(wanted), key, f"{file.key}.")
        return True

    def _join(self, sources: Sequence[str], key: str, beside: str) -> None:
        """Join objects; where they are too many in two steps, the first beside their file."""
        if len(sources) > _MOST_PARTS:
            joined = []
            for begin in range(0, len(sources), _JOINED_FIRST):
                joined.append(f"{beside}joined-{begin}")
                self._join(sources[begin : begin + _JOINED_FIRST], joined[-1], beside)
            sources = joined
        with Multipart(self._bucket, key) as parts:
            for source in sources:
                parts.copy(source)

    def remove_within(self, file: Growing, start: int, end: int) -> None:
        """Remove the objects of a growing file that lie whole between two bytes."""
        numbers = range(-(-start // file.object_bytes), end // file.object_bytes)
        wanted = {_part(file, number) for number in numbers}
        self.delete([each.key for each in self._listed(f"{file.key}.") if each.key in wanted])

    def remove_grown(self, files: Iterable[tuple[Growing, int]]) -> None:
        """Remove growing files, given with their sizes."""
        keys: list[str] = []
        for file, size_bytes in files:
            count = -(-size_bytes // file.object_bytes) + _PARTS_BEYOND
            if count <= _FEW_PARTS:
                keys += [_part(file, number) for number in range(count)]
            else:
                keys += [each.key for each in self._listed(f"{file.key}.")]
            self.counts_path(file.key).unlink(missing_ok=True)
        self.delete(keys)

    def counts_path(self, key: str) -> Path:
        """File on this host: each counts for itself."""
        path = self._scratch / "lines" / key
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def sweep(self, *, now: datetime) -> int:
        """Give up own writes that broke off a day ago; also what lies on this host from then."""
        before = now - timedelta(days=1)
        given_up = 0
        for key, upload_id in list(begun_before(self._bucket, before)):
            if _WRITTEN_BY_PARTS.fullmatch(key):
                abort(self._bucket, key, upload_id)
                given_up += 1
        old = (each.key for each in self.listed(SENT) if each.modified_at < before)
        sent = [key for key in old if _SENT_KEY.fullmatch(key)]
        self.delete(sent)
        _forget_counts(self._scratch / "lines", now - timedelta(days=30))
        return given_up + len(sent) + FolderStore(self._scratch).sweep(now=now)

    @property
    def serves_people(self) -> bool:
        """As the settings say."""
        return self._bucket.serves_people

    def read_link(self, key: str, *, answer: Mapping[str, str] = NOTHING) -> Link:
        """Link by which an object is read."""
        query = {f"response-{name.lower()}": value for name, value in answer.items()}
        return self._bucket.link("GET", key, {}, query)

    def write_link(self, key: str, *, sha256: str, size_bytes: int) -> Link:
        """Link by which an object is written: size and SHA-256 are signed, and the store looks."""
        headers = {"Content-Length": str(size_bytes), "x-amz-checksum-sha256": _base64(sha256)}
        return self._bucket.link("PUT", key, headers)

    def seen(self, key: str, *, sha256: str, size_bytes: int) -> str:
        """Mark of an object that was written by a link and has this size and SHA-256; else empty.

        A store that keeps checksums tells it; of another it is read.
        """
        headers = {"x-amz-checksum-mode": "ENABLED"}
        status, told, _ = self._bucket.ask("HEAD", key, headers=headers, good=(200, 404))
        if status == 404 or int(told["content-length"]) != size_bytes:
            return ""
        return told["etag"] if self._has(key, told, sha256) else ""

    def move(self, source: str, key: str, *, mark: str, size_bytes: int) -> bool:
        """Make what was seen another object, within the store; it is gone there.

        Its link may still be good: it is what was seen, or nothing.
        """
        status = 200
        if self.size_of(key) != size_bytes:
            headers = {
                "x-amz-copy-source": self._bucket.copy_source(source),
                "x-amz-copy-source-if-match": mark,
            }
            status, _, content = self._bucket.ask("PUT", key, headers=headers, good=(200, 404, 412))
            if status == 200:
                copied_tag(content)
        self.delete([source])
        return status == 200

    def _has(self, key: str, told: Mapping[str, str], sha256: str) -> bool:
        if "x-amz-checksum-sha256" in told:
            return told["x-amz-checksum-sha256"] == _base64(sha256)
        digest = hashlib.sha256()
        # The one that was told of: its link may be used again meanwhile.
        with suppress(ObjectLost), opened(self._bucket, key, tag=told["etag"]) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
        return digest.hexdigest() == sha256


def _forget_counts(folder: Path, limit: datetime) -> None:
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mtime < limit.timestamp():
                path.unlink()


def _part(file: Growing, number: int) -> str:
    return f"{file.key}.{number:08d}"


def _base64(sha256: str) -> str:
    return base64.b64encode(bytes.fromhex(sha256)).decode()
