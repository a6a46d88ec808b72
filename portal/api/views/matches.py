"""Where DAGs were, and taking them from there."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.match_serializers import (
    MatchRecordSerializer,
    RematchSerializer,
    SelectionRematchSerializer,
    SelectionResultSerializer,
)
from portal.api.views.base import ListView, caller, refusals
from portal.api.views.steering import Steering, steering_schema
from wms.core.actors import Actor
from wms.dags import selectors
from wms.dags.models import MatchRecord
from wms.dags.services import rematch_dags


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


class RematchSelection(APIView):
    """Take several DAGs from their sites."""

    @extend_schema(
        operation_id="dags_rematch_selection",
        summary="Take several DAGs from their sites and negotiate anew",
        request=SelectionRematchSerializer,
        responses={200: SelectionResultSerializer, **refusals(400, 403, 404)},
    )
    def post(self, request: Request) -> Response:
        """Rematch those that have a site, or none if one of them is not there or not yours."""
        body = SelectionRematchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = dict(body.validated_data)
        user = caller(request)
        applied = rematch_dags(given.pop("dags"), actor=Actor.person(user), **given)
        states = selectors.states_of(user, applied.skipped)
        skipped = [{"dag": pk, "state": states[pk]} for pk in applied.skipped]
        return Response({"changed": applied.changed, "skipped": skipped})
