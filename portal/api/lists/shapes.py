"""Serializers of saved filters (shown, to be saved, to be changed); field of filter parameters."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.shapes import StrictSerializer
from portal.personal.models import SavedFilter


class ParametersField(serializers.DictField):
    """Values as texts by the name of a filter, as they stand in an address."""

    child = serializers.ListField(child=serializers.CharField())


class SavedFilterSerializer(serializers.ModelSerializer[SavedFilter]):
    """A saved filter."""

    list = serializers.CharField(source="list_name", read_only=True)
    owner = serializers.CharField(source="owner.username", read_only=True)
    parameters = ParametersField(read_only=True)

    class Meta:
        model = SavedFilter
        fields = ["id", "list", "name", "owner", "is_shared", "parameters", "created_at"]


class SaveFilterSerializer(StrictSerializer):
    """A filter to be saved."""

    list = serializers.CharField(help_text="dags, jobs, pilots, sites, task-queues, placements.")
    name = serializers.CharField(max_length=80)
    parameters = ParametersField()
    is_shared = serializers.BooleanField(default=False, help_text="Everybody sees it.")


class FilterChangeSerializer(StrictSerializer):
    """Changes of a saved filter."""

    name = serializers.CharField(max_length=80, required=False)
    is_shared = serializers.BooleanField(required=False)
