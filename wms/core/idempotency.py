"""Idempotency keys: a request that is sent again gives what it made first, for a day.

A service makes its object inside of `only_once`: key and object are stored together or not at all,
and of two equal requests at once the second one waits for the first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, BinaryIO

from django.db import transaction
from django.utils import timezone

from wms.core.errors import Conflict, InvalidInput
from wms.core.idempotency_models import IdempotencyKey, MadeKind
from wms.core.known_contents import known_sha256
from wms.core.models import User

KEY_LIFETIME = timedelta(hours=24)
MAX_LENGTH = 128
#: So many keys that have run out go with each new one.
_DELETED_AT_ONCE = 100
_CHUNK_BYTES = 1024 * 1024


@dataclass(slots=True)
class Creation:
    """The object of a request, by its id: `found` where an equal request made it before.

    Otherwise who makes it sets `made`. For the kind `answer` the same is `known_answer` and
    `answer`.
    """

    found: int | None = None
    made: int | None = None
    known_answer: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Key of a request, the kind of what it makes, and the SHA-256 of all that was sent.

    Where that is keyed, `former_sha256` has those under the portal's former secret keys.
    """

    kind: MadeKind
    key: str
    body_sha256: str
    former_sha256: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise InvalidInput for a key that cannot be kept."""
        if not 0 < len(self.key) <= MAX_LENGTH or not self.key.isprintable():
            message = f"must have from 1 to {MAX_LENGTH} characters, without control characters"
            raise InvalidInput.of(message, field="idempotency_key")


def content_sha256(given: Mapping[str, Any], files: Mapping[str, BinaryIO]) -> str:
    """SHA-256 of the values and files of a request; files are rewound before and left read.

    Those whose SHA-256 is known are not read.
    """
    digests = {
        name: known_sha256(stream) or _stream_sha256(stream)
        for name, stream in sorted(files.items())
    }
    text = json.dumps([given, digests], sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _stream_sha256(stream: BinaryIO) -> str:
    stream.seek(0)
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def made_before(owner: User, request: RequestKey | None) -> int | None:
    """Id of what an equal request of the owner made in the last `KEY_LIFETIME`.

    Raises InvalidInput for the key, and Conflict where it was sent with another content.
    """
    known = _known(owner, request) if request is not None else None
    return known.object_id if known is not None else None


def _within(owner: User, sha256: str) -> str:
    """The hash of a request by a token that is limited as the owner is: of others it is another."""
    if owner.limited_to is None:
        return sha256
    return hashlib.sha256(f"{owner.limited_to} {sha256}".encode()).hexdigest()


def _known(owner: User, request: RequestKey) -> IdempotencyKey | None:
    request.check()
    known = IdempotencyKey.objects.filter(
        owner=owner, kind=request.kind, key=request.key,
        created_at__gt=timezone.now() - KEY_LIFETIME,
    ).first()  # fmt: skip
    hashes = {_within(owner, each) for each in (request.body_sha256, *request.former_sha256)}
    # One without a hash is of no token that is limited.
    if known is not None and known.body_sha256 not in hashes | (
        {""} if owner.limited_to is None else set()
    ):
        of_what = "" if known.object_id is None else f" {known.object_id}"
        raise Conflict(
            f"The idempotency key was used for {request.kind}{of_what}, which was made of another "
            "content."
        )
    return known


@contextmanager
def only_once(owner: User, request: RequestKey | None) -> Iterator[Creation]:
    """Transaction in which the object of a request is made, unless `found` says that it is there.

    Raises as `made_before`. Without a key every request makes its own.
    """
    with transaction.atomic():
        if request is None:
            yield Creation()
            return
        _forget_old(owner, request)
        row = IdempotencyKey(
            owner=owner, kind=request.kind, key=request.key,
            body_sha256=_within(owner, request.body_sha256),
        )  # fmt: skip
        # Waits for another transaction that has this key: then either it is stored, or free again.
        IdempotencyKey.objects.bulk_create([row], ignore_conflicts=True)
        known = _known(owner, request)
        creation = Creation()
        if known is not None:
            creation = Creation(found=known.object_id, known_answer=known.answer)
        yield creation
        if creation.found is None and creation.known_answer is None:
            IdempotencyKey.objects.filter(owner=owner, kind=request.kind, key=request.key).update(
                object_id=creation.made, answer=creation.answer
            )


def _forget_old(owner: User, request: RequestKey) -> None:
    old = IdempotencyKey.objects.filter(created_at__lte=timezone.now() - KEY_LIFETIME)
    old.filter(owner=owner, kind=request.kind, key=request.key).delete()
    some = old.order_by("created_at").select_for_update(skip_locked=True)[:_DELETED_AT_ONCE]
    IdempotencyKey.objects.filter(pk__in=[each.pk for each in some]).delete()
