"""Endpoints of trials: ask for a check or a dry run, list, progress and report, stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import WHY, ListView, caller, refusals, why_of
from portal.api.dags.submissions import ORIGIN_FIELDS, check_parts, sent_origin, sent_truth
from portal.api.idempotency import once
from portal.api.trials import shapes
from portal.api.uploads import TakesFiles
from portal.lists.trial_filter import TrialFilter
from portal.middleware.uploads import uploads
from portal.shared.dag_submissions import SubmissionParts, read_options, submission_of
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import require_role
from wms.dags.models import Trial
from wms.dags.trials import services
from wms.dags.trials.selectors import find_trial, visible_trials
from wms.dags.trials.services import TrialRequest
from wms.dags.trials.states import TrialKind

_FILES = ("dag", "file", "archive")
_ASKED = OpenApiResponse(shapes.TrialSerializer, "It is tried soon; `url` tells how it goes.")
_REFUSED = refusals(400, 403, 409, 413, 429)


class TrialList(ListView):
    """Your trials, latest first; shifters and above see everybody's."""

    queryset = Trial.objects.none()
    serializer_class = shapes.TrialSerializer
    filterset_class = TrialFilter

    def get_queryset(self) -> QuerySet[Trial]:
        """Return the trials that the caller may see."""
        return visible_trials(caller(self.request))


class _NewTrial(TakesFiles):
    """Base of the endpoints that ask for a trial."""

    def ask(self, request: Request, wanted: TrialRequest, texts: tuple[str, ...]) -> Response:
        """Store the files of the request for the trial that is wanted, which has none yet."""
        user = caller(request)
        check_parts(request, files=_FILES, texts=texts)
        sent = request._request
        with heavy_place(user):
            submission = submission_of(
                SubmissionParts(
                    dags=uploads(sent, "dag"),
                    named_dags=request.POST.getlist("dag"),
                    files=uploads(sent, "file"),
                    archives=uploads(sent, "archive"),
                    origin=sent_origin(request),
                )
            )
            trial = services.request_trial(
                wanted.of_submission(submission), owner=user, actor=Actor.person(user)
            )
        body = shapes.TrialSerializer(trial, context={"request": request}).data
        headers = {"Location": body["url"]}
        return Response(body, status=status.HTTP_202_ACCEPTED, headers=headers)


def _read_first(request: Request) -> None:
    """Read the body of somebody who may try DAGs, so that a slow sender occupies no place."""
    require_role(Actor.person(caller(request)), Role.USER, "try DAGs")
    _ = request.data


class CheckTrial(_NewTrial):
    """Check DAG files by a worker."""

    @once()
    @extend_schema(
        operation_id="trials_check",
        summary="Check a DAG as the command check_dag does",
        request={"multipart/form-data": shapes.CheckTrialSerializer},
        responses={202: _ASKED, **_REFUSED},
    )
    def post(self, request: Request) -> Response:
        """A trial whose report has all faults, warnings, and the DAG's shape."""
        _read_first(request)
        wanted = TrialRequest(
            TrialKind.CHECK,
            (),
            {},
            allows_missing=sent_truth(request, "allow_missing"),
            is_for_dagman=sent_truth(request, "dagman"),
        )
        return self.ask(request, wanted, ("dag", "allow_missing", "dagman", *ORIGIN_FIELDS))


class DryRunTrial(_NewTrial):
    """Try DAG files by a worker, without running anything."""

    @once()
    @extend_schema(
        operation_id="trials_dry_run",
        summary="Try a DAG as the command simulate_dag does",
        request={"multipart/form-data": shapes.DryRunTrialSerializer},
        responses={202: _ASKED, **_REFUSED},
    )
    def post(self, request: Request) -> Response:
        """A trial whose report has how the DAG would end, when, and what would never run."""
        _read_first(request)
        behaviour = _behaviour(request)
        wanted = TrialRequest(TrialKind.DRY_RUN, (), {}, behaviour=behaviour)
        return self.ask(request, wanted, ("dag", "behaviour", *ORIGIN_FIELDS))


def _behaviour(request: Request) -> dict[str, Any]:
    text = request.POST.get("behaviour", "")
    try:
        return read_options(text)
    except InvalidInput as error:
        faults = [
            replace(each, field=each.field.replace("options", "behaviour", 1))
            for each in error.findings
        ]
        raise InvalidInput(faults) from None


class TrialDetail(APIView):
    """One trial."""

    @extend_schema(responses={200: shapes.TrialDetailSerializer, **refusals(404)})
    def get(self, request: Request, trial_id: int) -> Response:
        """Its progress, and its report when it is done."""
        trial = find_trial(caller(request), trial_id)
        context = {"request": request}
        return Response(shapes.TrialDetailSerializer(trial, context=context).data)


class StopTrial(APIView):
    """Stop a trial."""

    @extend_schema(
        summary="Stop a trial; its files are removed",
        request=None,
        parameters=[WHY],
        responses={200: shapes.TrialSerializer, **refusals(403, 404, 409)},
    )
    def post(self, request: Request, trial_id: int) -> Response:
        """Stop it; one that was stopped before stays so."""
        stopped = services.stop_trial(
            trial_id, actor=Actor.person(caller(request)), reason=why_of(request)
        )
        return Response(shapes.TrialSerializer(stopped, context={"request": request}).data)
