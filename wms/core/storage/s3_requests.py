"""Requests to one bucket of an S3 store: signed, over connections that are kept, tried again.

The bucket's name stands in the path. What is sent is in memory and signed with its hash, so that
the store refuses what was spoilt on the way.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

import structlog

from wms.core.conf import BucketConf
from wms.core.storage.protocol import NOTHING, Link, StoreFailed
from wms.core.storage.s3_signing import (
    Key,
    Request,
    query_of,
    quoted_key,
    signed_headers,
    signed_query,
)

log = structlog.get_logger(__name__)

#: So long nothing may come or go. Rows may be locked meanwhile.
_STALL_S: Final = 20.0
_TRIES: Final = 4
#: No try begins later than this: one that stalled is the last.
_PATIENCE_S: Final = 15.0
_FIRST_PAUSE_S: Final = 0.1
_AGAIN: Final = frozenset({429, 500, 502, 503, 504})
_IDLE_CONNECTIONS: Final = 16
#: More of an answer that tells a fault is not read.
_FAULT_BYTES: Final = 64 * 1024
_PORTS: Final = {"http": 80, "https": 443}

Answer = http.client.HTTPResponse


class Bucket:
    """A bucket and its prefix; used by any number of threads at once."""

    def __init__(self, conf: BucketConf) -> None:
        self._conf = conf
        self._key = Key(conf.key_id, conf.secret, conf.region)
        self._scheme, self._host, self._path = _place(conf.url, conf.bucket)
        self._idle: list[http.client.HTTPConnection] = []
        self._pid = os.getpid()
        self._lock = Lock()

    @property
    def name(self) -> str:
        """The bucket, its prefix and the server, for people."""
        return f"the bucket {self._conf.bucket}/{self.prefix} at {self._conf.url}"

    @property
    def serves_people(self) -> bool:
        """Whether people's browsers and programs reach it."""
        return self._conf.serves_people

    @property
    def prefix(self) -> str:
        """Beginning of all keys in the bucket."""
        return f"{self._conf.prefix}/" if self._conf.prefix else ""

    def copy_source(self, key: str) -> str:
        """Object as the source of a copy within the store."""
        return f"/{self._conf.bucket}/{quoted_key(self.prefix + key)}"

    def ask(
        self,
        method: str,
        key: str | None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        good: Collection[int] = (200, 204, 206),
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of an answer, the body read whole. Raises StoreFailed.

        Without a key it is about the bucket. A request that found no answer is sent again.
        """
        connection, answer = self._begun(method, key, query or {}, headers or {}, body)
        try:
            content = answer.read()
            told = {name.lower(): value for name, value in answer.getheaders()}
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _unreachable(error) from None
        self._put_back(connection, answer)
        if answer.status not in good:
            raise _refused(answer.status, content)
        return answer.status, told, content

    def close(self) -> None:
        """End the connections that are kept; more can be asked afterwards."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def begin(
        self, key: str, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPConnection, Answer]:
        """Answer to a GET whose body is still to be read; `end` takes the connection back."""
        return self._begun("GET", key, {}, headers, b"")

    def end(self, connection: http.client.HTTPConnection, answer: Answer) -> None:
        """Take back the connection of an answer; one that was not read whole is closed."""
        self._put_back(connection, answer)

    def link(
        self, method: str, key: str, headers: Mapping[str, str], query: Mapping[str, str] = NOTHING
    ) -> Link:
        """Address for one object and method, good for the time of the settings."""
        base = self._conf.links_url or self._conf.url
        scheme, host, path = _place(base, self._conf.bucket)
        path = f"{path}/{quoted_key(self.prefix + key)}"
        request = Request(method, host, path, query, headers)
        now = datetime.now(UTC)
        signed = signed_query(self._key, request, lifetime_s=self._conf.link_s, now=now)
        return Link(f"{scheme}://{host}{path}?{signed}", dict(headers))

    def _begun(
        self,
        method: str,
        key: str | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[http.client.HTTPConnection, Answer]:
        path = self._path if key is None else f"{self._path}/{quoted_key(self.prefix + key)}"
        address = f"{path}?{query_of(query)}" if query else path
        request = Request(method, self._host, path, query, headers)
        content_sha256 = hashlib.sha256(body).hexdigest()
        latest = time.monotonic() + _PATIENCE_S
        for number in range(_TRIES):
            signed = signed_headers(
                self._key, request, content_sha256=content_sha256, now=datetime.now(UTC)
            )
            connection = self._connection()
            try:
                connection.request(method, address, body or None, _sent(method, signed, body))
                answer = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # Those that are kept have most likely ended with it.
                self.close()
                if _is_last(number, latest):
                    raise _unreachable(error) from None
            else:
                if answer.status not in _AGAIN or _is_last(number, latest):
                    return connection, answer
                connection.close()
            time.sleep(_FIRST_PAUSE_S * 2**number)
        raise AssertionError("the last try returns or raises")

    def _connection(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._pid != os.getpid():
                # The parent's go on in the parent.
                self._idle, self._pid = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        if self._scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, timeout=_STALL_S, context=context)
        return http.client.HTTPConnection(self._host, timeout=_STALL_S)

    def _put_back(self, connection: http.client.HTTPConnection, answer: Answer) -> None:
        with self._lock:
            if answer.isclosed() and not answer.will_close and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()


def _is_last(number: int, latest: float) -> bool:
    return number == _TRIES - 1 or time.monotonic() > latest


def _place(url: str, bucket: str) -> tuple[str, str, str]:
    """Scheme, header Host and path of a bucket."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    if parts.port == _PORTS.get(parts.scheme):
        host = host.rpartition(":")[0]
    return parts.scheme, host, f"{parts.path.rstrip('/')}/{bucket}"


def _sent(method: str, signed: dict[str, str], body: bytes) -> dict[str, str]:
    sent = {"User-Agent": "Pilotage", "Accept-Encoding": "identity", **signed}
    if method in ("PUT", "POST"):
        sent["Content-Length"] = str(len(body))
    return sent


def _unreachable(error: Exception) -> StoreFailed:
    log.warning("store_unreachable", error=type(error).__name__)
    return StoreFailed("The store of contents does not answer: try again in a moment.")


def _refused(status: int, content: bytes) -> StoreFailed:
    """A refusal with the store's code for it; its words may repeat the address."""
    code = ""
    with suppress(StoreFailed):
        code = parsed(content[:_FAULT_BYTES]).findtext("{*}Code") or ""
        code = code or parsed(content[:_FAULT_BYTES]).findtext("Code") or ""
    log.warning("store_refused", status=status, code=code)
    return StoreFailed(f"The store of contents answered {status} {code}".rstrip() + ".")


def parsed(content: bytes) -> ElementTree.Element:
    """An answer in XML; namespaces are the store's: search with `{*}`. Raises StoreFailed."""
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError:
        raise StoreFailed("The store of contents gave an answer of another kind.") from None
