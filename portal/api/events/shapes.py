"""Serializers of the stream of events: one event, a batch of them, and what is asked for."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes import StrictSerializer
from wms.core.labels import MAX_LABEL_LENGTH
from wms.notices.stream.reading import KINDS, MOST, StreamedEvent

LONGEST_WAIT_S = 30
#: Objects of a kind that one question may name.
MOST_OBJECTS = 100
_MAX_ID = 2**63 - 1


class _Number(serializers.IntegerField):
    """Number of an object."""

    def __init__(self, **more: Any) -> None:
        super().__init__(min_value=1, max_value=_MAX_ID, **more)


def _several(child: serializers.Field[Any, Any, Any, Any], what: str) -> serializers.ListField:
    return serializers.ListField(
        child=child, required=False, max_length=MOST_OBJECTS,
        help_text=f"Of these {what}.",
    )  # fmt: skip


class StreamedEventSerializer(serializers.Serializer[StreamedEvent]):
    """One event of an object."""

    id = serializers.IntegerField(help_text="Its number among those of its kind.")
    kind = serializers.ChoiceField(KINDS)
    object = serializers.CharField(help_text="Its number; of a pilot its UUID, of a site its name.")
    name = serializers.CharField(allow_blank=True, help_text="Of a node its name, else empty.")
    event = serializers.CharField()
    from_state = serializers.CharField(allow_blank=True)
    to_state = serializers.CharField(allow_blank=True)
    actor = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class EventBatchSerializer(serializers.Serializer[Any]):
    """The next events, and from where to go on."""

    events = StreamedEventSerializer(many=True)
    cursor = serializers.CharField(help_text="The next `after`; it is good for an hour.")
    again_s = serializers.IntegerField(
        help_text="Seconds after which to ask again: 0 at once, more where nobody else can be let "
        "wait at the server now."
    )


class FollowSerializer(StrictSerializer):
    """Query of the stream of events."""

    after = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=20_000,
        help_text="The `cursor` of the answer before. Without one the answer is a cursor alone, "
        "behind all that has happened.",
    )  # fmt: skip
    wait = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=LONGEST_WAIT_S,
        help_text="Seconds to wait for an event, if there is none.",
    )  # fmt: skip
    limit = serializers.IntegerField(
        required=False, default=MOST, min_value=1, max_value=MOST, help_text="Events at most."
    )
    kind = serializers.MultipleChoiceField(
        choices=[(kind, kind) for kind in KINDS],
        required=False,
        help_text="Of these kinds only; those of nodes are told with `dag`.",
    )
    dag = _several(_Number(), "DAGs, their nodes and their jobs")
    node = _several(_Number(), "nodes of the named DAGs, which then are told alone")
    cluster = _several(_Number(), "clusters and their jobs")
    job = _several(_Number(), "jobs")
    pilot = _several(serializers.UUIDField(), "pilots")
    placement = _several(_Number(), "placement requests")
    schedule = _several(_Number(), "schedules")
    site = _several(serializers.CharField(max_length=255), "sites")
    label = serializers.CharField(
        required=False, max_length=MAX_LABEL_LENGTH, help_text="Of DAGs and clusters with it."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse nodes without their DAGs."""
        if "dag" not in attrs and ("node" in attrs or "node" in attrs.get("kind", ())):
            raise serializers.ValidationError({"dag": "Of nodes those of named DAGs are told."})
        return attrs
