"""What the API answers of the round-robin archives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class BinSerializer(serializers.Serializer[Any]):
    """One bin of a series."""

    start = serializers.DateTimeField()
    min = serializers.FloatField(source="minimum")
    avg = serializers.FloatField(source="average")
    max = serializers.FloatField(source="maximum")
    count = serializers.IntegerField()


class SeriesSerializer(serializers.Serializer[Any]):
    """One series and its bins; a gap in time is a bin that is not there."""

    name = serializers.CharField()
    bins = BinSerializer(many=True)


class HistorySerializer(serializers.Serializer[Any]):
    """What the round-robin archives hold."""

    archive = serializers.CharField()
    series = SeriesSerializer(many=True)
