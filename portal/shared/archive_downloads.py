"""Download responses of archives: of a DAG, made while it is sent, and of a part of a kept one.

Each holds one of the user's few slots for downloads while it is sent; without one it is refused.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from portal.config.version import product_version
from portal.middleware.download_slots import sent_from_a_slot
from wms.archives.models import ArchivedDag
from wms.archives.reading import member_pieces, member_size
from wms.archives.writing import stream_archive
from wms.core.models import User
from wms.dags.models import Dag


def send_archive_of_dag(user: User, dag: Dag) -> StreamingHttpResponse:
    """The archive of a DAG that has ended. Raises Conflict and Busy."""
    return _send(
        user,
        lambda: stream_archive(dag, product_version=product_version()),
        name=f"dag-{dag.pk}.zip",
        content_type="application/zip",
    )


def send_member(user: User, archived: ArchivedDag, name: str) -> StreamingHttpResponse:
    """A member of a kept archive, unpacked. Raises NotFound and Busy."""
    member_size(archived, name)
    return _send(
        user,
        lambda: member_pieces(archived, name),
        name=f"archive-{archived.pk}-{posixpath.basename(name)}",
        content_type="application/octet-stream",
    )


def archive_name(archived: ArchivedDag) -> str:
    """Name under which the file of a kept archive is saved."""
    return f"dag-{archived.dag_id}.zip"


def _send(
    user: User, content: Callable[[], Iterator[bytes]], *, name: str, content_type: str
) -> StreamingHttpResponse:
    def make() -> StreamingHttpResponse:
        answer = StreamingHttpResponse(content(), content_type=content_type)
        answer["Content-Disposition"] = content_disposition_header(True, name)
        answer["X-Content-Type-Options"] = "nosniff"
        return answer

    return sent_from_a_slot(user, make)
