"""Endpoints of a DAG's matches, and rematching it."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.shapes.matches import (
    MatchRecordSerializer,
    RematchSerializer,
)
from portal.api.views.base import ListView, caller
from portal.api.views.steering import Steering, steering_schema
from wms.dags.models import MatchRecord
from wms.dags.reading import selectors
from wms.dags.services.dags import rematch_dags


class MatchList(ListView):
    """The stays of a DAG at sites, latest first."""

    queryset = MatchRecord.objects.none()
    serializer_class = MatchRecordSerializer

    def get_queryset(self) -> QuerySet[MatchRecord]:
        """The DAG's matches with the names of the sites."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return selectors.matches_of(dag)


class RematchDag(Steering):
    """Take a DAG from its site."""

    verb = "rematched"
    body_class = RematchSerializer

    @steering_schema("Take a DAG from its site and negotiate anew", RematchSerializer)
    def post(self, request: Request, dag_id: int) -> Response:
        """Rematch it; needs a reason."""
        return self.steer(request, dag_id, rematch_dags)
