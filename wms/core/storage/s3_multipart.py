"""Objects of a bucket that are written by parts, and appear when all of it is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from xml.sax.saxutils import escape

from wms.core.storage.protocol import StoreFailed
from wms.core.storage.s3_requests import Bucket, parsed


class Multipart:
    """An object that is written by parts, and appears when all of it is there."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket, self._key = bucket, key
        self._tags: list[str] = []

    def __enter__(self) -> Multipart:
        _, _, content = self._bucket.ask("POST", self._key, query={"uploads": ""})
        self._upload_id = parsed(content).findtext("{*}UploadId") or ""
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            with suppress(StoreFailed):
                abort(self._bucket, self._key, self._upload_id)
            return
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
            for number, tag in enumerate(self._tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        _, _, content = self._bucket.ask(
            "POST", self._key, query={"uploadId": self._upload_id}, body=body
        )
        answer = parsed(content)
        # A store may begin its answer with 200 before it knows the end.
        if answer.tag.endswith("Error"):
            raise StoreFailed(f"The store of contents joined no parts: {answer.findtext('Code')}.")

    def add(self, content: bytes) -> None:
        """Write the next part."""
        _, told, _ = self._bucket.ask("PUT", self._key, query=self._next(), body=content)
        self._tags.append(told["etag"])

    def copy(self, source: str) -> None:
        """Make an object the next part, within the store."""
        headers = {"x-amz-copy-source": self._bucket.copy_source(source)}
        _, _, content = self._bucket.ask("PUT", self._key, query=self._next(), headers=headers)
        self._tags.append(copied_tag(content))

    def _next(self) -> dict[str, str]:
        return {"partNumber": str(len(self._tags) + 1), "uploadId": self._upload_id}


def copied_tag(content: bytes) -> str:
    """ETag of what a store tells to have copied. Raises StoreFailed.

    It may begin its answer with 200 before it knows the end.
    """
    tag = parsed(content).findtext("{*}ETag")
    if not tag:
        raise StoreFailed("The store of contents copied nothing.")
    return tag


def abort(bucket: Bucket, key: str, upload_id: str) -> None:
    """Give up a write by parts; one that is gone is passed over."""
    bucket.ask("DELETE", key, query={"uploadId": upload_id}, good=(200, 204, 404))


def begun_before(bucket: Bucket, limit: datetime) -> Iterator[tuple[str, str]]:
    """Writes by parts that began before: key and id."""
    marks: dict[str, str] = {}
    while True:
        query = {"uploads": "", "prefix": bucket.prefix, **marks}
        page = parsed(bucket.ask("GET", None, query=query)[2])
        for entry in page.iterfind("{*}Upload"):
            began_at = datetime.fromisoformat(entry.findtext("{*}Initiated") or "")
            key = (entry.findtext("{*}Key") or "").removeprefix(bucket.prefix)
            if began_at < limit:
                yield key, entry.findtext("{*}UploadId") or ""
        if page.findtext("{*}IsTruncated") != "true":
            return
        marks = {
            "key-marker": page.findtext("{*}NextKeyMarker") or "",
            "upload-id-marker": page.findtext("{*}NextUploadIdMarker") or "",
        }
