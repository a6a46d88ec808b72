"""Serializers of running limits (of jobs) and of shared limits (of nodes of several DAGs).

Also fields of a site, a user or an accounting group by name.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes import StrictSerializer
from wms.accounting.models import AccountingGroup
from wms.core.models import User
from wms.dags.models import SharedLimit
from wms.jobs.models import RunningLimit
from wms.sites.models import Site


class SiteField(serializers.SlugRelatedField[Site]):
    """A site by its name."""

    def to_internal_value(self, data: Any) -> Site:
        """The site. No name has a null character, with which PostgreSQL cannot compare."""
        site: Site = super().to_internal_value(str(data).replace("\0", "?"))
        return site


class OwnerField(serializers.SlugRelatedField[User]):
    """A user by name."""

    def to_internal_value(self, data: Any) -> User:
        """The user. No name has a null character, with which PostgreSQL cannot compare."""
        user: User = super().to_internal_value(str(data).replace("\0", "?"))
        return user


class GroupField(serializers.SlugRelatedField[AccountingGroup]):
    """An accounting group by name."""

    def to_internal_value(self, data: Any) -> AccountingGroup:
        """The group. No name has a null character, with which PostgreSQL cannot compare."""
        group: AccountingGroup = super().to_internal_value(str(data).replace("\0", "?"))
        return group


class RunningLimitSerializer(StrictSerializer, serializers.ModelSerializer[RunningLimit]):
    """Limit on jobs of a kind that run at once, and the shortest interval between their starts.

    Without a site, job type or group it is for any of them.
    """

    site = SiteField(
        "name", queryset=Site.objects.all(), allow_null=True, required=False, default=None
    )
    job_type = serializers.CharField(max_length=64, allow_blank=True, required=False, default="")
    owner_group = serializers.CharField(max_length=64, allow_blank=True, required=False, default="")
    maximum = serializers.IntegerField(
        min_value=0, max_value=2**31 - 1, allow_null=True, required=False, default=None
    )
    min_interval_s = serializers.FloatField(
        min_value=0, max_value=86_400, allow_null=True, required=False, default=None
    )
    note = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    running = serializers.IntegerField(
        read_only=True, help_text="Jobs of the kind that have a pilot now."
    )

    class Meta:
        model = RunningLimit
        fields = [
            "id", "site", "job_type", "owner_group", "maximum", "min_interval_s", "note",
            "running", "last_match_at",
        ]  # fmt: skip
        read_only_fields = ["last_match_at"]
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []


class SharedLimitSerializer(StrictSerializer, serializers.ModelSerializer[SharedLimit]):
    """Limit on nodes submitted at once over all DAGs of a user, at a site, or both.

    With a category it counts the nodes of that category only.
    """

    owner = OwnerField(
        "username", queryset=User.objects.all(), allow_null=True, required=False, default=None
    )
    site = SiteField(
        "name", queryset=Site.objects.all(), allow_null=True, required=False, default=None
    )
    category = serializers.CharField(max_length=255, allow_blank=True, required=False, default="")
    max_jobs = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    note = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    submitted = serializers.IntegerField(
        read_only=True, help_text="Nodes that are submitted now, of those that it counts."
    )

    class Meta:
        model = SharedLimit
        fields = ["id", "owner", "site", "category", "max_jobs", "note", "submitted"]
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []
