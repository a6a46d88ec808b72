"""Stream of an object of a bucket, with a position; read on where a connection broke."""

from __future__ import annotations

import http.client
import io
import os
from typing import Any, Final

from wms.core.storage.folder import lost
from wms.core.storage.protocol import StoreFailed
from wms.core.storage.s3_requests import Answer, Bucket

_BUFFER_BYTES: Final = 256 * 1024
_TRIES: Final = 3


def opened(bucket: Bucket, key: str, *, tag: str = "") -> io.BufferedReader:
    """The object as a stream, only that of a `tag` if given. Raises ObjectLost."""
    return io.BufferedReader(_ObjectStream(bucket, key, tag), _BUFFER_BYTES)


class _ObjectStream(io.RawIOBase):
    def __init__(self, bucket: Bucket, key: str, tag: str) -> None:
        super().__init__()
        self._bucket, self._key = bucket, key
        self._at = self._body_at = 0
        self._body: tuple[http.client.HTTPConnection, Answer] | None = None
        self._tag = tag
        answer = self._begin()
        self._size_bytes = int(answer.getheader("Content-Length") or 0)
        self._tag = answer.getheader("ETag") or ""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size_bytes:
            return 0
        for _ in range(_TRIES):
            try:
                count = self._answer().readinto(buffer)
            except (OSError, http.client.HTTPException):
                count = 0
            if count:
                self._at += count
                self._body_at += count
                return count
            # It ended before its end.
            self._drop()
        raise StoreFailed("The store of contents breaks off: try again in a moment.")

    def close(self) -> None:
        if not self.closed:
            self._drop()
        super().close()

    def _answer(self) -> Answer:
        if self._body is None or self._body_at != self._at:
            self._drop()
            return self._begin()
        return self._body[1]

    def _begin(self) -> Answer:
        headers = {"Range": f"bytes={self._at}-"} if self._at else {}
        if self._tag:
            headers["If-Match"] = self._tag
        connection, answer = self._bucket.begin(self._key, headers)
        if answer.status not in (200, 206):
            connection.close()
            if answer.status in (404, 412):
                raise lost(self._key)
            raise StoreFailed(f"The store of contents answered {answer.status}.")
        self._body, self._body_at = (connection, answer), self._at
        return answer

    def _drop(self) -> None:
        if self._body is not None:
            self._bucket.end(*self._body)
            self._body = None
