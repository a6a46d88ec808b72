"""Files of a submission that came by uploads before: a JSON object of their names and uploads."""

from __future__ import annotations

from django.utils import timezone

from portal.middleware.uploads import Upload
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
    if not text.strip():
        return []
    given = json_object(text, field=PART)
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
