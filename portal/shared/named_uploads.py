"""Files of a submission that came by uploads before: JSON objects of their names and uploads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from portal.middleware.uploads import Upload, uploads
from portal.shared.job_submissions import json_object
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.jobs.uploads.selectors import contents_of_uploads

#: Name of the part in forms.
PART = "uploads"
_LARGEST_ID = 2**63 - 1
_MOST_FILES = 10_000


def files_by_uploads(text: str, owner: User) -> list[Upload]:
    """Files whose contents are uploads of the owner; none for an empty text.

    Raises InvalidInput with every file whose upload is unknown, another user's, expired or
    incomplete.
    """
    return _files(json_object(text, field=PART), owner) if text.strip() else []


class FormFiles:
    """Files of a page's form by their parts: those in the form, and those sent by uploads before.

    Of the latter a script has put an object into the form, with one of their names and uploads for
    each part. Raises InvalidInput with every file whose upload cannot be taken.
    """

    def __init__(self, request: HttpRequest, owner: User, parts: Collection[str]) -> None:
        self._request = request
        text = request.POST.get(PART, "")
        given = json_object(text, field=PART) if text.strip() else {}
        self._sent_before = {
            part: _files(files, owner) for part, files in _by_parts(given, parts).items()
        }

    def of(self, part: str) -> list[Upload]:
        """Files of a part."""
        return [*uploads(self._request, part), *self._sent_before.get(part, ())]


def _by_parts(given: Mapping[str, Any], parts: Collection[str]) -> dict[str, dict[str, Any]]:
    findings = [
        Finding(f"must be one of {', '.join(sorted(parts))}, and an object", file=part, field=PART)
        for part, files in given.items()
        if part not in parts or not isinstance(files, dict)
    ]
    if findings:
        raise InvalidInput(findings)
    return dict(given)


def _files(given: Mapping[str, Any], owner: User) -> list[Upload]:
    if len(given) > _MOST_FILES:
        raise InvalidInput.of(f"names more than {_MOST_FILES} files", field=PART)
    findings = [
        Finding("must be the number of an upload", file=name, field=PART)
        for name, upload_id in given.items()
        if type(upload_id) is not int or not 0 < upload_id <= _LARGEST_ID
    ]
    if findings:
        raise InvalidInput(findings)
    contents = contents_of_uploads(owner, given, now=timezone.now())
    return [Upload(name, content) for name, content in contents.items()]
