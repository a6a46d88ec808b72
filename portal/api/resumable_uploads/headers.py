"""Headers of uploads that resume, as the IETF's "Resumable Uploads for HTTP" defines them.

They are structured fields (RFC 9651): offsets are integers, truths `?0` and `?1`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rest_framework.request import Request

from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.jobs.models import ResumableUpload

OFFSET, COMPLETE, LENGTH, LIMIT = (
    "Upload-Offset",
    "Upload-Complete",
    "Upload-Length",
    "Upload-Limit",
)
_INTEGER = re.compile("[0-9]{1,15}")
_TRUTHS = {"?0": False, "?1": True}


@dataclass(frozen=True, slots=True)
class SentPiece:
    """Headers of a piece: where it begins, its length, whether the sender says it is the last."""

    offset: int
    length: int
    is_last: bool | None

    def check_end(self, size_bytes: int) -> None:
        """Raise InvalidInput where the sender is wrong about what is the last piece."""
        end = self.offset + self.length
        if self.is_last and end < size_bytes:
            message = f"is ?1, but {size_bytes - end} bytes of {size_bytes} would be missing"
            raise InvalidInput.of(message, field=COMPLETE)


def read_piece_headers(request: Request) -> SentPiece:
    """Headers of a piece. Raises InvalidInput with every fault."""
    findings = []
    offset, complete = request.headers.get(OFFSET, ""), request.headers.get(COMPLETE)
    if not _INTEGER.fullmatch(offset):
        findings.append(Finding("must be a number: the byte at which it begins", field=OFFSET))
    if complete is not None and complete not in _TRUTHS:
        findings.append(Finding("must be ?0 or ?1", field=COMPLETE))
    length = request.META.get("CONTENT_LENGTH") or ""
    if not _INTEGER.fullmatch(length):
        message = "must tell the size of the piece: a body in chunks is not read"
        findings.append(Finding(message, field="Content-Length"))
    if findings:
        raise InvalidInput(findings)
    return SentPiece(int(offset), int(length), _TRUTHS[complete] if complete else None)


def limits() -> dict[str, str]:
    """The header that tells how large a piece may be, as any request."""
    return {LIMIT: f"max-append-size={conf().max_upload_bytes}"}


def headers_of(upload: ResumableUpload) -> dict[str, str]:
    """Headers that tell how far an upload is, and how large a piece may be."""
    return {
        OFFSET: str(upload.received_bytes),
        COMPLETE: "?0" if upload.blob_id is None else "?1",
        LENGTH: str(upload.size_bytes),
        **limits(),
        # Another moment, another offset.
        "Cache-Control": "no-store",
    }
