"""Endpoints of campaigns: list, one with its forecast, its deadline; and the sums by label."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.campaigns import shapes
from wms.campaigns.label_sums import label_sums
from wms.campaigns.selectors import campaigns, find_campaign
from wms.campaigns.services import set_deadline
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.labels import MAX_LABEL_LENGTH, label_of_campaign

_CAMPAIGN = OpenApiParameter(
    "campaign",
    {"type": "string", "pattern": f"^[^\\s,]{{1,{MAX_LABEL_LENGTH}}}$"},
    OpenApiParameter.PATH,
    description="What stands behind `campaign=` in the label.",
)


class LabelList(APIView):
    """Sums by label."""

    @extend_schema(
        operation_id="labels_list",
        parameters=[
            OpenApiParameter("begins", str, description="Labels that begin so, such as campaign=.")
        ],
        responses={200: shapes.LabelSumSerializer(many=True), **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Labels by name, with DAGs, nodes, jobs and core-hours; of very many the latest 200."""
        begins = request.query_params.get("begins", "")
        if len(begins) > MAX_LABEL_LENGTH:
            message = f"at most {MAX_LABEL_LENGTH} characters"
            raise InvalidInput.of(message, field="begins")
        sums = label_sums(caller(request), prefix=begins)
        return Response(shapes.LabelSumSerializer(sums, many=True).data)


class CampaignList(APIView):
    """Campaigns."""

    @extend_schema(
        operation_id="campaigns_list",
        responses={200: shapes.CampaignLineSerializer(many=True)},
    )
    def get(self, request: Request) -> Response:
        """Campaigns that you may see something of, by name; of very many the latest 200."""
        user = caller(request)
        found = campaigns(user, label_sums(user, prefix=label_of_campaign("")))
        return Response(shapes.CampaignLineSerializer(found, many=True).data)


class CampaignDetail(APIView):
    """One campaign."""

    @extend_schema(
        operation_id="campaigns_retrieve",
        parameters=[_CAMPAIGN],
        responses={200: shapes.CampaignSerializer, **refusals(404)},
    )
    def get(self, request: Request, campaign: str) -> Response:
        """Progress, forecast, deadline, cost and causes of failures."""
        found = find_campaign(caller(request), campaign, now=timezone.now())
        return Response(shapes.CampaignSerializer(found).data)


class CampaignDeadlineView(APIView):
    """The deadline of a campaign."""

    @extend_schema(
        operation_id="campaigns_deadline",
        parameters=[_CAMPAIGN],
        summary="Set the deadline of a campaign",
        request=shapes.DeadlineSerializer,
        responses={200: shapes.CampaignSerializer, **refusals(400, 403, 404)},
    )
    def post(self, request: Request, campaign: str) -> Response:
        """Set it, or take it away; needs a reason. It stops nothing."""
        body = shapes.DeadlineSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller(request)
        set_deadline(
            campaign,
            deadline=body.validated_data["deadline"],
            actor=Actor.person(user),
            reason=body.validated_data["reason"],
        )
        found = find_campaign(user, campaign, now=timezone.now())
        return Response(shapes.CampaignSerializer(found).data)
