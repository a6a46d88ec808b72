"""Quotas of users and groups on waiting jobs, clusters and stored bytes: use, and refusal beyond.

A check against quotas locks them until its transaction ends, so that two never take the last place
together. Also the register of counters by which other apps add to the use, and the summing up of
the entries of stored bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from django.db import connection
from django.db.models import Q, Sum

from wms.accounting.models import AccountingGroup, Quota
from wms.accounting.selectors import quotas_for
from wms.core.database.locks import wait_for_locks
from wms.core.errors import QuotaExceeded
from wms.core.models import User
from wms.jobs.models import ResumableUpload, StoredBytes
from wms.jobs.sandboxes.sizes import kept_bytes
from wms.jobs.sql import FOLD_STORED_BYTES
from wms.taskqueues.selectors import waiting_jobs_of


@dataclass(frozen=True, slots=True)
class Usage:
    """Amounts of what quotas limit."""

    waiting_jobs: int = 0
    clusters: int = 0
    size_bytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)))


@dataclass(frozen=True, slots=True)
class Holder:
    """A user with all that is theirs, or a group with all that is in its name or below it."""

    user: User | None = None
    group: AccountingGroup | None = None

    def __str__(self) -> str:
        return f"user {self.user}" if self.user is not None else f"group {self.group}"

    def rows(self, *, user: str = "owner", group: str = "owner_group") -> Q:
        """Condition on rows that name their user and the name of their group in these columns."""
        if self.user is not None:
            return Q(**{user: self.user})
        name = str(self.group)
        return Q(**{group: name}) | Q(**{f"{group}__startswith": f"{name}."})


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """A quota with its holder and what of it is used."""

    quota: Quota
    holder: Holder
    used: Usage

    @property
    def lines(self) -> list[tuple[str, int | None, int]]:
        """Each kind with its limit, if it has one, and what is used."""
        return [
            (kind, getattr(self.quota, column), getattr(self.used, kind))
            for kind, column in _LIMITS.items()
        ]


#: The column of each limit.
_LIMITS = {
    "waiting_jobs": "max_waiting_jobs",
    "clusters": "max_clusters",
    "size_bytes": "max_bytes",
}
#: How people read them: of one, of several.
_WORDS = {
    "waiting_jobs": ("waiting job", "waiting jobs"),
    "clusters": ("cluster", "clusters"),
    "size_bytes": ("stored byte", "stored bytes"),
}


def _of_task_queues(holder: Holder) -> Usage:
    return Usage(waiting_jobs=waiting_jobs_of(holder.rows()))


def _of_files(holder: Holder) -> Usage:
    rows = StoredBytes.objects.filter(holder.rows())
    return Usage(size_bytes=max(0, rows.aggregate(total=Sum("size_bytes"))["total"] or 0))


def _of_sandboxes(holder: Holder) -> Usage:
    rows = holder.rows(user="cluster__owner", group="cluster__accounting_group__name")
    return Usage(size_bytes=kept_bytes(rows))


def _of_uploads(holder: Holder) -> Usage:
    """Uploads that nothing has used: they are in the name of no group."""
    if holder.user is None:
        return Usage()
    rows = ResumableUpload.objects.filter(owner=holder.user)
    return Usage(size_bytes=rows.aggregate(total=Sum("counted_bytes"))["total"] or 0)


#: What adds up to the use of a holder. Apps register theirs when they are set up.
_COUNTERS: list[Callable[[Holder], Usage]] = [
    _of_task_queues, _of_files, _of_sandboxes, _of_uploads,
]  # fmt: skip


def register_counter(counter: Callable[[Holder], Usage]) -> None:
    """Register what else a holder uses; `counter` must be quick however much there is."""
    if counter not in _COUNTERS:
        _COUNTERS.append(counter)


def usage_of(holder: Holder) -> Usage:
    """All that a user or group uses now."""
    return sum((count(holder) for count in _COUNTERS), Usage())


def check_quota(
    *,
    owner: User,
    group: AccountingGroup | None,
    jobs: int = 0,
    clusters: int = 0,
    size_bytes: int = 0,
) -> None:
    """Raise QuotaExceeded unless this may be added for the owner, in the name of the group.

    The caller is in the transaction that adds it. Until its end, others that ask for the same user
    or group wait here, so that two never take the last place together. Without a quota nobody
    waits, and nothing is counted.
    """
    assert connection.in_atomic_block
    asked = Usage(jobs, clusters, size_bytes)
    quotas = _limiting(quotas_for(owner, group))
    if not quotas or asked == Usage():
        return
    holders = [(quota, _holder(quota, owner)) for quota in quotas]
    wait_for_locks([f"quota of {holder}" for _, holder in holders])
    for quota, holder in holders:
        _check(QuotaUse(quota, holder, usage_of(holder)), asked)


def quotas_of(user: User) -> list[QuotaUse]:
    """The quotas that a user's submissions meet, in their own name and in those of their groups."""
    groups = list(user.accounting_groups.all())
    found = {quota.pk: quota for group in [None, *groups] for quota in quotas_for(user, group)}
    holders = [(quota, _holder(quota, user)) for quota in found.values()]
    return [QuotaUse(quota, holder, usage_of(holder)) for quota, holder in holders]


def fold_stored_bytes() -> int:
    """Sum up the entries in the sizes of files; the number of rows written."""
    with connection.cursor() as cursor:
        cursor.execute(FOLD_STORED_BYTES)
        return int(cursor.rowcount)


def _limiting(quotas: Sequence[Quota]) -> list[Quota]:
    return [
        quota
        for quota in quotas
        if any(getattr(quota, name) is not None for name in _LIMITS.values())
    ]


def _holder(quota: Quota, user: User) -> Holder:
    return Holder(user) if quota.group is None else Holder(group=quota.group)


def _check(use: QuotaUse, asked: Usage) -> None:
    for kind, limit, used in use.lines:
        more: int = getattr(asked, kind)
        # What runs stores its outputs whatever the quota: who is beyond it can begin nothing new.
        if limit is None or used + more <= limit or not (more or kind == "size_bytes"):
            continue
        one, many = _WORDS[kind]
        message = (
            f"The quota of {use.holder} is {limit} {one if limit == 1 else many}: {used} used, "
            f"{more} more asked for."
        )
        raise QuotaExceeded(
            message, quota=kind, whose=str(use.holder), limit=limit, used=used, asked=more
        )
