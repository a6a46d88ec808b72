"""Verification of the chain of seals: the first fault of it, and how far it is whole.

Once by a command (`manage.py audit_check`), and for ever by a loop, a part in each turn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import connection

from wms.core.audit_chain.digests import NO_SEAL, entry_digests, seal_digest, split
from wms.core.audit_chain.sql import FIND_STRAY
from wms.core.loops import last_report
from wms.core.models import AuditSeal, UnsealedEntry

LOOP = "audit-check"
_CYCLE_S = 60.0
_READ_AT_ONCE = 20


class FaultKind(StrEnum):
    """Kind of what is wrong with the trail."""

    SEAL_MISSING = "seal-missing"
    SEAL_CHANGED = "seal-changed"
    SEAL_UNEXPECTED = "seal-unexpected"
    ENTRY_MISSING = "entry-missing"
    ENTRY_CHANGED = "entry-changed"
    ENTRY_UNSEALED = "entry-unsealed"


@dataclass(frozen=True, slots=True)
class ChainFault:
    """First fault of the trail: the entry and the seal that it is about, if any."""

    kind: FaultKind
    entry: int | None = None
    seal: int | None = None

    def __str__(self) -> str:
        return _TOLD[self.kind].format(entry=self.entry, seal=self.seal)


_TOLD: Mapping[FaultKind, str] = {
    FaultKind.SEAL_MISSING: "seal {seal} is missing",
    FaultKind.SEAL_CHANGED: "seal {seal} was changed, or does not follow from the one before",
    FaultKind.SEAL_UNEXPECTED: "seal {seal} has not the hash that it had",
    FaultKind.ENTRY_MISSING: "audit entry {entry} of seal {seal} is missing",
    FaultKind.ENTRY_CHANGED: "audit entry {entry} is not what seal {seal} was made of",
    FaultKind.ENTRY_UNSEALED: "audit entry {entry} has no seal and awaits none",
}


class ChainBroken(Exception):
    """The audit trail is not what it was."""

    def __init__(self, fault: ChainFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Chain:
    """Outcome of a check: seals and entries that were verified, and the last of the seals."""

    seals: int = 0
    entries: int = 0
    waiting: int = 0
    last: int = 0
    sha256: str = NO_SEAL
    fault: ChainFault | None = None
    is_at_end: bool = True


def check_chain(
    *, expected: Mapping[int, str] | None = None, after: int = 0, limit_s: float | None = None
) -> Chain:
    """Verify all seals with their entries, or those after one, up to the first fault.

    `expected` are hashes of seals as they were noted elsewhere. With a limit the check may end
    before the last seal.
    """
    until = None if limit_s is None else time.monotonic() + limit_s
    wanted = dict(expected or {})
    last, sha256 = _start(after)
    seals = entries = 0
    fault = None if after == last else ChainFault(FaultKind.SEAL_MISSING, seal=after)
    is_at_end = True
    for seal in _seals(after) if fault is None else ():
        fault = _fault_of(seal, last + 1, sha256, wanted.pop(seal.number, None))
        if fault is not None:
            break
        last, sha256 = seal.number, seal.sha256
        seals, entries = seals + 1, entries + len(seal.entry_ids)
        if until is not None and time.monotonic() >= until:
            is_at_end = False
            break
    if fault is None and is_at_end:
        fault = _fault_at_end(wanted)
    waiting = UnsealedEntry.objects.count()
    return Chain(seals, entries, waiting, last, sha256, fault, is_at_end)


def _start(after: int) -> tuple[int, str]:
    """Number and hash of the seal after which the check begins; those of none if it is missing."""
    found = AuditSeal.objects.filter(number=after).values_list("number", "sha256").first()
    return found or (0, NO_SEAL)


def _seals(after: int) -> Iterator[AuditSeal]:
    """Seals after this one, in their order."""
    while rows := list(
        AuditSeal.objects.filter(number__gt=after).order_by("number")[:_READ_AT_ONCE]
    ):
        yield from rows
        after = rows[-1].number


def _fault_of(
    seal: AuditSeal, number: int, previous: str, expected: str | None
) -> ChainFault | None:
    if seal.number != number:
        return ChainFault(FaultKind.SEAL_MISSING, seal=number)
    if expected is not None and expected != seal.sha256:
        return ChainFault(FaultKind.SEAL_UNEXPECTED, seal=number)
    sealed = split(bytes(seal.entry_sha256s))
    if len(sealed) != len(seal.entry_ids) or seal.previous_sha256 != previous:
        return ChainFault(FaultKind.SEAL_CHANGED, seal=number)
    entries = list(zip(seal.entry_ids, sealed, strict=True))
    if seal_digest(number, previous, seal.sealed_at, entries) != seal.sha256:
        return ChainFault(FaultKind.SEAL_CHANGED, seal=number)
    return _fault_of_entries(number, entries)


def _fault_of_entries(number: int, entries: list[tuple[int, bytes]]) -> ChainFault | None:
    stored = entry_digests([pk for pk, _ in entries])
    for pk, digest in entries:
        if pk not in stored:
            return ChainFault(FaultKind.ENTRY_MISSING, entry=pk, seal=number)
        if stored[pk] != digest:
            return ChainFault(FaultKind.ENTRY_CHANGED, entry=pk, seal=number)
    return None


def _fault_at_end(wanted: Mapping[int, str]) -> ChainFault | None:
    """Seals that were noted and are not there, and entries outside of the chain."""
    if wanted:
        return ChainFault(FaultKind.SEAL_MISSING, seal=min(wanted))
    with connection.cursor() as cursor:
        cursor.execute(FIND_STRAY)
        [stray] = cursor.fetchone()
    return None if stray is None else ChainFault(FaultKind.ENTRY_UNSEALED, entry=stray)


def run_cycle(now: datetime) -> dict[str, Any]:
    """Verify the next part of the chain, from its beginning on again after its end.

    Raises ChainBroken: the loop then is failing, and each turn looks at the same place again. The
    seal that was the last one before has to be there still.
    """
    before = last_report(LOOP)
    found = check_chain(after=int(before.get("checked_to", 0)), limit_s=_CYCLE_S)
    fault = found.fault or _fault_of_latest(before.get("latest"))
    if fault is not None:
        raise ChainBroken(fault)
    return {
        "checked_to": 0 if found.is_at_end else found.last,
        "seals": found.seals,
        "entries": found.entries,
        "waiting": found.waiting,
        "latest": AuditSeal.objects.order_by("-number").values_list("number", "sha256").first(),
    }


def _fault_of_latest(latest: Sequence[Any] | None) -> ChainFault | None:
    """Whether the seal that was the last one is gone, or another one by now."""
    if latest is None:
        return None
    number, sha256 = latest
    found = AuditSeal.objects.filter(number=number).values_list("sha256", flat=True).first()
    if found is None:
        return ChainFault(FaultKind.SEAL_MISSING, seal=number)
    return None if found == sha256 else ChainFault(FaultKind.SEAL_UNEXPECTED, seal=number)
