"""Reading a submission out of a multipart request, and answering it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from portal.api.serializers import DagDetailSerializer, FindingSerializer
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.dags.checking import MAX_TEXT_BYTES, read_text
from wms.dags.models import Dag
from wms.dags.submission import DagSubmission, submission_warnings

_PARTS = ("dag", "description", "file")


class SubmittedDagSerializer(DagDetailSerializer):
    """A DAG that was accepted, with what may not have been meant."""

    warnings = serializers.SerializerMethodField(
        help_text="What is accepted but may not be meant, such as a tag that no queue offers."
    )

    class Meta(DagDetailSerializer.Meta):
        fields = [*DagDetailSerializer.Meta.fields, "warnings"]

    @extend_schema_field(FindingSerializer(many=True))
    def get_warnings(self, dag: Dag) -> list[dict[str, Any]]:
        """Those that were told at the submission, also when it is repeated."""
        return [asdict(warning) for warning in submission_warnings(dag)]


def read_submission(request: Request) -> DagSubmission:
    """The parts `dag`, `description` and `file`. Raises InvalidInput with every fault."""
    dag, description = request.FILES.get("dag"), request.FILES.get("description")
    files = request.FILES.getlist("file")
    findings = _faults_of_parts(request)
    findings += _repeated_names([dag, description, *files])
    if dag is None:
        findings.append(Finding("the part `dag` with the DAG file is missing", field="dag"))
    texts = {}
    for part, upload, limit_bytes in (
        ("dag", dag, conf().max_dag_text_bytes),
        ("description", description, MAX_TEXT_BYTES),
    ):
        if upload is not None:
            texts[part], fault = read_text(upload, limit_bytes=limit_bytes)
            findings += [Finding(fault, file=upload.name, field=part)] if fault else []
    if findings or dag is None:
        raise InvalidInput(findings)
    return DagSubmission(
        dag_name=dag.name,
        dag_text=texts["dag"],
        files={upload.name: upload for upload in files},
        description_text=texts.get("description", ""),
        description_name=description.name if description is not None else "",
        idempotency_key=request.headers.get("Idempotency-Key") or None,
    )


def _faults_of_parts(request: Request) -> list[Finding]:
    """A part that nobody reads, or a second DAG file, is a mistake of the sender."""
    findings = [
        Finding(f"unknown part; known are {', '.join(_PARTS)}", field=name)
        for name in sorted({*request.FILES, *request.POST} - {*_PARTS, "csrfmiddlewaretoken"})
    ]
    findings += [
        Finding("must be sent as a file, with a file name", field=name)
        for name in _PARTS
        if name in request.POST
    ]
    findings += [
        Finding("may be given only once", field=name)
        for name in ("dag", "description")
        if len(request.FILES.getlist(name)) > 1
    ]
    return findings


def _repeated_names(uploads: list[UploadedFile | None]) -> list[Finding]:
    counts = Counter(upload.name for upload in uploads if upload is not None)
    return [
        Finding("two files have this name", file=name, field="file")
        for name, count in counts.items()
        if count > 1
    ]
