"""Rotation of keys while the portal runs: what is kept under a key is put under the first one.

Apps register what they keep (`Kept`) and what they have given away and cannot take back
(`Lasting`), such as tokens of running attempts. Batches are transactions of their own: a rotation
that was killed is simply begun again, and passes over what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.views.decorators.debug import sensitive_variables

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.locks import wait_for_locks
from wms.core.keyed_digests import keyed_digest
from wms.core.models import AuditEntry

_BATCH: Final = 500
_MOST_NAMED: Final = 20
_MOST_TRIED: Final = 10_000


class KeyKind(StrEnum):
    """Kind of keys: the portal's secret key, or those of credentials."""

    SECRET = "secret key"
    CREDENTIALS = "credential keys"


@dataclass(frozen=True, slots=True)
class Renewal:
    """Rows of a batch that `renew` has changed, and names of those that no key opens."""

    changed: Sequence[Any] = ()
    lost: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """Secrets that rows keep under a key; `renew` puts some under the first, in their `columns`.

    It changes the rows in memory; who locks `lock` keeps the keys from changing meanwhile. Of what
    no key opens is named only what `can_be_lost`, for somebody to give it anew.
    """

    what: str
    kind: KeyKind
    rows: Callable[[], QuerySet[Any]]
    columns: tuple[str, ...]
    renew: Callable[[Sequence[Any]], Renewal]
    lock: str = ""
    can_be_lost: bool = True


@dataclass(frozen=True, slots=True)
class Lasting:
    """Words that the secret key made and others have: each ends after a time, or is counted.

    `count` tells how much there is of before a moment.
    """

    what: str
    lifetime: timedelta = timedelta(0)
    count: Callable[[datetime], int] | None = None


@dataclass(frozen=True, slots=True)
class Renewed:
    """Result for one kind of rows: how many were looked at and renewed, and the names of lost."""

    kept: Kept
    seen: int = 0
    renewed: int = 0
    lost: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Need:
    """A reason why former secret keys are still needed: until a time, or by so many."""

    what: str
    until: datetime | None = None
    count: int = 0


Progress = Callable[[str, int, int], None]

_KEPT: list[Kept] = []
_LASTING: list[Lasting] = []


def register_kept(kept: Kept) -> None:
    """Register rows that are renewed with all others."""
    _KEPT.append(kept)


def register_lasting(lasting: Lasting) -> None:
    """Register words for which former secret keys are needed as long as there are any."""
    _LASTING.append(lasting)


def renew_all(
    kinds: Collection[KeyKind],
    *,
    actor: Actor,
    tell: Progress = lambda what, done, total: None,
) -> list[Renewed]:
    """Put all that is kept under keys of these kinds under the first one; batch by batch.

    What no key opens is left as it is, and named.
    """
    results = [_renew(kept, tell) for kept in _KEPT if kept.kind in kinds]
    for kind in KeyKind:
        if kind in kinds:
            record_rotation(kind, [each for each in results if each.kept.kind == kind], actor=actor)
    return results


def record_rotation(kind: KeyKind, results: Sequence[Renewed], *, actor: Actor) -> None:
    """Write into the trail what was put under the first key; of the secret key also which it is."""
    facts: dict[str, Any] = {
        "renewed": {each.kept.what: each.renewed for each in results},
        "lost": [name for each in results for name in each.lost[:_MOST_NAMED]],
    }
    if kind == KeyKind.SECRET:
        facts["key"] = _fingerprint()
    record_action(f"rotate {kind}", target=str(kind), actor=actor, facts=facts)


def lost_count() -> Iterator[tuple[Kept, int]]:
    """Number of secrets of each kind that no key opens, of the newest rows. Changes nothing."""
    for kept in filter(attrgetter("can_be_lost"), _KEPT):
        rows = kept.rows().order_by("-pk")[:_MOST_TRIED]
        yield kept, len(kept.renew(list(rows)).lost)


def _renew(kept: Kept, tell: Progress) -> Renewed:
    total, last = kept.rows().count(), None
    seen, renewed = 0, 0
    lost: list[str] = []
    while True:
        rows, result = _renew_batch(kept, last)
        if not rows:
            return Renewed(kept, seen, renewed, lost)
        last = rows[-1].pk
        seen, renewed = seen + len(rows), renewed + len(result.changed)
        lost += result.lost
        tell(kept.what, seen, max(seen, total))


@transaction.atomic
@sensitive_variables()
def _renew_batch(kept: Kept, last: Any) -> tuple[list[Any], Renewal]:
    """The next rows, locked and renewed: who changes one meanwhile does it before, or after."""
    if kept.lock:
        wait_for_locks([kept.lock])
    found = kept.rows().order_by("pk").select_for_update(of=("self",))
    rows = list((found if last is None else found.filter(pk__gt=last))[:_BATCH])
    result = kept.renew(rows)
    if result.changed:
        kept.rows().model._default_manager.bulk_update(result.changed, kept.columns)
    return rows, result


def former_keys_needed(now: datetime) -> list[Need]:
    """Why former secret keys still have to be there; counted from the first rotation to this key.

    Nothing where there are no former keys.
    """
    if not settings.SECRET_KEY_FALLBACKS:
        return []
    since = (
        AuditEntry.objects.filter(target=str(KeyKind.SECRET), facts__key=_fingerprint())
        .order_by("id")
        .values_list("created_at", flat=True)
        .first()
    ) or now
    needs = []
    for each in _LASTING:
        if since + each.lifetime > now:
            needs.append(Need(each.what, until=since + each.lifetime))
        elif each.count is not None and (count := each.count(since)):
            needs.append(Need(each.what, count=count))
    return needs


def _fingerprint() -> str:
    """Name of the secret key that tells nothing of it."""
    return keyed_digest("wms.core.key_rotation", "which key is it")[:16]
