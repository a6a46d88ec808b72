"""Serializers of history: bins and series of round-robin archives, panes and their values."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class BinSerializer(serializers.Serializer[Any]):
    """One bin of a series."""

    start = serializers.DateTimeField()
    min = serializers.FloatField(source="minimum")
    avg = serializers.FloatField(source="average")
    max = serializers.FloatField(source="maximum")
    last = serializers.FloatField()
    sum = serializers.FloatField(source="total")
    count = serializers.IntegerField(source="samples")


class SeriesSerializer(serializers.Serializer[Any]):
    """One series and its bins; a gap in time is a bin that is not there."""

    name = serializers.CharField()
    bins = BinSerializer(many=True)


class HistorySerializer(serializers.Serializer[Any]):
    """Content of the round-robin archives."""

    archive = serializers.CharField()
    series = SeriesSerializer(many=True)


class PaneSerializer(serializers.Serializer[Any]):
    """One pane: what it draws, in which unit; `kind` is level, count, ratio or spread."""

    name = serializers.CharField()
    title = serializers.CharField()
    unit = serializers.CharField()
    kind = serializers.CharField()
    has_sites = serializers.BooleanField(help_text="Whether it can be asked for one site.")
    has_frontends = serializers.BooleanField(help_text="Whether it can be asked for one frontend.")
    groupings = serializers.ListField(
        child=serializers.CharField(), help_text="What it can be grouped by."
    )
    series = serializers.ListField(child=serializers.CharField())


class PaneLineSerializer(serializers.Serializer[Any]):
    """A line of a pane, with a value for each bin, null for a gap.

    Of a level `avg`, `min`, `max` and `last`, of a count `sum`, of a spread `value`, of a
    ratio `share` in per cent. Of a level in groups `avg` alone.
    """

    name = serializers.CharField()
    label = serializers.CharField()
    is_rest = serializers.BooleanField(help_text="Of a grouping, all others together.")
    series = serializers.CharField(help_text="Empty for what is of no series.")
    avg = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)
    min = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)
    max = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)
    last = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)
    sum = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)
    value = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)
    share = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)


class PaneDataSerializer(serializers.Serializer[Any]):
    """The figures of a pane in a window of time."""

    pane = serializers.CharField()
    title = serializers.CharField()
    unit = serializers.CharField()
    kind = serializers.CharField()
    site = serializers.CharField(help_text="Empty for all.")
    frontend = serializers.CharField(help_text="Empty for all.")
    group_by = serializers.CharField(help_text="Empty where it is not grouped.")
    to = serializers.DateTimeField()
    archive = serializers.CharField()
    bin_s = serializers.IntegerField()
    start = serializers.ListField(child=serializers.DateTimeField())
    lines = PaneLineSerializer(many=True)

    def get_fields(self) -> dict[str, Any]:
        """Return the fields with one whose name is a word of the language."""
        return {"from": serializers.DateTimeField(), **super().get_fields()}
