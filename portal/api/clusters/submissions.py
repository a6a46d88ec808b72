"""Submission of jobs read from a request of the API: JSON, submit language, or a multipart form.

Also the parsers of such bodies (`PARSERS`), which bound their size.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.request import Request

from portal.api.base import caller
from portal.api.idempotency import sent_key
from portal.api.parsing import StorableJson
from portal.api.uploads import FormUpload, TextBody
from portal.middleware.uploads import uploads
from portal.shared.job_submissions import (
    DEFAULT_NAME,
    MAX_JSON_BYTES,
    description_of,
    files_of,
    json_object,
    read_description,
)
from portal.shared.named_uploads import PART, files_by_uploads
from wms.core.errors import Finding, InvalidInput, TooLarge
from wms.jobs.clusters.checking import MAX_TEXT_BYTES
from wms.jobs.clusters.submit import ClusterSubmission

_PARTS = ("description", "file", "options", PART)
_TEXTS = ("options", PART)


class JsonDescription(StorableJson):
    """Parser of a description in JSON, of a bounded size."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what was sent. Raises TooLarge and InvalidInput."""
        content = stream.read(MAX_JSON_BYTES + 1)
        if len(content) > MAX_JSON_BYTES:
            raise TooLarge(
                f"The description is larger than {MAX_JSON_BYTES} bytes: send its table as a file."
            )
        return super().parse(io.BytesIO(content), media_type, parser_context)


class SubmitText(TextBody):
    """Parser of a description in submit language."""

    media_type = "text/plain"
    name = "description"
    most_bytes = MAX_TEXT_BYTES
    location: Mapping[str, Any] = {"file": DEFAULT_NAME}


#: What a submission may be sent as.
PARSERS = (JsonDescription, FormUpload, SubmitText)


def read_submission(request: Request) -> ClusterSubmission:
    """Submission of the request's body. Raises InvalidInput with every fault of its parts."""
    key = sent_key(request)
    data = request.data
    if (request.content_type or "").startswith("multipart/"):
        return _of_form(request, key)
    if not isinstance(data, str | dict):
        raise InvalidInput.of("the description must be a JSON object")
    return ClusterSubmission(data, description_name=DEFAULT_NAME, idempotency_key=key)


def _of_form(request: Request, key: str | None) -> ClusterSubmission:
    sent = request._request
    if findings := _faults_of_parts(request):
        raise InvalidInput(findings)
    [*given] = uploads(sent, "description")
    name = (given[0].name if given else "") or DEFAULT_NAME
    content = read_description(given[0].content) if given else request.POST["description"].encode()
    options = request.POST.get("options", "").strip()
    return ClusterSubmission(
        description=description_of(content, name=name),
        options=json_object(options, field="options") if options else {},
        files=files_of(
            [
                *uploads(sent, "file"),
                *files_by_uploads(request.POST.get(PART, ""), caller(request)),
            ]
        ),
        description_name=name,
        idempotency_key=key,
    )


def _faults_of_parts(request: Request) -> list[Finding]:
    """A part that nobody reads, or one that is given twice, is a mistake of the sender."""
    unknown = {*request.FILES, *request.POST} - {*_PARTS, "csrfmiddlewaretoken"}
    findings = [
        Finding(f"unknown part; known are {', '.join(_PARTS)}", field=name)
        for name in sorted(unknown)
    ]
    if "file" in request.POST:
        findings.append(Finding("must be sent as a file, with a file name", field="file"))
    findings += [
        Finding("must be sent as a text, without a file name", field=name)
        for name in _TEXTS
        if name in request.FILES
    ]
    for name in ("description", *_TEXTS):
        if len(request.FILES.getlist(name)) + len(request.POST.getlist(name)) > 1:
            findings.append(Finding("may be given only once", field=name))
    if "description" not in request.FILES and "description" not in request.POST:
        findings.append(Finding("is missing", field="description"))
    return findings
