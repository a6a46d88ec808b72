"""What the submission of nodes reads of its surroundings, once for all DAGs of a round.

Offers of sites' queues, submit descriptions, segments of CPU time, numbers of TaskQueues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q

from matching.task_queues.resources import Resource
from wms.dags.engine.submitting.throttles import ReadyNode
from wms.dags.models import SubmitDescription
from wms.jobs.models import WorkspaceFile
from wms.sites.models import Site
from wms.sites.selectors import offered_resource, queues_of
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.task_queue_policy import task_queue_policy


class StoredDescription(NamedTuple):
    """A submit description as it was read with the DAG.

    `is_changed`: its file in the workspace has another content now.
    """

    name: str
    content: dict[str, Any]
    is_changed: bool


class SubmissionReads:
    """Each is read when it is first asked for, and kept as long as this."""

    def __init__(self) -> None:
        self._descriptions: dict[int, StoredDescription] = {}
        self._offers: dict[int, Mapping[str, Resource]] = {}
        self._counts: dict[tuple[int, str], int] = {}

    @cached_property
    def cpu_segments_s(self) -> list[int]:
        """Upper bounds of the segments of CPU time, in seconds."""
        return task_queue_policy().cpu_segments_s

    def descriptions_of(self, nodes: Iterable[ReadyNode]) -> Mapping[int, StoredDescription]:
        """Submit descriptions by id: those of these nodes at least. One query at most."""
        # Thousands of nodes share a description, which is large.
        wanted = {each for n in nodes if (each := n.submit_description_id) is not None}
        if missing := wanted - self._descriptions.keys():
            now = WorkspaceFile.objects.filter(
                workspace=OuterRef("dag__workspace"), path=OuterRef("name")
            )
            rows = SubmitDescription.objects.filter(pk__in=missing).annotate(
                is_changed=Exists(now.exclude(blob_id=OuterRef("sha256"))) & ~Q(sha256="")
            )
            for pk, *columns in rows.values_list("pk", "name", "content", "is_changed"):
                self._descriptions[pk] = StoredDescription(*columns)
        return self._descriptions

    def offers_at(self, site: Site) -> Mapping[str, Resource]:
        """What fresh pilots of the site's queues offer, by queue."""
        if site.pk not in self._offers:
            self._offers[site.pk] = {
                queue.name: offered_resource(queue) for queue in queues_of(site)
            }
        return self._offers[site.pk]

    def task_queue_count(self, owner_id: int, group: str) -> int:
        """Number of TaskQueues of an owner with a group, empty ones included."""
        key = owner_id, group
        if key not in self._counts:
            queues = TaskQueue.objects.filter(owner=owner_id, owner_group=group)
            self._counts[key] = queues.count()
        return self._counts[key]
