"""Serializers of notices, of marking them as read, and of subscriptions."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes import StrictSerializer
from wms.core.conf import conf
from wms.notices.messages import path_of
from wms.notices.models import Notice, Rule, Subscription


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    """One thing that you were told."""

    url = serializers.SerializerMethodField(help_text="Where the object is looked at.")

    class Meta:
        model = Notice
        fields = [
            "id", "kind", "title", "text", "count", "subject_kind", "subject_id", "url",
            "happened_at", "read_at",
        ]  # fmt: skip

    def get_url(self, notice: Notice) -> str:
        """Return the address of the object's page."""
        return conf().public_url + path_of(notice.subject_kind, notice.subject_id)


class MarkReadSerializer(StrictSerializer):
    """Notices to mark: these ids, or all."""

    notices = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        max_length=1000,
        required=False,
        help_text="Ids; left out: all of yours.",
    )


class MarkedSerializer(serializers.Serializer[Any]):
    """Number of notices that were unread until now."""

    marked = serializers.IntegerField()


class SubscriptionSerializer(serializers.ModelSerializer[Subscription]):
    """One thing that you want to hear of."""

    site = serializers.SlugRelatedField(
        "name", read_only=True, allow_null=True, help_text="Null: all sites."
    )

    class Meta:
        model = Subscription
        fields = ["id", "rule", "dag", "site", "created_at"]
        read_only_fields = fields


class SubscribeSerializer(StrictSerializer):
    """Subscription of the caller."""

    rule = serializers.ChoiceField(choices=Rule.choices)
    dag = serializers.IntegerField(
        min_value=1, max_value=2**63 - 1, required=False, help_text="For the rule dag: which."
    )
    site = serializers.CharField(
        max_length=64, required=False, default="", allow_blank=True,
        help_text="For the rule site: which; empty: all of them.",
    )  # fmt: skip
