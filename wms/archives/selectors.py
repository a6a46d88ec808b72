"""Selectors of archives: those kept here that a user may see, and DAGs to be archived."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from django.db.models import Q, QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.archives.models import ArchivedDag
from wms.archives.policy import may_keep
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag

#: What lists do not show.
_LARGE = ("failures", "state_reason", "job_counts", "row_counts")


def visible_archives(user: User) -> QuerySet[ArchivedDag]:
    """Archives that the user may see: of DAGs that the user may see, and for operators all."""
    archives = seen_by(user, ArchivedDag.objects.all(), Walls.by_group)
    return archives if may_keep(user) else archives.filter(is_foreign=False)


def listed_archives(user: User) -> QuerySet[ArchivedDag]:
    """Visible archives with the columns of a list, latest first."""
    return visible_archives(user).select_related("blob").defer(*_LARGE).order_by("-pk")


def find_archive(user: User, archive_id: int) -> ArchivedDag:
    """One visible archive with its content's row. Raises NotFound."""
    found = visible_archives(user).select_related("blob").filter(pk=archive_id).first()
    if found is None:
        raise NotFound(f"There is no archive {archive_id}, or you may not see it.")
    return found


def ended_dags(dag_ids: Collection[int], *, ended_before: datetime | None) -> Iterator[Dag]:
    """DAGs of these numbers, and outermost ones that ended before a time; by their numbers."""
    chosen = Q(pk__in=dag_ids)
    if ended_before is not None:
        chosen |= Q(root=None, ended_at__lt=ended_before)
    ids = list(Dag.objects.filter(chosen).order_by("pk").values_list("pk", flat=True))
    # One at a time, as it is then: it may take hours until its turn comes.
    for dag_id in ids:
        yield Dag.objects.get(pk=dag_id)
