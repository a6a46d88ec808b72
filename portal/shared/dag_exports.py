"""Download response of an export of a DAG (DOT, node status, event log, ...), made while sent."""

from __future__ import annotations

import posixpath

from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header

from wms.dags.exports.catalogue import EXPORTS, export, export_name
from wms.dags.models import Dag


def send_export(dag: Dag, kind: str) -> StreamingHttpResponse:
    """Download of an export of a DAG. Raises NotFound for an unknown kind."""
    lines = export(dag, kind, now=timezone.now())
    response = StreamingHttpResponse(
        lines, content_type=f"{EXPORTS[kind].content_type}; charset=utf-8"
    )
    name = posixpath.basename(export_name(dag, kind))
    response["Content-Disposition"] = content_disposition_header(True, name)
    response["X-Content-Type-Options"] = "nosniff"
    return response
