"""Selectors of logical files that a user may see: list, one with its replicas."""

from __future__ import annotations

from django.db.models import Count, Prefetch, Q, QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.placement.catalogue.models import LogicalFile, Replica


def files_within(walls: Walls) -> Q:
    """Condition for the logical files that walls let one see."""
    return walls.by_name()


def visible_files(user: User) -> QuerySet[LogicalFile]:
    """The logical files that the user may see: those of the user's frontends."""
    return seen_by(user, LogicalFile.objects.all(), files_within)


def listed_files(user: User) -> QuerySet[LogicalFile]:
    """Visible files with the columns of a list and the number of their `copies`."""
    return visible_files(user).select_related("owner").annotate(copies=Count("replicas"))


def page_of_files(user: User, *, prefix: str, after: str, limit: int) -> list[LogicalFile]:
    """Files by name that begin so, behind a name. By the index of names."""
    files = listed_files(user).order_by("name")
    if prefix:
        files = files.filter(name__startswith=prefix)
    return list(files.filter(name__gt=after)[:limit] if after else files[:limit])


def find_file(user: User, file_id: int) -> LogicalFile:
    """One visible file with its owner and replicas. Raises NotFound."""
    replicas = Replica.objects.select_related("storage").order_by("storage__name")
    files = listed_files(user).prefetch_related(Prefetch("replicas", replicas))
    found = files.filter(pk=file_id).first()
    if found is None:
        raise NotFound(f"There is no logical file {file_id}, or you may not see it.")
    return found
