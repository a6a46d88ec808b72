"""Files of `s3:` addresses, `s3://bucket/key`: objects of the S3 store that the settings name.

Requests are signed by AWS Signature Version 4 with the credential that the owner has stored for
`s3://bucket`, where the user is the access key's id; without one they are not signed. Objects
appear when they are complete; large ones are written by parts (`s3_parts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote, urlsplit

from wms.core.storage.s3_signing import (
    EMPTY,
    UNSIGNED,
    Key,
    Request,
    quoted_key,
    signed_headers,
)
from wms.placement.modules.connections import Endpoint, endpoint_of
from wms.placement.modules.protocol import (
    FAILED,
    Credential,
    ModuleFailed,
    TransferResult,
    TransferTask,
)
from wms.placement.modules.s3_parts import LARGE_BYTES, write_parts
from wms.placement.modules.streaming import Reading, Source
from wms.placement.modules.web import (
    ANSWER_BYTES,
    AnswerPieces,
    Client,
    begin_of,
    require,
    size_of,
    source_of,
)

#: The port of `s3:` addresses where credentials are asked for: they name none.
PORT: Final = 443
STORE_PORTS: Final = {"http": 80, "https": 443}


class _Object:
    """An object of the store: where it is, and how requests for it are signed."""

    def __init__(self, task: TransferTask, url: str, *, name: str = "") -> None:
        parts = urlsplit(url)
        bucket, key = (parts.hostname or "").lower(), unquote(parts.path).lstrip("/")
        if not task.conf.s3_url:
            raise ModuleFailed(FAILED, "no S3 store is set (PILOTAGE_PLACEMENT_S3_URL)")
        if key.endswith("/") or not key:
            key += name
        if not key:
            raise ModuleFailed(FAILED, f"{url} names no object")
        self.name = key.rsplit("/", 1)[-1]
        self._key = key_of(task.credential("s3", bucket, PORT), task.conf.s3_region)
        store = endpoint_of(task.conf.s3_url, STORE_PORTS)
        path = store.path.rstrip("/") + f"/{bucket}"
        self.bucket, self.key = store.at(path), key
        self.endpoint = store.at(f"{path}/{quoted_key(key)}")

    def headers(
        self,
        method: str,
        content_sha256: str = EMPTY,
        *,
        query: dict[str, str] | None = None,
        of_bucket: bool = False,
    ) -> dict[str, str]:
        """The headers that sign a request; only its hash where there is no credential."""
        place = self.bucket if of_bucket else self.endpoint
        request = Request(method, host_header(place), place.path, query or {})
        return signed_headers(
            self._key, request, content_sha256=content_sha256, now=datetime.now(UTC)
        )


def host_header(endpoint: Endpoint) -> str:
    """The header Host, as `http.client` sends it."""
    is_usual = endpoint.port == STORE_PORTS[endpoint.scheme]
    return endpoint.authority.rpartition(":")[0] if is_usual else endpoint.authority


def key_of(credential: Credential | None, region: str) -> Key | None:
    """Key of the store that the owner has stored."""
    return None if credential is None else Key(credential.user, credential.secret, region)


@contextmanager
def opened(task: TransferTask) -> Iterator[Source]:
    """The object at the source address. Raises ModuleFailed."""
    found, client = _Object(task, task.source_url), Client(task, signs_itself=True)
    try:
        answer = client.ask("GET", found.endpoint, found.headers("GET"))
        require(answer, found.endpoint, {200})

        def again(headers: dict[str, str]) -> tuple[int, int | None, AnswerPieces]:
            behind = client.ask("GET", found.endpoint, found.headers("GET") | headers)
            require(behind, found.endpoint, {200, 206})
            return behind.status, begin_of(behind), AnswerPieces(behind)

        yield source_of(answer, found.name, again)
    finally:
        client.close()


def write(reading: Reading) -> TransferResult:
    """Put the object at the destination address. Raises ModuleFailed."""
    task = reading.task
    target = _Object(task, task.destination_url, name=reading.source.name)
    size = reading.source.size_bytes
    client = Client(task, signs_itself=True)
    try:
        if size is None or size >= LARGE_BYTES:
            write_parts(reading, target, client)
        else:
            headers = target.headers("PUT", UNSIGNED) | {"Content-Length": str(size)}
            answer = client.ask("PUT", target.endpoint, headers, reading.body())
            answer.read(ANSWER_BYTES)
            require(answer, target.endpoint, {200})
        answer = client.ask("HEAD", target.endpoint, target.headers("HEAD"))
        require(answer, target.endpoint, {200})
        if size_of(answer) != reading.size_bytes:
            told = f"the store has {size_of(answer)} bytes of {reading.size_bytes}"
            raise ModuleFailed(FAILED, told)
    finally:
        client.close()
    return TransferResult(reading.size_bytes)


def remove(task: TransferTask) -> TransferResult:
    """Remove the object at the source address; one that is gone is no fault."""
    target, client = _Object(task, task.source_url), Client(task, signs_itself=True)
    try:
        answer = client.ask("DELETE", target.endpoint, target.headers("DELETE"))
        answer.read(ANSWER_BYTES)
        require(answer, target.endpoint, {200, 204, 404})
    finally:
        client.close()
    return TransferResult(None)
