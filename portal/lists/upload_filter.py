"""Filter of the list of uploads that resume: by content, and whether they are whole."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from portal.lists.base_filter import ListFilter
from portal.lists.filter_fields import Words, YesNo
from portal.lists.sorting import Sorting, newest
from wms.jobs.models import ResumableUpload


class UploadFilter(ListFilter):
    """Uploads by their contents: who sends a file again finds where to go on."""

    sha256 = Words(label="SHA-256")
    complete = YesNo(method="filter_complete", label="Complete")
    sort = Sorting(newest("Begun", "created"))

    class Meta:
        model = ResumableUpload
        fields: Sequence[str] = ()

    def filter_complete(
        self, queryset: QuerySet[ResumableUpload], name: str, value: bool | None
    ) -> QuerySet[ResumableUpload]:
        """Keep those that submissions can take, or the others."""
        return queryset if value is None else queryset.filter(blob__isnull=not value)
