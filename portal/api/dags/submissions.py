"""DAG submission read from a multipart request of the API, with the faults of its parts.

Also the serializer of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from portal.api.base import caller
from portal.api.dags.shapes import DagDetailSerializer
from portal.api.idempotency import sent_key
from portal.api.shapes import FindingSerializer
from portal.middleware.uploads import uploads
from portal.shared.dag_submissions import SubmissionParts, read_options, submission_of
from portal.shared.named_uploads import PART, files_by_uploads
from wms.core.errors import Finding, InvalidInput
from wms.core.labels import labels_in
from wms.dags.language.origin import Origin, read_origin
from wms.dags.models import Dag
from wms.dags.rescue.rescue_files import read_resumption
from wms.dags.submission.submit import DagSubmission, submission_warnings

_FILES = ("dag", "description", "file", "archive")
ORIGIN_FIELDS = ("directory", "root", "use_dag_dir")
_TEXTS = (
    "dag", "options", "resume", "save_point", "binding", "labels", "priority", PART,
    *ORIGIN_FIELDS,
)  # fmt: skip
_OFTEN = ("dag", "file")
_TRUTH = {"": False, "false": False, "true": True}


class SubmittedDagSerializer(DagDetailSerializer):
    """A DAG that was accepted, with what may not have been meant."""

    warnings = serializers.SerializerMethodField(
        help_text="What is accepted but may not be meant, such as a tag that no queue offers."
    )

    class Meta(DagDetailSerializer.Meta):
        fields = [*DagDetailSerializer.Meta.fields, "warnings"]

    @extend_schema_field(FindingSerializer(many=True))
    def get_warnings(self, dag: Dag) -> list[dict[str, Any]]:
        """Warnings of the submission, also when it is repeated."""
        return [asdict(warning) for warning in submission_warnings(dag)]


def read_submission(request: Request, *, further: Sequence[str] = ()) -> DagSubmission:
    """Submission of the request's parts. Raises InvalidInput with every fault of parts or files.

    Texts of the names `further` may stand beside.
    """
    check_parts(request, files=_FILES, texts=(*_TEXTS, *further))
    sent = request._request
    return submission_of(
        SubmissionParts(
            dags=uploads(sent, "dag"),
            named_dags=request.POST.getlist("dag"),
            description=next(iter(uploads(sent, "description")), None),
            files=[
                *uploads(sent, "file"),
                *files_by_uploads(request.POST.get(PART, ""), caller(request)),
            ],
            archives=uploads(sent, "archive"),
            origin=sent_origin(request),
            options=read_options(request.POST.get("options", "")),
            resumption=read_resumption(
                request.POST.get("resume", ""), request.POST.get("save_point", "")
            ),
            binding=request.POST.get("binding", ""),
            labels=labels_in(request.POST.get("labels", "")),
            priority=request.POST.get("priority", ""),
            key=sent_key(request),
        )
    )


def sent_origin(request: Request) -> Origin:
    """From where names are looked up, by the texts of the request. Raises InvalidInput."""
    return read_origin(
        request.POST.get("directory", ""),
        request.POST.get("root", ""),
        uses_dag_dir=sent_truth(request, "use_dag_dir"),
    )


def sent_truth(request: Request, name: str) -> bool:
    """A text of the request as a truth value, false if it is not there. Raises InvalidInput."""
    value = request.POST.get(name, "").lower()
    if value not in _TRUTH:
        raise InvalidInput.of("must be true or false", field=name)
    return _TRUTH[value]


def check_parts(request: Request, *, files: Sequence[str], texts: Sequence[str]) -> None:
    """Raise InvalidInput for a part that nobody reads, or that is given more often than it may be.

    They are mistakes of the sender. Files and texts are read by these names.
    """
    findings = _faults_of_parts(request, files, texts)
    if findings:
        raise InvalidInput(findings)


def _faults_of_parts(request: Request, files: Sequence[str], texts: Sequence[str]) -> list[Finding]:
    known = {*files, *texts}
    findings = [
        Finding(f"unknown part; known are {', '.join(sorted(known))}", field=name)
        for name in sorted({*request.FILES, *request.POST} - known - {"csrfmiddlewaretoken"})
    ]
    findings += [
        Finding("must be sent as a file, with a file name", field=name)
        for name in files
        if name in request.POST and name not in texts
    ]
    findings += [
        Finding("must be sent as a text, without a file name", field=name)
        for name in texts
        if name in request.FILES and name not in files
    ]
    findings += [
        Finding("may be given only once", field=name)
        for name in sorted(known.difference(_OFTEN))
        if len(request.FILES.getlist(name)) + len(request.POST.getlist(name)) > 1
    ]
    if request.POST.get("use_dag_dir", "").lower() not in _TRUTH:
        findings.append(Finding("must be true or false", field="use_dag_dir"))
    return findings
