"""Responses with files that users wrote: download, or picture; never a page of our origin."""

from __future__ import annotations

import posixpath
from typing import TypeVar

from django.http import FileResponse, HttpRequest, HttpResponseBase

from portal.shared.stored_downloads import send_stored
from wms.core.errors import NotFound
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import Blob

_Response = TypeVar("_Response", bound=HttpResponseBase)
#: Pictures that are shown in a page, inside an image element, and their types.
PICTURE_TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
MAX_PICTURE_BYTES = 8 * 1024 * 1024

# A picture that is opened by itself has an origin of its own, can run no script and load nothing.
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def is_picture(path: str, size_bytes: int) -> bool:
    """True for a file that a page may show."""
    return _ending(path) in PICTURE_TYPES and size_bytes <= MAX_PICTURE_BYTES


def send_download(request: HttpRequest, blob: Blob, path: str) -> HttpResponseBase:
    """The file as a download."""
    return _guarded(send_stored(request, blob, name=path))


def send_picture(blob: Blob, path: str) -> FileResponse:
    """The file for an image element. Raises NotFound for what is no picture.

    It comes from here, wherever it lies: pages take pictures from their own origin alone.
    """
    if not is_picture(path, blob.size_bytes):
        raise NotFound("There is no such picture.")
    return _guarded(FileResponse(open_blob(blob.sha256), content_type=PICTURE_TYPES[_ending(path)]))


def _ending(path: str) -> str:
    return posixpath.splitext(path)[1].lower()


def _guarded(response: _Response) -> _Response:
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = _SANDBOX
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, no-store"
    return response
