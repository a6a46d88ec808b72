"""Throughput of transfers on the pages of a placement and of the links between storages."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from wms.core.actors import Actor
from wms.placement import services
from wms.placement.models import PlacementAttempt, PlacementRequest

pytestmark = pytest.mark.django_db

TRANSFER = (
    '[ dap_type = "transfer"; src_url = "http://a.example.org/x"; '
    'dest_url = "http://b.example.org/x" ]'
)


def test_pages_tell_how_fast_a_large_file_was_moved() -> None:
    alice = factories.person("alice")
    [pk] = services.submit_requests(TRANSFER, actor=Actor.person(alice), owner=alice).ids
    now = timezone.now()
    PlacementAttempt.objects.create(
        request_id=pk, number=1, source_scheme="http", destination_scheme="http",
        started_at=now - timedelta(seconds=7), ended_at=now, exit_code=0, size_bytes=30 * 2**20,
    )  # fmt: skip
    PlacementRequest.objects.filter(pk=pk).update(state="completed", ended_at=now, attempt_number=1)
    browser = Client()
    browser.force_login(alice)

    pages = [reverse("web:placement", args=[pk]), reverse("web:placement-links")]

    for page in pages:
        answer = browser.get(page)
        assert answer.status_code == 200
        assert "4.29 MiB/s" in answer.content.decode()
