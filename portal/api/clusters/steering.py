"""Base views of the actions on a cluster, such as hold, release, change, limits, rerun and remove.

The endpoints are made of them by the registry of actions (`wms.actions`); rerun answers with the
new cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from rest_framework import status
from rest_framework.request import Request

from portal.api.actions import ActionView
from portal.api.base import caller
from portal.api.clusters import shapes
from wms.core.errors import Conflict
from wms.core.idempotency_models import MadeKind
from wms.core.transitions import Applied
from wms.jobs.clusters.selectors import find_cluster
from wms.jobs.models import Cluster


class ClusterAction(ActionView):
    """One change of one cluster."""

    shape = shapes.ClusterDetailSerializer
    operations = "clusters"

    def answer(self, request: Request, which: int, done: Applied | Cluster) -> Any:
        """The cluster. Raises Conflict if its state forbids the change."""
        cluster = find_cluster(caller(request), which)
        if isinstance(done, Applied) and not done.changed:
            refused = self.object_action.api.refused if self.object_action.api else ""
            raise Conflict(
                f"Cluster {which} is {cluster.state}: it cannot be {refused or 'changed'}."
            )
        return self.shape(cluster).data


class RerunAction(ActionView):
    """The failed jobs of one cluster once more."""

    shape = shapes.ClusterDetailSerializer
    status = status.HTTP_201_CREATED
    operations = "clusters"
    makes = (MadeKind.CLUSTER, Cluster)

    def answer(self, request: Request, which: int, done: Cluster) -> Any:
        """The new cluster."""
        return self.shape(find_cluster(caller(request), done.pk)).data

    def address(self, done: Cluster) -> str:
        """The new cluster's."""
        return reverse("api:cluster", args=[done.pk])


#: Views of actions that answer with something else than the cluster, by the names of the actions.
VIEWS: Mapping[str, type[ActionView]] = {"rerun": RerunAction}
