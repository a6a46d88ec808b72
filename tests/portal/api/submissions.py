"""Bodies of DAG submissions for API tests, and checks of the answer: findings, nothing stored."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.response import Response

from tests import factories
from wms.dags.models import Dag
from wms.jobs.models import Blob, Workspace

URL = "/api/v1/dags/"
FILES = {"job.sub": factories.SUBMIT_FILE.encode(), "run.sh": b"#!/bin/sh\n"}


def dag_form(
    dag: str | None = None, files: dict[str, bytes] | None = None, **more: Any
) -> dict[str, Any]:
    text = factories.dag_text(2) if dag is None else dag
    return {
        "dag": SimpleUploadedFile("analysis.dag", text.encode()),
        "file": [
            SimpleUploadedFile(name, content)
            for name, content in (FILES if files is None else files).items()
        ],
        **more,
    }


def named_part(raw_name: str, part: str = "file") -> tuple[bytes, str]:
    """A multipart body with one file under a name as the sender wrote it."""
    lines = [
        "--frontier",
        'Content-Disposition: form-data; name="dag"; filename="analysis.dag"',
        "",
        factories.dag_text(1),
        "--frontier",
        f'Content-Disposition: form-data; name="{part}"; filename="{raw_name}"',
        "",
        "content",
        "--frontier--",
        "",
    ]
    return "\r\n".join(lines).encode(), "multipart/form-data; boundary=frontier"


def is_nothing_stored() -> bool:
    return not (Dag.objects.exists() or Workspace.objects.exists() or Blob.objects.exists())


def findings_in(answer: Response) -> list[dict[str, Any]]:
    assert answer.status_code == 400, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    return answer.json()["findings"]
