"""Serializers of uploads that resume: what begins one, how far it is."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes import StrictSerializer
from wms.jobs.models import ResumableUpload


class NewUploadSerializer(StrictSerializer, serializers.Serializer[Any]):
    """A file that is to be uploaded."""

    sha256 = serializers.RegexField(
        "^[0-9a-fA-F]{64}$", help_text="SHA-256 of the whole content, in hexadecimal digits."
    )
    size_bytes = serializers.IntegerField(
        min_value=1, max_value=10**15 - 1, help_text="Size of the whole content."
    )


class UploadSerializer(serializers.ModelSerializer[ResumableUpload]):
    """An upload and how far it is."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:upload", lookup_url_kwarg="upload_id", help_text="Where its pieces go."
    )
    offset = serializers.IntegerField(
        source="received_bytes", read_only=True, help_text="Bytes that are here: go on there."
    )
    is_complete = serializers.SerializerMethodField(
        help_text="Submissions can take it: all of it is here and has its SHA-256."
    )

    class Meta:
        model = ResumableUpload
        fields = [
            "id", "url", "sha256", "size_bytes", "offset", "is_complete", "created_at",
            "expires_at",
        ]  # fmt: skip

    def get_is_complete(self, upload: ResumableUpload) -> bool:
        """Whether its content is stored."""
        return upload.blob_id is not None
