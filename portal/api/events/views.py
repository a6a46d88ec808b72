"""Endpoint of the stream of events: what happened after a cursor, waited for if need be."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.events.shapes import EventBatchSerializer, FollowSerializer
from portal.api.events.waiting import AGAIN_S, WAITING_ROOM
from wms.core.models import User
from wms.notices.stream.cursors import place_of
from wms.notices.stream.reading import KINDS, Batch, Wanted, begin, find_all, read


class EventStream(APIView):
    """Events of all that you may see, of one object, or by label."""

    @extend_schema(
        operation_id="events_follow",
        summary="Follow the events",
        parameters=[FollowSerializer],
        responses={200: EventBatchSerializer, **refusals(404)},
    )
    def get(self, request: Request) -> Response:
        """Nothing is missed or told twice, whatever commits late.

        Ask for a cursor first, then read the objects as they are, then follow.
        """
        user, given = caller(request), _asked(request)
        if not given["after"]:
            batch, could_wait = Batch([], begin(timezone.now())), True
        else:
            batch, could_wait = _followed(user, given)
        told = {
            "events": batch.events,
            "cursor": batch.place.text(),
            "again_s": 0 if could_wait else AGAIN_S,
        }
        return Response(EventBatchSerializer(told).data, headers={"Cache-Control": "no-store"})


def _asked(request: Request) -> dict[str, Any]:
    query = request.query_params
    data: dict[str, Any] = query.dict()
    for name in query.keys() & {"kind", *KINDS}:
        data[name] = [word for text in query.getlist(name) for word in text.split(",")]
    asked = FollowSerializer(data=data)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)


def _followed(user: User, given: dict[str, Any]) -> tuple[Batch, bool]:
    objects = {kind: given[kind] for kind in KINDS if kind in given}
    wanted = Wanted(frozenset(given.get("kind") or KINDS), objects, given.get("label", ""))
    find_all(user, wanted)
    place = place_of(given["after"], timezone.now())

    def look() -> Batch:
        nonlocal place
        batch = read(user, wanted, place, timezone.now(), most=given["limit"])
        place = batch.place
        return batch

    return WAITING_ROOM.wait_for(look, lambda batch: bool(batch.events), wait_s=given["wait"])
