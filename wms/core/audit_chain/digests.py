"""Hashes of audit entries and of seals; docs/reference/audit-chain.md tells how they are made.

They are made of what the database has: of `facts` its text, so that no reading changes a number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from django.db.models import TextField
from django.db.models.functions import Cast

from wms.core.models import AuditEntry

#: What the first seal names as the one before.
NO_SEAL = "0" * 64
#: Of an entry that is not there.
MISSING = bytes(32)
_COLUMNS = (
    "actor", "action", "target", "object_kind", "object_key", "reason", "request_id", "facts_text",
)  # fmt: skip


def entry_digests(ids: Collection[int]) -> dict[int, bytes]:
    """SHA-256 of each of these entries, by its id; those that are not there are absent."""
    rows = AuditEntry.objects.filter(pk__in=ids).annotate(facts_text=Cast("facts", TextField()))
    return {
        pk: _digest([pk, in_text(created_at), *values])
        for pk, created_at, *values in rows.values_list("pk", "created_at", *_COLUMNS)
    }


def seal_digest(
    number: int, previous: str, sealed_at: datetime, entries: Iterable[tuple[int, bytes]]
) -> str:
    """SHA-256 of a seal in hexadecimal digits."""
    lines = [str(number), previous, in_text(sealed_at)]
    lines += [f"{pk} {digest.hex()}" for pk, digest in entries]
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def split(digests: bytes) -> list[bytes]:
    """Digests that stand one after another."""
    return [digests[start : start + 32] for start in range(0, len(digests), 32)]


def joined(ids: Iterable[int], digests: Mapping[int, bytes]) -> bytes:
    """Digests of these entries, one after another."""
    return b"".join(digests.get(pk, MISSING) for pk in ids)


def in_text(moment: datetime) -> str:
    """The moment to the microsecond, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _digest(values: list[object]) -> bytes:
    text = json.dumps(values, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()
