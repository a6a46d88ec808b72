"""Endpoints of a DAG's matches, and rematching it."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.api.shapes.matches import MatchRecordSerializer
from portal.api.views.base import ListView, caller
from wms.dags.models import MatchRecord
from wms.dags.reading import selectors


class MatchList(ListView):
    """The stays of a DAG at sites, latest first."""

    queryset = MatchRecord.objects.none()
    serializer_class = MatchRecordSerializer

    def get_queryset(self) -> QuerySet[MatchRecord]:
        """The DAG's matches with the names of the sites."""
        dag = selectors.find_dag(caller(self.request), self.kwargs["dag_id"])
        return selectors.matches_of(dag)
