"""Archives for the walk through the pages: one of another installation, all its tabs."""

from __future__ import annotations

from django.urls import reverse

from portal.web.archives.tabs import TABS
from tests.archive_files import kept_archive
from tests.e2e.production import Production


def archive_pages(made: Production) -> dict[str, str]:
    """Pages of archives by the names of their pictures."""
    archive = kept_archive(made.people.olga, node_count=250)
    page = reverse("web:archive", args=[archive.pk])
    return {
        "archives": reverse("web:archives"),
        **{f"archive-{tab}": f"{page}?tab={tab}" for tab in TABS},
    }
