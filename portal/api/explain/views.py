"""Endpoint that explains why something does not run, with what-if changes."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.explain.shapes import (
    DagAnswerSerializer,
    JobAnswerSerializer,
    QuestionSerializer,
    SiteAnswerSerializer,
)
from wms.core.models import User
from wms.explain import answers as explaining
from wms.explain.ad_changes import WhatIfChanges


class Explain(APIView):
    """Why a DAG, job, TaskQueue, site or ad does not match."""

    @extend_schema(
        operation_id="explain",
        summary="Why it does not run, and what if",
        request=QuestionSerializer,
        examples=[
            OpenApiExample("Why has this DAG no site?", {"dag": 4127}, request_only=True),
            OpenApiExample(
                "What if it asked for less?",
                {"dag": 4127, "changes": {"dag": {"RequestMemory": "2048"}}},
                request_only=True,
            ),
        ],
        responses={
            200: PolymorphicProxySerializer(
                component_name="Answer",
                serializers={
                    "dag": DagAnswerSerializer,
                    "job": JobAnswerSerializer,
                    "site": SiteAnswerSerializer,
                },
                resource_type_field_name="about",
            ),
            **refusals(400, 404, 429),
        },
    )
    def post(self, request: Request) -> Response:
        """Explain by the code that decides; nothing is written."""
        question = QuestionSerializer(data=request.data)
        question.is_valid(raise_exception=True)
        return Response(_answer(caller(request), question.validated_data))


def _answer(user: User, question: dict[str, Any]) -> Any:
    now = timezone.now()
    changes = WhatIfChanges(**question.get("changes", {}))
    if "job" in question:
        found = explaining.answer_for_job(user, question["job"], now=now, changes=changes)
        return JobAnswerSerializer(found).data
    if "task_queue" in question:
        found = explaining.answer_for_task_queue(
            user, question["task_queue"], now=now, changes=changes
        )
        return JobAnswerSerializer(found).data
    if "site" in question:
        site = explaining.answer_for_site(user, question["site"], now=now, changes=changes)
        return SiteAnswerSerializer(site).data
    if "ad" in question:
        dag = explaining.answer_for_ad(user, question["ad"], now=now, changes=changes)
    else:
        dag = explaining.answer_for_dag(user, question["dag"], now=now, changes=changes)
    return DagAnswerSerializer(dag).data
