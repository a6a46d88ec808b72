"""Download response for a stored content (blob), as an attachment.

Also the default length of the end of a log (`TAIL_BYTES`).
"""

from __future__ import annotations

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request

from portal.shared.stored_downloads import send_stored
from wms.jobs.models import Blob

#: What is shown of a log unless all of it is asked for.
TAIL_BYTES = 64 * 1024
#: Answers of what is downloaded, for the schema.
CONTENT = {
    (200, "application/octet-stream"): OpenApiTypes.BINARY,
    302: OpenApiResponse(
        description="`Location` is where the store sends it from: ask there without the token."
    ),
}


def send_blob(request: Request, blob: Blob, *, name: str) -> HttpResponseBase:
    """Content of a file as an attachment, from here or from the store."""
    return send_stored(request._request, blob, name=name)


def send_content(request: Request, sha256: str, *, size_bytes: int, name: str) -> HttpResponseBase:
    """Download of a content whose row was not read."""
    return send_blob(request, Blob(sha256=sha256, size_bytes=size_bytes), name=name)
