"""DAG submission made of uploaded parts (files, archives, options), for the page and the API.

Also the reading of run options from JSON.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from typing import Any, BinaryIO

from matching.negotiation.deadline import Deadline
from portal.middleware.storable import faults_of_json
from portal.middleware.uploads import Upload
from portal.shared.archives import unpack
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput, TooLarge
from wms.core.known_contents import KnownContent, known_sha256
from wms.dags.language.origin import TOP, Origin
from wms.dags.priorities import checked_priority
from wms.dags.rescue.rescue_files import Resumption
from wms.dags.submission.checking import read_text, request_deadline
from wms.dags.submission.submit import DagSubmission
from wms.jobs.content.blobs import open_blob

#: DAG files are packed to about a tenth.
_TEXT_PER_PACKED = 10
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SubmissionParts:
    """Uploaded parts of a submission. DAG files are parts of their own, or named among others."""

    dags: Sequence[Upload]
    named_dags: Sequence[str] = ()
    description: Upload | None = None
    files: Sequence[Upload] = ()
    archives: Sequence[Upload] = ()
    origin: Origin = TOP
    options: Mapping[str, Any] = field(default_factory=dict)
    resumption: Resumption = Resumption()  # noqa: RUF009 - it never changes
    key: str | None = None
    binding: str = ""
    labels: Sequence[str] = ()
    #: As it was typed; empty: as the description says.
    priority: str = ""


def submission_of(sent: SubmissionParts) -> DagSubmission:
    """DAG submission of the parts. Raises InvalidInput with every fault of files, and TooLarge."""
    description = [sent.description] if sent.description is not None else []
    files: dict[str, BinaryIO] = {}
    findings = []
    for upload in [*sent.dags, *description, *sent.files]:
        findings += _add(files, upload, field="file")
    deadline = _deadline_for(sent, [*sent.dags, *description, *sent.files])
    left = conf().max_upload_bytes
    for archive in sent.archives:
        with _at_hand(archive) as content:
            unpacked = unpack(content, name=archive.name, limit_bytes=left, deadline=deadline)
        left -= unpacked.size_bytes
        for path, unpacked_file in unpacked.items():
            faults = _add(files, Upload(path, unpacked_file), field="archive")
            findings += [replace(each, file=archive.name, member=path) for each in faults]
    priority, faults = _priority_of(sent.priority)
    findings += faults
    names = [upload.name for upload in sent.dags] + list(sent.named_dags)
    findings += _faults_of_dags(names, files)
    description_text = ""
    for each in description:
        description_text, faults = read_text(files[each.name], file=each.name)
        findings += [replace(fault, field="description") for fault in faults]
    if findings:
        raise InvalidInput(findings)
    own = {names[0], *(each.name for each in description)}
    return DagSubmission(
        dag_name=names[0],
        dag_text=_dag_text(files[names[0]]),
        files={path: content for path, content in files.items() if path not in own},
        description_text=description_text,
        description_name=description[0].name if description else "",
        idempotency_key=sent.key,
        more_dags=tuple(names[1:]),
        origin=sent.origin,
        options=sent.options,
        resumption=sent.resumption,
        binding=sent.binding,
        deadline=deadline,
        labels=tuple(sent.labels),
        priority=priority,
    )


@contextmanager
def _at_hand(archive: Upload) -> Iterator[BinaryIO]:
    """An archive on this host, since it is read here and there. Raises TooLarge."""
    stored = archive.content
    if not isinstance(stored, KnownContent):
        yield stored
        return
    limit_bytes = conf().max_upload_bytes
    if stored.size_bytes > limit_bytes:
        raise TooLarge(f"{archive.name} is larger than {limit_bytes} bytes, the most of archives.")
    with tempfile.TemporaryFile() as file, open_blob(stored.sha256) as stream:
        shutil.copyfileobj(stream, file, _CHUNK_BYTES)
        yield file


def _priority_of(text: str) -> tuple[int | None, list[Finding]]:
    """Priority of a DAG, from what was typed, and the fault of that."""
    if not text.strip():
        return None, []
    try:
        return checked_priority(text), []
    except ValueError as error:
        return None, [Finding(str(error), field="priority")]


def _deadline_for(sent: SubmissionParts, plain: Sequence[Upload]) -> Deadline:
    """The time for all that was sent; what is packed counts as the text that it may well hold.

    DAG files come by uploads as well; larger files that do are data, which nobody reads.
    """
    archives = sum(_size(each) for each in sent.archives)
    return request_deadline(sum(map(_size_to_read, plain)) + _TEXT_PER_PACKED * archives)


def _size_to_read(upload: Upload) -> int:
    size_bytes = _size(upload)
    is_data = known_sha256(upload.content) and size_bytes > conf().max_dag_text_bytes
    return 0 if is_data else size_bytes


def _size(upload: Upload) -> int:
    return upload.content.seek(0, io.SEEK_END)


def _dag_text(stream: BinaryIO) -> str:
    """The DAG file as it is; one that is too large is refused when it is read."""
    stream.seek(0)
    content = stream.read(conf().max_dag_text_bytes + 1)
    stream.seek(0)
    return content.decode(errors="surrogateescape")


def _add(files: dict[str, BinaryIO], upload: Upload, *, field: str) -> list[Finding]:
    """Take a file in. One that is sent twice is one file, if it is the same."""
    known = files.setdefault(upload.name, upload.content)
    if known is upload.content or _digest(known) == _digest(upload.content):
        return []
    return [Finding("two files have this name", file=upload.name, field=field)]


def _digest(content: BinaryIO) -> str:
    if (known := known_sha256(content)) is not None:
        return known
    content.seek(0)
    digest = file_digest(content, "sha256").hexdigest()
    content.seek(0)
    return digest


def _faults_of_dags(names: Sequence[str], files: Mapping[str, BinaryIO]) -> list[Finding]:
    if not names:
        return [Finding("the DAG file is missing", field="dag")]
    findings = [
        Finding(f"there is no file {name[:200]!r} among those that were sent", field="dag")
        for name in names
        if name not in files
    ]
    findings += [
        Finding("this DAG file is named twice", file=name, field="dag")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    return findings


def read_options(text: str) -> dict[str, Any]:
    """Run options as a JSON object; empty text is none. Raises InvalidInput."""
    if not text.strip():
        return {}
    try:
        options = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput.of(f"is not JSON: {error}", field="options") from error
    if not isinstance(options, dict):
        raise InvalidInput.of("must be a JSON object", field="options")
    if faults := faults_of_json(options):
        raise InvalidInput([replace(fault, field=f"options.{fault.field}") for fault in faults])
    return options
