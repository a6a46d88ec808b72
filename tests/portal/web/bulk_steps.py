"""Steps of a bulk operation in a browser: choose in a list, preview, confirm."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from wms.bulk.models import BulkOperation


def token_of(client: Client, query: str = "", name: str = "dags") -> str:
    """What a list sends along with its rows."""
    page = client.get(reverse(f"web:{name}") + query).content.decode()
    found = re.search(r'name="selection" value="([^"]+)"', page)
    assert found, "the list offers no action"
    return found[1]


def choose(client: Client, action: str, **given: Any) -> HttpResponse:
    """Say what is to be done with rows."""
    body = {"list": "dags", "action": action, **given}
    return client.post(reverse("web:new-bulk"), body)


def all_of(client: Client, action: str, query: str = "") -> BulkOperation:
    """The preview for all rows of the list of DAGs."""
    answer = choose(client, action, all="1", selection=token_of(client, query))
    assert answer.status_code == 302, answer.content.decode()
    return BulkOperation.objects.latest("pk")


def confirm(client: Client, operation: BulkOperation, **given: Any) -> HttpResponse:
    """Confirm a preview."""
    body = {"seen": operation.pending_count, "reason": "disk full", **given}
    return client.post(reverse("web:confirm-bulk", args=[operation.pk]), body)


def page_of(client: Client, operation: BulkOperation, query: str = "") -> str:
    """The page of an operation, in one line."""
    address = reverse("web:bulk-operation", args=[operation.pk]) + query
    return " ".join(client.get(address).content.decode().split())
