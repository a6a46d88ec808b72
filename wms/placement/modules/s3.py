"""Files of `s3:` addresses, `s3://bucket/key`: objects of the S3 store that the settings name.

Requests are signed by AWS Signature Version 4 with the credential that the owner has stored for
`s3://bucket`, where the user is the access key's id; without one they are not signed. Objects are
written in one piece, of 5 GiB at most, and appear when they are complete.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from wms.placement.modules.connections import Endpoint, endpoint_of
from wms.placement.modules.protocol import (
    FAILED,
    Credential,
    ModuleFailed,
    TransferResult,
    TransferTask,
)
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
#: What stands for the hash of a content that is signed by TLS alone.
UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_EMPTY: Final = hashlib.sha256(b"").hexdigest()


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
        self._credential = task.credential("s3", bucket, PORT)
        self._region = task.conf.s3_region
        store = endpoint_of(task.conf.s3_url, STORE_PORTS)
        path = store.path.rstrip("/") + f"/{bucket}/{quote(key, safe='/~')}"
        self.endpoint = store.at(path)

    def headers(self, method: str, content_sha256: str = _EMPTY) -> dict[str, str]:
        """The headers that sign a request; only its hash where there is no credential."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        signed = {
            "host": host_header(self.endpoint),
            "x-amz-content-sha256": content_sha256,
            "x-amz-date": stamp,
        }
        headers = {name: value for name, value in signed.items() if name != "host"}
        if self._credential is None:
            return headers
        scope = f"{stamp[:8]}/{self._region}/s3/aws4_request"
        canonical = "\n".join(
            [
                method,
                self.endpoint.path,
                "",
                *(f"{name}:{value}" for name, value in signed.items()),
                "",
                ";".join(signed),
                content_sha256,
            ]
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
        signature = signature_of(self._credential, stamp[:8], self._region, text)
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._credential.user}/{scope}, "
            f"SignedHeaders={';'.join(signed)}, Signature={signature}"
        )
        return headers


def host_header(endpoint: Endpoint) -> str:
    """The header Host, as `http.client` sends it."""
    is_usual = endpoint.port == STORE_PORTS[endpoint.scheme]
    return endpoint.authority.rpartition(":")[0] if is_usual else endpoint.authority


def signature_of(credential: Credential, day: str, region: str, text: str) -> str:
    """Signature of a text that is made of a request; good on that day, in UTC."""
    key = f"AWS4{credential.secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


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
    if size is None:
        raise ModuleFailed(FAILED, "S3 has to know the size of a file before it comes")
    client = Client(task, signs_itself=True)
    try:
        headers = target.headers("PUT", UNSIGNED) | {"Content-Length": str(size)}
        answer = client.ask("PUT", target.endpoint, headers, reading)
        answer.read(ANSWER_BYTES)
        require(answer, target.endpoint, {200})
        answer = client.ask("HEAD", target.endpoint, target.headers("HEAD"))
        require(answer, target.endpoint, {200})
        if size_of(answer) != reading.size_bytes:
            raise ModuleFailed(FAILED, f"the store has {size_of(answer)} bytes of {size}")
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
