"""Serializers of sites: queues, ad, advertisement, throttle, events, downtimes.

Also of whether a site takes new DAGs, worker nodes under suspicion, and failed node checks.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.pilots.shapes import NodeCheckSerializer
from portal.api.shapes import EVENT_FIELDS, EventSerializer, InstantField, StrictSerializer
from wms.pilots.models import PilotCheck
from wms.pilots.suspect_models import SuspectedNode
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.selectors import DowntimeState
from wms.sites.downtimes.services import MAX_SITES
from wms.sites.models import Advertisement, Queue, Site, SiteAd, SiteEvent, SiteThrottle
from wms.sites.standing import Standing


class QueueSerializer(serializers.ModelSerializer[Queue]):
    """A queue of a site. Its element's settings are shown in the administration only."""

    tags = serializers.ListField(child=serializers.CharField(), read_only=True)
    required_tags = serializers.ListField(child=serializers.CharField(), read_only=True)
    owner = serializers.CharField(
        source="owner.username", default=None, read_only=True, allow_null=True,
        help_text="Whose jobs alone are taken: private pilots.",
    )  # fmt: skip
    owner_group = serializers.CharField(
        source="owner_group.name", default=None, read_only=True, allow_null=True
    )
    effective_fence = serializers.CharField(
        read_only=True, help_text="What `fence` means here; empty until a pilot has settled `auto`."
    )

    class Meta:
        model = Queue
        fields = [
            "name", "element", "is_enabled", "max_pilots", "max_queued_pilots", "cores",
            "memory_mb", "gpus", "wall_time_s", "cpu_power", "platform", "tags", "required_tags",
            "setup", "submit_pool", "is_private", "owner", "owner_group", "fence",
            "effective_fence", "network", "http_proxy", "hold_after_failure_s", "attenuation",
            "max_idle_pilots", "curb_idle_pilots", "max_held_pilots", "max_submits", "batch_size",
            "max_removals", "removal_margin", "removal_wait_s", "queued_lifetime_s",
        ]  # fmt: skip


class SiteAdSerializer(serializers.ModelSerializer[SiteAd]):
    """The ad under which a site was last published."""

    class Meta:
        model = SiteAd
        fields = ["text", "sequence", "cur_matches", "published_at", "expires_at"]


class AdvertisementSerializer(serializers.ModelSerializer[Advertisement]):
    """Latest advertisement of a site; its attributes are in the merged ad."""

    name = serializers.CharField(source="site.name", read_only=True)

    class Meta:
        model = Advertisement
        fields = [
            "name", "sequence", "lifetime_s", "received_at", "expires_at", "advertised_by",
            "invalidated_at",
        ]  # fmt: skip


class ThrottleSerializer(serializers.ModelSerializer[SiteThrottle]):
    """Number of new matches that failures leave the site, in periods of ten minutes."""

    class Meta:
        model = SiteThrottle
        fields = ["allowance", "matched", "failures", "successes", "judged_until"]


class StandingSerializer(serializers.Serializer[Standing]):
    """Whether the site takes new DAGs now."""

    kind = serializers.CharField(
        help_text="Empty when it does; else disabled, no queue, banned, draining, downtime, "
        "expired or throttled."
    )
    reason = serializers.CharField(help_text="Why not; goes on after: the site is ...")
    allowance = serializers.FloatField(
        allow_null=True, help_text="New matches that its failures leave it now; null: no bound."
    )


class SiteSerializer(serializers.ModelSerializer[Site]):
    """A site with its queues, and whether it takes DAGs."""

    queues = QueueSerializer(many=True, read_only=True)
    standing = serializers.SerializerMethodField()
    advertisement = AdvertisementSerializer(read_only=True, default=None, allow_null=True)
    throttle = ThrottleSerializer(read_only=True, default=None, allow_null=True)

    class Meta:
        model = Site
        fields = [
            "name", "is_enabled", "state", "state_since", "state_reason", "state_by", "standing",
            "max_matches", "matches_unit", "group_size", "failure_threshold", "throttle",
            "advertisement", "queues",
        ]  # fmt: skip

    @extend_schema_field(StandingSerializer)
    def get_standing(self, site: Site) -> dict[str, Any]:
        """The view found out the standings of all sites."""
        return StandingSerializer(self.context["view"].standings[site.pk]).data


class SiteDetailSerializer(SiteSerializer):
    """A site with its expressions and its ad."""

    ad = SiteAdSerializer(read_only=True, default=None, allow_null=True)

    class Meta(SiteSerializer.Meta):
        fields = [
            *SiteSerializer.Meta.fields, "requirements", "rank", "environment", "attributes", "ad",
        ]  # fmt: skip


class AdAttributeSerializer(serializers.Serializer[Any]):
    """An attribute of a site's ad, and where it comes from."""

    name = serializers.CharField()
    expression = serializers.CharField()
    source = serializers.ChoiceField(["configured", "advertised", "both", "computed"])


class MergedAdSerializer(serializers.Serializer[Any]):
    """A site's ad as its configuration and its advertisement make it now."""

    name = serializers.CharField()
    advertisement = AdvertisementSerializer(allow_null=True)
    attributes = AdAttributeSerializer(many=True)


class SuspectedNodeSerializer(serializers.ModelSerializer[SuspectedNode]):
    """A worker node that fails what others of its site do well."""

    site = serializers.CharField(source="site.name", read_only=True)
    failed_jobs = serializers.ListField(
        child=serializers.IntegerField(), read_only=True,
        help_text="The latest jobs that failed there.",
    )  # fmt: skip

    class Meta:
        model = SuspectedNode
        fields = [
            "id", "site", "host", "since", "failed", "tried", "others_failed", "others_tried",
            "failed_jobs", "reason", "next_trial_at", "ended_at", "ended_by", "end_reason",
        ]  # fmt: skip


class DowntimeSerializer(serializers.ModelSerializer[Downtime]):
    """A downtime of a site."""

    site = serializers.CharField(source="site.name", read_only=True)
    state = serializers.ChoiceField(DowntimeState.choices, read_only=True)

    class Meta:
        model = Downtime
        fields = [
            "id", "site", "state", "start", "end", "lead_time_s", "reason", "author", "created_at",
            "cancelled_at", "cancelled_by", "cancel_reason", "source", "uid",
        ]  # fmt: skip


class DowntimeTermsSerializer(StrictSerializer):
    """Period in which a site gets nothing new, and its reason."""

    start = InstantField()
    end = InstantField()
    lead_time_s = serializers.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1,
        help_text="So long before the start the site takes no new DAG, in seconds.",
    )  # fmt: skip
    reason = serializers.CharField()


class DowntimeOfSitesSerializer(DowntimeTermsSerializer):
    """The same at several sites."""

    sites = serializers.ListField(child=serializers.CharField(), max_length=MAX_SITES)


class SiteEventSerializer(EventSerializer):
    """One change of a site."""

    class Meta:
        model = SiteEvent
        fields = EVENT_FIELDS


class FailedCheckSerializer(NodeCheckSerializer):
    """A check that a node of a site failed, with the pilot that found it."""

    pilot = serializers.UUIDField(source="pilot.uuid", read_only=True)
    queue = serializers.CharField(source="pilot.queue.name", read_only=True)
    host = serializers.SerializerMethodField(help_text="Empty where the pilot did not tell.")

    class Meta(NodeCheckSerializer.Meta):
        fields = [*NodeCheckSerializer.Meta.fields, "pilot", "queue", "host"]

    def get_host(self, check: PilotCheck) -> str:
        """Name the node."""
        return str(check.pilot.node.get("hostname", ""))
