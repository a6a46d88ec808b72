"""Endpoints of notices (list, mark as read) and of subscriptions (list, add, remove)."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.idempotency import once
from portal.api.notices.shapes import (
    MarkedSerializer,
    MarkReadSerializer,
    NoticeSerializer,
    SubscribeSerializer,
    SubscriptionSerializer,
)
from wms.core.actors import Actor
from wms.notices.models import Notice, Subscription
from wms.notices.selectors import own_notices, own_subscriptions
from wms.notices.services import mark_read, subscribe, unsubscribe

_TRUTH = {"true": True, "false": False}


@extend_schema(
    parameters=[
        OpenApiParameter("unread", bool, description="Only unread ones, or only those read.")
    ],
    responses={200: NoticeSerializer(many=True), **refusals(400)},
)
class NoticeList(ListAPIView[Notice]):
    """Your notices, latest first."""

    queryset = Notice.objects.none()
    serializer_class = NoticeSerializer
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Notice]:
        """Return the caller's own, of which the latest 500 are kept."""
        notices = own_notices(caller(self.request))
        text = self.request.query_params.get("unread")
        if text is None:
            return notices
        if text not in _TRUTH:
            raise ValidationError({"unread": "must be true or false"})
        return notices.filter(read_at__isnull=_TRUTH[text])


class MarkNoticesRead(APIView):
    """Marking notices as read."""

    @extend_schema(
        summary="Mark notices as read",
        request=MarkReadSerializer,
        responses={200: MarkedSerializer, **refusals(400)},
    )
    def post(self, request: Request) -> Response:
        """Mark those of the ids, or all; others' are left alone without a word."""
        body = MarkReadSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        marked = mark_read(
            body.validated_data.get("notices"),
            actor=Actor.person(caller(request)),
            now=timezone.now(),
        )
        return Response({"marked": marked})


class SubscriptionList(ListAPIView[Subscription]):
    """Subscriptions of the caller."""

    queryset = Subscription.objects.none()
    serializer_class = SubscriptionSerializer
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Subscription]:
        """Return the caller's own."""
        return own_subscriptions(caller(self.request))

    @once()
    @extend_schema(
        summary="Subscribe",
        request=SubscribeSerializer,
        responses={201: SubscriptionSerializer, **refusals(400, 403, 404, 429)},
    )
    def post(self, request: Request) -> Response:
        """Hear of something from now on; one that there is already stays as it is."""
        body = SubscribeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given: dict[str, Any] = body.validated_data
        made = subscribe(
            given["rule"],
            dag_id=given.get("dag"),
            site=given["site"],
            actor=Actor.person(caller(request)),
        )
        return Response(SubscriptionSerializer(made).data, status=status.HTTP_201_CREATED)


class SubscriptionDetail(APIView):
    """One subscription."""

    @extend_schema(summary="Unsubscribe", responses={204: None, **refusals(404)})
    def delete(self, request: Request, subscription_id: int) -> Response:
        """Hear of it no more."""
        unsubscribe(subscription_id, actor=Actor.person(caller(request)))
        return Response(status=status.HTTP_204_NO_CONTENT)
