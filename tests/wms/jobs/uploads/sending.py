"""Uploads as tests send them."""

from __future__ import annotations

import hashlib

from django.utils import timezone

from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import ResumableUpload
from wms.jobs.uploads.services import append_pieces, begin_upload

NOW = timezone.now()
CONTENT = bytes(range(256)) * 40


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def begin(owner: User, content: bytes = CONTENT) -> ResumableUpload:
    return begin_upload(
        sha256=sha256(content),
        size_bytes=len(content),
        owner=owner,
        actor=Actor.person(owner),
        now=NOW,
    ).upload


def send(
    upload: ResumableUpload, *pieces: bytes, offset: int = 0, length: int | None = None
) -> ResumableUpload:
    return append_pieces(
        upload.pk,
        pieces,
        length=sum(map(len, pieces)) if length is None else length,
        offset=offset,
        owner=upload.owner,
        actor=Actor.person(upload.owner),
        now=NOW,
    )


def uploaded(owner: User, content: bytes = CONTENT) -> ResumableUpload:
    return send(begin(owner, content), content)


def content_of(upload: ResumableUpload) -> bytes:
    with open_blob(upload.sha256) as file:
        return file.read()
