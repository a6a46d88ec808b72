"""Endpoints of TaskQueues (list, detail) and of the TaskQueue policy (read, change)."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from portal.api.base import ListView, caller, refusals
from portal.api.pagination import NewestFirst
from portal.api.task_queues.shapes import (
    TaskQueueDetailSerializer,
    TaskQueuePolicySerializer,
    TaskQueueSerializer,
)
from portal.lists.filters import TaskQueueFilter
from wms.core.actors import Actor
from wms.explain.answers import answer_for_demand
from wms.taskqueues import listing
from wms.taskqueues.listing import Border, Order, TaskQueueLine
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.task_queue_policy import save_policy, task_queue_policy


class _InOrder(NewestFirst):
    """TaskQueues as they were asked for; what is counted changes, so it goes forward only."""

    def paginate_queryset(
        self, queryset: QuerySet[TaskQueue], request: Request, view: Any = None
    ) -> list[TaskQueueLine]:
        """Return the page at which the cursor points."""
        order = Order(request.query_params.get("sort") or Order.WAITING)
        text = request.query_params.get(self.cursor_query_param, "")
        after = Border.parse(text, order) if text else None
        if text and after is None:
            raise ValidationError({"cursor": "is not a cursor of this list"})
        size = self.get_page_size(request)
        found = listing.task_queue_page(queryset, order=order, after=after, limit=size)
        self._address, self._following = request.build_absolute_uri(), found.following
        return list(found.lines)

    def get_next_link(self) -> str | None:
        """Return the address of the next page."""
        if self._following is None:
            return None
        link: str = replace_query_param(
            self._address, self.cursor_query_param, str(self._following)
        )
        return link

    def get_previous_link(self) -> str | None:
        """Return nothing."""
        return None


class TaskQueueList(ListView):
    """TaskQueues with waiting jobs, most waiting jobs first unless `sort` tells otherwise."""

    queryset = TaskQueue.objects.none()
    serializer_class = TaskQueueSerializer
    filterset_class = TaskQueueFilter
    pagination_class = _InOrder

    def get_queryset(self) -> QuerySet[TaskQueue]:
        """Everything that the caller may see."""
        return listing.visible_task_queues(caller(self.request))


class TaskQueueDetail(APIView):
    """One TaskQueue."""

    @extend_schema(
        operation_id="task_queues_retrieve",
        summary="One TaskQueue, its jobs, and where they can run",
        responses={200: TaskQueueDetailSerializer, **refusals(404)},
    )
    def get(self, request: Request, task_queue_id: int) -> Response:
        """TaskQueue with all of its fields."""
        user = caller(request)
        detail = listing.find_task_queue_detail(user, task_queue_id)
        line = detail.line
        answer = answer_for_demand(line.needs, line.waiting_jobs, now=timezone.now())
        fields = {name: getattr(line, name) for name in TaskQueueSerializer().fields}
        return Response(
            TaskQueueDetailSerializer(
                {
                    **fields,
                    "origin": detail.origin,
                    "priorities": detail.priorities,
                    "oldest": detail.oldest,
                    "verdict": answer.verdict.value,
                    "summary": answer.summary,
                    "unknown": answer.queues.unknown if answer.queues else (),
                    "queues": answer.queues.queues if answer.queues else (),
                }
            ).data
        )


class Policy(APIView):
    """Policy of all TaskQueues."""

    @extend_schema(
        operation_id="task_queue_policy_retrieve",
        summary="What holds for all TaskQueues",
        responses={200: TaskQueuePolicySerializer},
    )
    def get(self, request: Request) -> Response:
        """Answer with the policy in force."""
        return Response(TaskQueuePolicySerializer(task_queue_policy()).data)

    @extend_schema(
        operation_id="task_queue_policy_update",
        summary="Set what holds for all TaskQueues",
        request=TaskQueuePolicySerializer,
        responses={200: TaskQueuePolicySerializer, **refusals(400, 403)},
    )
    def put(self, request: Request) -> Response:
        """Set all of it. Jobs that wait already stay in the TaskQueues of the old segments."""
        policy = task_queue_policy()
        body = TaskQueuePolicySerializer(policy, data=request.data)
        body.is_valid(raise_exception=True)
        for name, value in body.validated_data.items():
            setattr(policy, name, value)
        save_policy(policy, actor=Actor.person(caller(request)))
        return Response(TaskQueuePolicySerializer(policy).data)
