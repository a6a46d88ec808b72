"""Sealing of audit entries in batches, as a control loop.

Who writes an entry waits for nobody: a trigger notes that it awaits its seal, and the loop, one at
a time, makes the chain of what has been committed. A chain of the entries themselves would let each
transaction that writes one wait for the end of all before it; and its order would have to be that
of the commits, which nobody knows.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction

from wms.core.audit_chain.digests import NO_SEAL, entry_digests, joined, seal_digest, split
from wms.core.models import AuditSeal, UnsealedEntry

log = structlog.get_logger(__name__)
#: Entries of one seal at the most.
BATCH = 1000
_CYCLE_S = 20.0


def run_cycle(now: datetime) -> dict[str, Any]:
    """Seal what waits; a million entries of before take some minutes, in turns."""
    until, sealed = time.monotonic() + _CYCLE_S, 0
    while count := seal_batch(now):
        sealed += count
        if count < BATCH or time.monotonic() >= until:
            break
    return {"sealed": sealed}


@transaction.atomic
def seal_batch(now: datetime, size: int = BATCH) -> int:
    """Seal the first entries that wait, by their ids; how many there were."""
    ids = list(UnsealedEntry.objects.order_by("pk").values_list("pk", flat=True)[:size])
    if not ids:
        return 0
    last = AuditSeal.objects.order_by("-number").values_list("number", "sha256").first()
    number, previous = (last[0] + 1, last[1]) if last else (1, NO_SEAL)
    digests = joined(ids, entry_digests(ids))
    sha256 = seal_digest(number, previous, now, zip(ids, split(digests), strict=True))
    AuditSeal.objects.create(
        number=number, entry_ids=ids, entry_sha256s=digests, previous_sha256=previous,
        sha256=sha256, sealed_at=now,
    )  # fmt: skip
    UnsealedEntry.objects.filter(pk__in=ids).delete()
    # Where logs are kept elsewhere, whoever rewrites the whole chain does not reach this.
    transaction.on_commit(
        lambda: log.info("audit_sealed", seal=number, entries=len(ids), sha256=sha256)
    )
    return len(ids)
