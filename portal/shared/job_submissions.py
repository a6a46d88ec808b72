"""Uploaded parts of a submission of jobs, read for page and API: description and files.

A description is submit language or JSON; JSON objects of other fields are read here too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import file_digest
from typing import Any, BinaryIO

from portal.middleware.storable import faults_of_json
from portal.middleware.uploads import Upload
from wms.core.errors import Finding, InvalidInput
from wms.core.known_contents import known_sha256
from wms.jobs.clusters.checking import MAX_TEXT_BYTES

#: Name of a description that has none, in findings.
DEFAULT_NAME = "job.sub"
#: A table of parameters may stand in a description in JSON; a larger one is a file.
MAX_JSON_BYTES = 16 * 1024 * 1024


def read_description(content: BinaryIO) -> bytes:
    """A description that was sent, up to one byte more than any may have; it is rewound."""
    content.seek(0)
    found = content.read(MAX_JSON_BYTES + 1)
    content.seek(0)
    return found


def description_of(content: bytes, *, name: str) -> str | dict[str, Any]:
    """Description in submit language, or the object of one in JSON, which begins with a brace.

    Raises InvalidInput.
    """
    is_json = content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    limit_bytes = MAX_JSON_BYTES if is_json else MAX_TEXT_BYTES
    if len(content) > limit_bytes:
        raise InvalidInput.of(f"the description is larger than {limit_bytes} bytes", file=name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput([Finding("is not UTF-8", file=name, line=line)]) from error
    return json_object(text, file=name) if is_json else text


def json_object(text: str, *, file: str = "", field: str = "") -> dict[str, Any]:
    """The object of a text in JSON. Raises InvalidInput with the line of a fault."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        fault = Finding(f"is not JSON: {error.msg}", file=file, line=error.lineno, field=field)
        raise InvalidInput([replace(fault, column=error.colno)]) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput.of(f"is not JSON: {error}", file=file, field=field) from error
    if not isinstance(found, dict):
        raise InvalidInput.of("must be a JSON object", file=file, field=field)
    if faults := faults_of_json(found):
        places = [".".join(filter(None, (field, fault.field))) for fault in faults]
        raise InvalidInput(
            [replace(fault, field=at) for fault, at in zip(faults, places, strict=True)]
        )
    return found


def files_of(sent: Sequence[Upload]) -> dict[str, BinaryIO]:
    """Files by their names. One that is sent twice is one file, if it is the same.

    Raises InvalidInput.
    """
    files: dict[str, BinaryIO] = {}
    findings = []
    for upload in sent:
        known = files.setdefault(upload.name, upload.content)
        if known is not upload.content and _digest(known) != _digest(upload.content):
            findings.append(Finding("two files have this name", file=upload.name, field="file"))
    if findings:
        raise InvalidInput(findings)
    return files


def lines_of(description: str | Mapping[str, Any]) -> bytes:
    """The description as it is quoted where a fault names a line of it."""
    return description.encode(errors="surrogateescape") if isinstance(description, str) else b""


def _digest(content: BinaryIO) -> str:
    if (known := known_sha256(content)) is not None:
        return known
    content.seek(0)
    digest = file_digest(content, "sha256").hexdigest()
    content.seek(0)
    return digest
