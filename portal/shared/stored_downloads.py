"""Download response of a stored content: a link to the store, or the content itself.

The caller has looked whether the user may read it. A browser never displays it: users wrote it.
"""

from __future__ import annotations

import posixpath

from django.http import FileResponse, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.http import content_disposition_header

from portal.shared.ranged_downloads import asked_range, send_in_pieces
from wms.jobs.content.blobs import blob_content, open_blob
from wms.jobs.content.links import link_to_download
from wms.jobs.models import Blob
from wms.jobs.output.texts import StoredText

_TYPE = "application/octet-stream"
_NOT_KEPT = "private, no-store"


def send_stored(request: HttpRequest, blob: Blob, *, name: str) -> HttpResponseBase:
    """The content as an attachment of this name, or the range of it that is asked for.

    A large one of a store that people reach is sent by that: the answer leads there. Raises
    NotFound.
    """
    answer = _to_the_store(request, blob, posixpath.basename(name))
    if answer is None:
        answer = _from_here(request, blob, posixpath.basename(name))
    answer["X-Content-SHA256"] = blob.sha256
    answer["Cache-Control"] = _NOT_KEPT
    return answer


def _to_the_store(request: HttpRequest, blob: Blob, name: str) -> HttpResponseBase | None:
    # A link is good for GET alone.
    if request.method != "GET":
        return None
    headers = {
        "Content-Disposition": content_disposition_header(True, name) or "attachment",
        "Content-Type": _TYPE,
        "Cache-Control": _NOT_KEPT,
    }
    link = link_to_download(blob, answer=headers)
    # From a page that came by TLS a browser follows to nothing else.
    if link is None or (request.is_secure() and not link.url.startswith("https:")):
        return None
    answer = HttpResponseRedirect(link.url)
    answer["Referrer-Policy"] = "no-referrer"
    return answer


def _from_here(request: HttpRequest, blob: Blob, name: str) -> HttpResponseBase:
    if asked_range(request):
        # What the store has lost is told, where an answer that has begun could not.
        open_blob(blob.sha256).close()
        text = StoredText(blob_content(blob.sha256), blob.size_bytes)
        return send_in_pieces(request, text, name=name)
    stream = open_blob(blob.sha256)
    answer = FileResponse(stream, as_attachment=True, filename=name, content_type=_TYPE)
    answer["Accept-Ranges"] = "bytes"
    return answer
